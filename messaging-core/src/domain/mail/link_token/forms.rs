//! Tokens of forms: for the address of a form's page, and for the time at which a page was made.

use super::{LinkKey, Purpose};
use crate::ids::{FormId, Id as _, WorkspaceId};
use crate::time::Timestamp;

impl LinkKey {
    /// Returns the token of the page of a form.
    pub fn form(&self, workspace: WorkspaceId, form: FormId) -> String {
        self.object(Purpose::Form, workspace, form.to_bytes())
    }

    /// Returns the workspace and form of a page's token, if it is one of ours.
    pub fn read_form(&self, token: &str) -> Option<(WorkspaceId, FormId)> {
        self.read_object(Purpose::Form, token).map(|(workspace, id)| (workspace, FormId::from_bytes(id)))
    }

    /// Returns the token that holds the time at which a page of a form was made; the salt makes it the token of that
    /// page alone.
    pub fn form_page(&self, form: FormId, at: Timestamp, salt: [u8; 8]) -> String {
        self.token(Purpose::FormPage, &[&form.to_bytes(), &at.as_millis().to_be_bytes(), &salt])
    }

    /// Returns the time at which the page of this form with a token was made, if the token is one of ours.
    pub fn read_form_page(&self, form: FormId, token: &str) -> Option<Timestamp> {
        let data = self.read_data(Purpose::FormPage, token)?;
        let at = data.strip_prefix(&form.to_bytes())?.first_chunk()?;
        Some(Timestamp::from_millis(i64::from_be_bytes(*at)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Link;
    use super::*;

    #[test]
    fn forms_have_tokens_of_their_own() {
        let workspace: WorkspaceId = "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
        let form: FormId = "frm_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
        let other: FormId = "frm_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ".parse().unwrap();
        let (key, at) = (LinkKey::new(&[7; 32]), Timestamp::from_millis(1_769_850_900_123));
        let (page, started) = (key.form(workspace, form), key.form_page(form, at, [3; 8]));
        assert_ne!(started, key.form_page(form, at, [4; 8]));
        assert_eq!(key.read_form(&page), Some((workspace, form)));
        assert_eq!((key.read_form_page(form, &started), key.read_form_page(other, &started)), (Some(at), None));
        assert_eq!((key.read_form(&started), key.read_form_page(form, &page)), (None, None));
        let stranger = LinkKey::new(&[8; 32]);
        assert_eq!((stranger.read_form(&page), stranger.read_form_page(form, &started)), (None, None));
        let message = "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ".parse().unwrap();
        let token = key.link(workspace, message, Link::Confirm);
        assert_eq!((key.read_form(&token), key.read_form_page(form, &token)), (None, None));
        assert_eq!((key.read_link(&page), key.read_link(&started)), (None, None));
    }
}
