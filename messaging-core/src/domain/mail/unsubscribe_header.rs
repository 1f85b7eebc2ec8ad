//! Headers by which mail programs offer to unsubscribe.
//!
//! Contract section 10, RFC 2369 and RFC 8058.

use crate::domain::mail::link_token::ReturnPurpose;
use crate::domain::mail::tracking::Links;

/// Name and value of the header that makes one click enough (RFC 8058 section 3.1). The value is also the body of the
/// request that the click makes.
pub const ONE_CLICK: (&str, &str) = ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click");

/// Returns `List-Unsubscribe` and `List-Unsubscribe-Post` of a marketing email: a page and an address, of which mail
/// programs take the one they like.
pub fn headers(links: &Links<'_>, bounce_domain: &str) -> [(&'static str, String); 2] {
    let mailbox = links.key.local_part(ReturnPurpose::Unsubscribe, links.workspace, links.message, None);
    let value = format!("<{}>, <mailto:{mailbox}@{bounce_domain}>", links.unsubscribe_url());
    [("List-Unsubscribe", value), (ONE_CLICK.0, ONE_CLICK.1.to_owned())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::mail::link_token::{Link, LinkKey};

    #[test]
    fn the_headers_name_a_page_and_an_address_of_the_message() {
        let key = LinkKey::new(&[7; 32]);
        let links = Links {
            key: &key,
            base: "https://links.acme.com",
            workspace: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            message: "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ".parse().unwrap(),
            open: false,
            click: false,
        };
        let [(name, value), post] = headers(&links, "bounce.acme.com");
        assert_eq!(
            (name, post.0, &*post.1),
            ("List-Unsubscribe", "List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
        );
        let (page, address) = value.strip_prefix('<').unwrap().strip_suffix('>').unwrap().split_once(">, <").unwrap();
        let token = page.strip_prefix("https://links.acme.com/u/").unwrap();
        assert_eq!(key.read_link(token), Some((links.workspace, links.message, Link::Unsubscribe)));
        let mailbox = address.strip_prefix("mailto:").unwrap().strip_suffix("@bounce.acme.com").unwrap();
        // A plus sign is itself in a mailto link (RFC 6068 section 5).
        let read = key.read_local_part(links.workspace, mailbox);
        assert_eq!(read, Some((ReturnPurpose::Unsubscribe, links.message, None)));
        // Header fields are folded at spaces; no part may be longer than a line (RFC 5322 section 2.1.1).
        assert!(value.split(' ').all(|part| part.len() < 200), "{value}");
    }
}
