//! Texts of messages that are searched, and the blocks in which they are indexed.

use super::{BEHIND_ROW, BETWEEN_TEXTS, Search, SearchTexts, add_row};
use crate::domain::message::Message;
use crate::domain::security::redaction::Redactor;
use crate::ids::{MessageId, WorkspaceId};

/// Messages of a block.
pub const MESSAGE_BLOCK: usize = 16;

impl Search {
    /// True if the id or the recipient of a message, which are in its row, contains the searched text.
    pub fn finds_row(&self, message: &Message) -> bool {
        self.is_in(&message.id.to_string().to_lowercase(), &message.to.to_lowercase())
    }

    /// Returns the messages of a block that contain the searched text, newest first.
    pub fn messages_in(&self, texts: &SearchTexts) -> Vec<MessageId> {
        let rows = texts.shown.split(BEHIND_ROW).zip(texts.hidden.split(BEHIND_ROW));
        let found = rows.filter(|(shown, hidden)| self.is_in(shown, hidden));
        let mut ids: Vec<MessageId> = found.filter_map(|(shown, _)| id_of(shown)).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids
    }
}

impl SearchTexts {
    /// Adds a message with its subject as it was sent, if known. Addresses in the subject are masked for callers who
    /// may not see them.
    pub fn add_message(&mut self, message: &Message, subject: Option<&str>) {
        let masked = subject.map(|subject| Redactor::new(false).text(subject.to_owned()));
        add_row(&mut self.shown, [Some(message.id.to_string().as_str()), masked.as_deref()]);
        let clear = subject.filter(|subject| masked.as_deref() != Some(subject));
        add_row(&mut self.hidden, [Some(message.to.as_str()), clear]);
    }

    /// Returns the number of messages that have no recipient, mostly because the person was erased.
    pub fn without_recipient(&self) -> usize {
        let rows = self.hidden.split_terminator(BEHIND_ROW);
        rows.filter(|row| row.is_empty() || row.starts_with(BETWEEN_TEXTS)).count()
    }
}

/// Returns the id at the beginning of the texts of a message, which are in lower case.
fn id_of(shown: &str) -> Option<MessageId> {
    let (prefix, code) = shown.split(BETWEEN_TEXTS).next()?.split_once('_')?;
    format!("{prefix}_{}", code.to_uppercase()).parse().ok()
}

/// Messages that are to be indexed together.
#[derive(Debug, Clone, PartialEq)]
pub struct DueMessages {
    /// Workspace of the messages.
    pub workspace_id: WorkspaceId,
    /// First and last message of the block that they replace, if there is one.
    pub replaces: Option<(MessageId, MessageId)>,
    /// The messages, oldest first; at least one.
    pub messages: Vec<Message>,
}

/// A block of messages as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageBlock {
    /// Workspace of the messages.
    pub workspace_id: WorkspaceId,
    /// First and last message of the block that this one replaces, if there is one.
    pub replaces: Option<(MessageId, MessageId)>,
    /// The oldest of the messages.
    pub first: MessageId,
    /// The newest of the messages.
    pub last: MessageId,
    /// Number of messages.
    pub messages: u32,
    /// True if the contents of all of them are forgotten, and their subjects with them.
    pub is_aged: bool,
    /// Texts of the messages.
    pub texts: SearchTexts,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::channel::Channel;
    use crate::ids::Id as _;
    use crate::time::Timestamp;

    fn message(n: u8, to: &str) -> Message {
        let workspace = WorkspaceId::from_bytes([1; 16]);
        Message::queued(
            MessageId::from_bytes([n; 16]),
            workspace,
            Channel::Email,
            to.to_owned(),
            Timestamp::from_millis(0),
        )
    }

    #[test]
    fn messages_of_a_block_are_told_apart() {
        let mut texts = SearchTexts::default();
        let (one, two, three) =
            (message(1, "Ann@example.org"), message(2, "bob@example.org"), message(3, "ann@example.net"));
        texts.add_message(&one, Some("Order 17"));
        texts.add_message(&two, Some("For joe@example.com"));
        texts.add_message(&three, Some("line\u{1e}break"));
        let found = |text: &str, sees| Search::new(text, sees).messages_in(&texts);
        assert_eq!(found("ann@", true), [three.id, one.id]);
        assert_eq!(found("ann@", false), []);
        assert_eq!(found("ORDER", false), [one.id]);
        assert_eq!(found(&two.id.to_string(), false), [two.id]);
        assert_eq!(found(&two.id.to_string()[..10].to_lowercase(), false).len(), 1);
        assert_eq!(found("linebreak", false), [three.id]);
        assert_eq!((found("joe@", true), found("joe@", false)), (vec![two.id], Vec::new()));
        assert_eq!(found("for j", false), [two.id]);
        assert_eq!(texts.without_recipient(), 0);
        assert_eq!(found("msg_", false).len(), 3);
        assert!(Search::new("bob", true).finds_row(&two) && !Search::new("bob", false).finds_row(&two));
        texts.add_message(&message(4, ""), Some("joe@example.com"));
        texts.add_message(&message(5, ""), None);
        assert_eq!(texts.without_recipient(), 2);
    }
}
