//! Test messages of a campaign, which its author sends to colleagues before the start.
//!
//! Contract section 26. A test is a transactional message of its own that no statistics count and nothing tracks.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CampaignPlan;
use crate::domain::channel::Channel;
use crate::domain::channel::address;
use crate::domain::limits::MAX_SUBJECT;
use crate::input::Input;
use crate::validate::{Setters, Validate};
use crate::violation::{FieldCode, Violations};

/// Maximum number of recipients of one call (contract section 26).
pub const MAX_TEST_RECIPIENTS: u64 = 20;
/// Text that the subject of a test begins with.
const MARK: &str = "[Test] ";

/// Recipients of a test of a campaign, and how it is rendered.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CampaignTestInput {
    /// Addresses of members of the workspace or of its contacts, in the form of the campaign's channel.
    #[validate(length(min = 1, max = MAX_TEST_RECIPIENTS))]
    pub to: Vec<String>,
    /// Contact whose data the template is rendered with; the newest of the audience when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<String>,
    /// Name of the variant that is sent; the first one when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

impl Input for CampaignTestInput {}

impl CampaignTestInput {
    /// Adds the faults of the recipients on a channel. No address may occur twice, however it is spelled.
    pub fn check_recipients(&self, channel: Channel, violations: &mut Violations) {
        let mut seen = HashSet::new();
        for (index, to) in self.to.iter().enumerate() {
            let pointer = format!("/to/{index}");
            if to.is_empty() {
                violations.add(pointer, FieldCode::Required, "is required");
            } else if !seen.insert(address::normalize(channel, to)) {
                violations.add(pointer, FieldCode::Duplicate, "is there already");
            } else {
                address::check_sent(channel, to, pointer, address::form(channel), violations);
            }
        }
    }

    /// Returns the index of the variant to send; `None` for a regular campaign. Adds a violation for a name that the
    /// plan does not have.
    pub fn place(&self, plan: &CampaignPlan, violations: &mut Violations) -> Option<usize> {
        let Some(name) = self.variant.as_ref().filter(|name| !name.is_empty()) else {
            return (!plan.variants.is_empty()).then_some(0);
        };
        let found = plan.variants.iter().position(|variant| variant.name == *name);
        if found.is_none() {
            violations.add("/variant", FieldCode::NotFound, "the campaign has no variant of this name");
        }
        found
    }
}

/// Returns the subject of a test message, cut to the maximum length of a subject.
pub fn test_subject(subject: &str) -> String {
    let longest = usize::try_from(MAX_SUBJECT).unwrap_or(usize::MAX);
    MARK.chars().chain(subject.chars()).take(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::At;

    #[track_caller]
    fn check(channel: Channel, to: &[&str], expected: &[(&str, FieldCode)]) {
        let to = to.iter().map(|to| (*to).to_owned()).collect();
        let input = CampaignTestInput { to, contact_id: None, variant: None };
        let mut violations = Violations::new();
        input.check_recipients(channel, &mut violations);
        let found: Vec<_> = violations.as_slice().iter().map(|one| (one.at.clone(), one.code)).collect();
        let expected: Vec<_> = expected.iter().map(|(at, code)| (At::Pointer((*at).to_owned()), *code)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn recipients_have_the_form_of_the_channel_and_are_there_once() {
        use FieldCode::{Duplicate, InvalidFormat, NotAllowed, Required};
        check(Channel::Email, &["ann@example.org", "bob@example.org"], &[]);
        check(Channel::Email, &["ann@example.org", "ANN@Example.org"], &[("/to/1", Duplicate)]);
        check(Channel::Email, &["+14155550123", ""], &[("/to/0", InvalidFormat), ("/to/1", Required)]);
        check(Channel::Email, &["a***@example.org"], &[("/to/0", NotAllowed)]);
        check(Channel::Sms, &["+14155550123", "ann@example.org"], &[("/to/1", InvalidFormat)]);
    }

    #[test]
    fn the_subject_is_marked_and_no_longer_than_a_subject_may_be() {
        assert_eq!(test_subject("Hello"), "[Test] Hello");
        assert_eq!(test_subject(""), "[Test] ");
        let longest = "é".repeat(998);
        assert_eq!(test_subject(&longest).chars().count(), 998);
        assert!(test_subject(&longest).starts_with("[Test] é"));
    }
}
