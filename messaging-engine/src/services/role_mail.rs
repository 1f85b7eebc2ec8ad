//! Forwards mail to `postmaster` and `abuse` of the installation's names to the operator (RFC 2142, RFC 5321 section
//! 4.5.1).
//!
//! The mail is forwarded as a message of a workspace, because only workspaces have domains for which mail can be
//! signed. It is the workspace whose verified domain covers the name, or else the one whose domain covers the
//! postmaster's address, so that no other workspace sees mail to the operator. Workspaces under deletion send nothing,
//! so their domains do not count.

use messaging_core::domain::channel::address::{self, EmailAddress};
use messaging_core::domain::limits::MAX_SUBJECT;
use messaging_core::domain::mail::sending_domain::{BOUNCE_LABEL, DomainStatus, SendingDomain};
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::ports::inbound::{RoleAddress, RoleMail};
use messaging_core::ports::store::StoreError;

use crate::app::App;

/// Local parts of addresses whose mail is forwarded.
const ROLES: [&str; 2] = ["postmaster", "abuse"];

/// Most parent domains of a name for which a verified domain is looked up.
const MAX_LABELS: usize = 10;

/// Hops after which a mail counts as caught in a loop (RFC 5321 section 6.3).
const MAX_HOPS: usize = 100;

impl App {
    /// The role address that a text names: `postmaster` or `abuse` of the host name, of the installation's name, or of
    /// the bounce domain of a verified sending domain. `postmaster` without a domain is that of the host name. `None`
    /// for any other address, if no `--postmaster` is set, and if no verified domain can send the mail on.
    pub async fn role_address(&self, address: &str) -> Result<Option<RoleAddress>, StoreError> {
        let Some(postmaster) = self.settings().postmaster.as_deref() else { return Ok(None) };
        let own = self.settings().hostname.as_str();
        let (role, host) = address.rsplit_once('@').unwrap_or((address, own));
        let Some(role) = ROLES.into_iter().find(|known| role.eq_ignore_ascii_case(known)) else { return Ok(None) };
        let Some(host) = address::ascii_domain(host.strip_suffix('.').unwrap_or(host)) else { return Ok(None) };
        let is_host = host.eq_ignore_ascii_case(own) || host.eq_ignore_ascii_case(&self.installation_name().await?);
        let domain = match host.split_once('.') {
            Some((BOUNCE_LABEL, name)) if !is_host => self.verified_domain(name).await?,
            _ if !is_host => return Ok(None),
            _ => match self.domain_covering(&host).await? {
                Some(domain) => Some(domain),
                None => self.domain_covering(postmaster.rsplit_once('@').map_or("", |(_, host)| host)).await?,
            },
        };
        if domain.is_none() && is_host {
            tracing::warn!(%role, "mail was refused: no verified sending domain covers the host name or the postmaster's address");
        }
        let found = domain.map(|domain| RoleAddress {
            address: format!("{role}@{host}"),
            workspace_id: domain.workspace_id,
            domain: domain.domain,
        });
        Ok(found)
    }

    /// The verified domain that covers a host: the host itself, or its nearest parent that is verified.
    async fn domain_covering(&self, host: &str) -> Result<Option<SendingDomain>, StoreError> {
        let Some(host) = address::ascii_domain(host) else { return Ok(None) };
        let mut name = host.as_str();
        for _ in 0..MAX_LABELS {
            if let Some(domain) = self.verified_domain(name).await? {
                return Ok(Some(domain));
            }
            let Some((_, parent)) = name.split_once('.') else { break };
            name = parent;
        }
        Ok(None)
    }

    /// The verified domain with a name; the oldest if several workspaces have verified it. Domains of workspaces under
    /// deletion do not count.
    async fn verified_domain(&self, name: &str) -> Result<Option<SendingDomain>, StoreError> {
        let ending = self.ending_workspaces().await?;
        let mut oldest: Option<SendingDomain> = None;
        let age = |domain: &SendingDomain| (domain.created_at, domain.id);
        let look = |domain: &SendingDomain| -> Option<()> {
            let is_older = oldest.as_ref().is_none_or(|oldest| age(domain) < age(oldest));
            let may_send = domain.status == DomainStatus::Verified && !ending.contains(&domain.workspace_id);
            if may_send && is_older {
                oldest = Some(domain.clone());
            }
            None
        };
        self.domain_named(name, look).await?;
        Ok(oldest)
    }

    /// The message that forwards a mail to the postmaster, with the mail attached. Fails with the reason if forwarding
    /// could cause a loop, or if no postmaster is set.
    pub(crate) fn role_message(&self, to: &RoleAddress, mail: RoleMail) -> Result<MessageInput, &'static str> {
        let Some(postmaster) = self.settings().postmaster.as_deref() else { return Err("nobody wants it") };
        if mail.sender.is_none() {
            return Err("it has no sender");
        }
        if mail.is_automatic {
            return Err("a program wrote it by itself");
        }
        let is_own =
            |address: &String| ROLES.iter().any(|role| address.to_ascii_lowercase().starts_with(&format!("{role}@")));
        if mail.handed_on.iter().any(is_own) || mail.hops > MAX_HOPS {
            return Err("it was handed on before");
        }
        let RoleAddress { address, domain, .. } = to;
        let plain = |text: &str| text.chars().filter(|letter| !letter.is_control()).collect::<String>();
        let subject = plain(mail.subject.as_deref().unwrap_or("(no subject)"));
        let room = usize::try_from(MAX_SUBJECT).unwrap_or(usize::MAX) - 100;
        let subject: String = subject.chars().take(room).collect();
        let role = address.split('@').next().unwrap_or_default();
        let mut message = MessageInput::email(postmaster)
            .from_email(format!("{role}@{domain}"))
            .from_name(format!("Mail to {role}"))
            .subject(format!("[{role}] {subject}"))
            .text(format!("This mail came to {address}. It is attached as it arrived; nothing in it was checked.\r\n"))
            .header("X-Loop", address)
            .header("Auto-Submitted", "auto-generated")
            .attachment("mail.eml", mail.source);
        if let Some(reply_to) = mail.reply_to.filter(|address| EmailAddress::parse(address).is_ok()) {
            message = message.reply_to(reply_to);
        }
        Ok(message)
    }
}
