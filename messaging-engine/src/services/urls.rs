//! Targets of redirected links.

use messaging_core::changes::Write;
use messaging_core::domain::mail::link_token::UrlKey;
use messaging_core::ids::WorkspaceId;

use crate::app::App;

impl App {
    /// The writes that store targets of redirected links, without those that are known to be stored. They
    /// are to be committed before the message leaves.
    pub fn store_urls(&self, workspace: WorkspaceId, urls: Vec<String>) -> Vec<Write> {
        let now = self.monotonic();
        let is_news = |url: &String| !self.known_urls().knows((workspace, UrlKey::of(url)), now);
        urls.into_iter().filter(is_news).map(|url| Write::PutUrl(workspace, url)).collect()
    }
}
