//! The users and workspaces of the installation, as the operator looks at them.

use messaging_core::changes::{AccountWrite, Changes, Expect, Write};
use messaging_core::domain::security::account::User;
use messaging_core::domain::security::page_cursor::CursorScope;
use messaging_core::domain::security::user_email::UserEmail;
use messaging_core::ids::UserId;
use messaging_core::ports::store::{PageRequest, Slice, StoreCursor, Stored};
use messaging_core::time::Timestamp;
use messaging_core::violation::{FieldCode, refuse};
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::Error;
use crate::ops::sessions::tickets::TicketReport;
use crate::ops::workspaces::WorkspaceView;
use crate::ops::{Page, PageQuery};
use crate::services::auditing::Command;
use crate::services::tickets::OPERATORS_LIFETIME;

/// Items of a page when nobody says.
const DEFAULT_LIMIT: u32 = 50;

/// A user as the `admin` commands show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UserReport {
    /// Its id.
    pub id: UserId,
    /// The sign-in name, lower case.
    pub email: String,
    /// A display name.
    pub name: Option<String>,
    /// May look after the whole installation.
    pub operator: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

impl UserReport {
    pub(super) fn of(user: User) -> Self {
        Self { id: user.id, email: user.email, name: user.name, operator: user.operator, created_at: user.created_at }
    }
}

/// A user whose second factors were removed, as `admin reset-factors` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResetFactorsReport {
    /// Its id.
    pub id: UserId,
    /// The sign-in name, lower case.
    pub email: String,
    /// Number of factors that were removed, those among them that were never confirmed.
    pub removed: u64,
}

/// Lists the users of the installation, newest first.
pub async fn list_users(app: &App, page: &PageQuery) -> Result<Page<UserReport>, Error> {
    let listing = Listing { app, name: "users" };
    let slice = app.store().users(listing.request(page)?).await?;
    Ok(listing.page(slice, UserReport::of))
}

/// Lists the workspaces of the installation, newest first.
pub async fn list_workspaces(app: &App, page: &PageQuery) -> Result<Page<WorkspaceView>, Error> {
    let listing = Listing { app, name: "workspaces" };
    let slice = app.store().workspaces(listing.request(page)?).await?;
    Ok(listing.page(slice, |workspace| WorkspaceView::of(workspace, app.settings())))
}

/// A link by which a user signs in once, within ten minutes, whether or not they have a password.
pub async fn login_link(app: &App, email: &str) -> Result<TicketReport, Error> {
    app.until_committed(|| async {
        let user = match email.parse::<UserEmail>() {
            Ok(email) => app.store().user_by_email(email.as_str()).await?,
            Err(_) => None,
        };
        let user = user
            .ok_or_else(|| refuse("/email", FieldCode::NotFound, "is no user's: see `messaging admin list-users`"))?;
        let (ticket, url) = app.new_ticket(&user.record, None, OPERATORS_LIFETIME, app.now());
        let report = TicketReport { url, expires_at: ticket.expires_at };
        let changes = Changes::from_iter([Write::Account(AccountWrite::PutTicket(ticket))]).of_setup();
        let User { id, email, .. } = &user.record;
        let command = Command::new("admin login-link", "user", Some(id.to_string()), Some(email));
        Ok((app.record_command(changes, command).await?, report))
    })
    .await
}

/// Removes all second factors of a user and their recovery codes, for a person who has lost them. Sessions of the user
/// and links made for them end; the password stays.
pub async fn reset_factors(app: &App, email: &str) -> Result<ResetFactorsReport, Error> {
    app.until_committed(|| async {
        let user = match email.parse::<UserEmail>() {
            Ok(email) => app.store().user_by_email(email.as_str()).await?,
            Err(_) => None,
        };
        let unknown = || refuse("/email", FieldCode::NotFound, "is no user's: see `messaging admin list-users`");
        let Stored { record: user, revision } = user.ok_or_else(unknown)?;
        let removed = app.live_factors(user.id).await?.len() as u64;
        let report = ResetFactorsReport { id: user.id, email: user.email.clone(), removed };
        let mut changes = Changes::default();
        if user.second_factor || removed > 0 {
            let password_version = user.password_version.wrapping_add(1);
            changes.push(Write::Account(AccountWrite::DeleteFactors(user.id)));
            changes
                .push(Write::put(User { second_factor: false, password_version, ..user }, Expect::Revision(revision)));
        }
        let command = Command::new("admin reset-factors", "user", Some(report.id.to_string()), Some(&report.email));
        Ok((app.record_command(changes, command).await?, report))
    })
    .await
}

/// A listing that is no operation's.
pub(super) struct Listing<'a> {
    pub(super) app: &'a App,
    /// Name of the listing, which its cursors are bound to.
    pub(super) name: &'static str,
}

impl Listing<'_> {
    pub(super) fn request(&self, page: &PageQuery) -> Result<PageRequest, Error> {
        let open = |text: &str| self.app.cursor_key().open(&self.scope(), text).ok_or(Error::InvalidCursor);
        let after = page.cursor.as_deref().map(open).transpose()?.map(StoreCursor::from_bytes);
        Ok(PageRequest { after, limit: page.limit.unwrap_or(DEFAULT_LIMIT) as usize })
    }

    pub(super) fn page<R, T>(&self, slice: Slice<R>, item: impl FnMut(R) -> T) -> Page<T> {
        let next_cursor = slice.next.map(|place| self.app.cursor_key().seal(&self.scope(), place.to_bytes()));
        Page { data: slice.items.into_iter().map(item).collect(), next_cursor }
    }

    fn scope(&self) -> CursorScope {
        CursorScope::default().field(b"admin").field(self.name.as_bytes())
    }
}
