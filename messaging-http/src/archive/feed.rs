//! An archive as a feed: Atom (RFC 4287).

use std::fmt::Write as _;

use messaging_core::domain::campaign::archive::atom_id;
use messaging_engine::services::archive::ArchivePage;

/// Media type of a feed.
pub(super) const MEDIA_TYPE: &str = "application/atom+xml; charset=utf-8";

/// The feed of the campaigns on a page. Ids do not depend on the address of the server, so that feed readers recognize
/// entries.
pub(super) fn atom(page: &ArchivePage) -> String {
    let updated = page.entries.first().map_or(page.workspace.created_at, |entry| entry.sent_at);
    let mut feed =
        String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n");
    let (title, url) = (text(page.title()), text(&page.url));
    let _ = write!(
        feed,
        "<id>{}</id>\n<title>{title}</title>\n<updated>{updated}</updated>\n<author><name>{}</name></author>\n\
         <link rel=\"self\" type=\"application/atom+xml\" href=\"{url}/feed.xml\"/>\n\
         <link rel=\"alternate\" type=\"text/html\" href=\"{url}\"/>\n",
        atom_id(page.workspace.id),
        text(&page.workspace.name)
    );
    for entry in &page.entries {
        let _ = write!(
            feed,
            "<entry>\n<id>{}</id>\n<title>{}</title>\n<updated>{at}</updated>\n<published>{at}</published>\n\
             <link rel=\"alternate\" type=\"text/html\" href=\"{}\"/>\n</entry>\n",
            atom_id(entry.id),
            text(&entry.title),
            text(&entry.url),
            at = entry.sent_at
        );
    }
    feed.push_str("</feed>\n");
    feed
}

/// A text between tags or in a quoted attribute. Characters that XML 1.0 does not allow (section 2.2) become U+FFFD.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'.. => out.push(letter),
            _ => out.push('\u{fffd}'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use messaging_core::domain::campaign::archive::{Archive, ReaderSettings};
    use messaging_core::domain::security::account::Workspace;
    use messaging_core::domain::security::request_log::RequestLog;
    use messaging_core::ids::{CampaignId, Id as _, WorkspaceId};
    use messaging_core::time::Timestamp;
    use messaging_engine::services::archive::ArchiveEntry;

    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000 + minute * 60_000)
    }

    fn page(title: &str, entries: &[&str]) -> ArchivePage {
        let archive = Archive { enabled: true, title: Some(title.to_owned()), ..Archive::default() };
        let workspace = Workspace {
            id: WorkspaceId::from_bytes([1; 16]),
            name: "A & B".to_owned(),
            timezone: "UTC".to_owned(),
            opt_out_keywords: Vec::new(),
            request_log: RequestLog::default(),
            require_second_factor: false,
            readers: ReaderSettings { archive, ..ReaderSettings::default() },
            end: None,
            created_at: at(0),
        };
        let entry = |(n, title): (usize, &&str)| ArchiveEntry {
            id: CampaignId::from_bytes([u8::try_from(n).unwrap() + 2; 16]),
            url: format!("https://mail.example/a/wsp_1/cmp_{n}?a=1&b=2"),
            title: (*title).to_owned(),
            day: "2026-01-01".to_owned(),
            sent_at: at(9 - i64::try_from(n).unwrap()),
        };
        ArchivePage {
            workspace: Arc::new(workspace),
            url: "https://mail.example/a/wsp_1".to_owned(),
            entries: entries.iter().enumerate().map(entry).collect(),
            older: None,
        }
    }

    /// The texts between tags; asserts that tags are closed in order.
    fn texts(xml: &str) -> Vec<String> {
        let mut open: Vec<&str> = Vec::new();
        let mut texts = Vec::new();
        let rest = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n").unwrap();
        for piece in rest.split('<').skip(1) {
            let (tag, text) = piece.split_once('>').unwrap();
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "{xml}");
            } else if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap());
            }
            assert!(!text.contains('>') && text.chars().all(|c| c >= ' ' || "\t\n\r".contains(c)), "{text}");
            for entity in text.split('&').skip(1) {
                let name = entity.split(';').next().unwrap();
                assert!(["amp", "lt", "gt", "quot"].contains(&name), "{text}");
            }
            texts.extend((!text.trim().is_empty()).then(|| text.to_owned()));
        }
        assert_eq!(open, Vec::<&str>::new());
        texts
    }

    #[test]
    fn a_feed_says_what_readers_of_feeds_need() {
        let feed = atom(&page("News", &["Second", "First"]));
        assert_eq!(
            texts(&feed),
            [
                "urn:uuid:01010101-0101-0101-0101-010101010101",
                "News",
                "2026-01-01T00:09:00.000Z",
                "A &amp; B",
                "urn:uuid:02020202-0202-0202-0202-020202020202",
                "Second",
                "2026-01-01T00:09:00.000Z",
                "2026-01-01T00:09:00.000Z",
                "urn:uuid:03030303-0303-0303-0303-030303030303",
                "First",
                "2026-01-01T00:08:00.000Z",
                "2026-01-01T00:08:00.000Z",
            ]
        );
        assert!(feed.contains("href=\"https://mail.example/a/wsp_1/cmp_0?a=1&amp;b=2\""), "{feed}");
        assert!(feed.contains(
            "<link rel=\"self\" type=\"application/atom+xml\" href=\"https://mail.example/a/wsp_1/feed.xml\"/>"
        ));
    }

    #[test]
    fn titles_are_no_markup_of_a_feed() {
        for hostile in [
            "</title><script>alert(1)</script>",
            "]]> <![CDATA[ &amp; &nbsp; \"x\" 'y'",
            "\u{0}\u{1}\u{8}\u{b}\u{1b}\u{fffe}\u{ffff}",
            "<?xml?><!DOCTYPE x [<!ENTITY a \"b\">]>&a;",
            "💌 ünïcode \u{202e}",
        ] {
            let feed = atom(&page(hostile, &[hostile]));
            assert_eq!(texts(&feed).len(), 4 + 4, "{feed}");
        }
        assert_eq!(text("a\u{0}<b>\u{ffff}&\"💌"), "a\u{fffd}&lt;b&gt;\u{fffd}&amp;&quot;💌");
    }

    #[test]
    fn an_empty_archive_has_a_feed() {
        assert_eq!(texts(&atom(&page("News", &[])))[2], "2026-01-01T00:00:00.000Z");
    }
}
