//! Obstacles that keep messages from being attempted, from the state of accounts and of the routes to recipients: the
//! one source for all explanations of why something is not sent yet.
//!
//! The states are memory of the process that sends. Of several nodes each knows what it met itself; what another one
//! met shows in the events of the messages that it attempted.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::lane::JobClass;
use messaging_core::domain::message::Message;
use messaging_core::domain::message::obstacle::{Obstacle, ObstacleKind};
use messaging_core::domain::message::recipients::{Recipient, RecipientKind};
use messaging_core::domain::message::simulator;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::paths::PathTerms;
use messaging_core::ports::store::StoreError;
use messaging_core::ports::transport::{Route, RouteState};

use crate::app::account_pauses::{Account, PauseKind};
use crate::app::{App, Provider};

impl App {
    /// Returns the obstacle that keeps messages to a recipient from being attempted now; `None` if none is known. The
    /// text of peers is unchanged.
    pub(crate) async fn obstacle_to(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        to: &str,
    ) -> Result<Option<Obstacle>, StoreError> {
        if self.ending_workspaces().await?.contains(&workspace) {
            return Ok(Some(Obstacle { kind: ObstacleKind::WorkspaceEnding, words: None, until: None }));
        }
        let Some(provider) = self.provider(workspace, channel).await? else { return Ok(None) };
        let Some(transport) = self.transport(channel, &provider.name) else { return Ok(None) };
        let domain = (channel == Channel::Email)
            .then(|| Recipient::new(RecipientKind::To, to.to_owned()).domain())
            .filter(|domain| domain != simulator::DOMAIN);
        if channel == Channel::Email && domain.is_none() {
            return Ok(None);
        }
        let name = transport.account_of(&provider.settings, to);
        if let Some(obstacle) = self.obstacle_of_account(Account { name, ..Account::of(workspace, channel) }, &provider)
        {
            return Ok(Some(obstacle));
        }
        let kind = match channel {
            Channel::Email => ObstacleKind::DomainUnreachable,
            _ => ObstacleKind::RecipientThrottled,
        };
        let recipient = (channel != Channel::Email).then(|| to.to_owned());
        let route = Route {
            workspace_id: workspace,
            class: JobClass::Transactional,
            settings: provider.settings,
            domain,
            recipient,
            terms: PathTerms::default(),
        };
        let RouteState { rests_for, last_refusal, .. } = transport.state_of(&route);
        Ok(rests_for.map(|wait| Obstacle {
            kind,
            words: last_refusal.map(|refusal| refusal.text),
            until: (!wait.is_zero()).then(|| self.now() + wait),
        }))
    }

    /// Returns the obstacle that keeps a waiting message from being attempted now, or makes it wait for its turn.
    pub(crate) async fn obstacle_of(&self, message: &Message) -> Result<Option<Obstacle>, StoreError> {
        let (workspace, channel) = (message.workspace_id, message.channel);
        if let Some(obstacle) = self.obstacle_to(workspace, channel, &message.to).await? {
            return Ok(Some(obstacle));
        }
        let Some(provider) = self.provider(workspace, channel).await? else { return Ok(None) };
        let Some(transport) = self.transport(channel, &provider.name) else { return Ok(None) };
        let name = transport.account_of(&provider.settings, &message.to);
        let account = Account { name, ..Account::of(workspace, channel) };
        let words = self.account_rates().words_of(account, &provider, self.monotonic());
        Ok(words.map(|words| Obstacle { kind: ObstacleKind::ChannelSlowed, words: Some(words), until: None }))
    }

    /// Returns the obstacle that keeps all messages on a channel of a workspace from being attempted now.
    pub(crate) async fn obstacle_on(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
    ) -> Result<Option<Obstacle>, StoreError> {
        let provider = self.provider(workspace, channel).await?;
        Ok(provider.and_then(|provider| self.obstacle_of_account(Account::of(workspace, channel), &provider)))
    }

    /// Returns the state of direct delivery to an email domain.
    pub(crate) async fn state_of_domain(&self, workspace: WorkspaceId, domain: &str) -> Result<RouteState, StoreError> {
        let Some(Provider { name, settings }) = self.provider(workspace, Channel::Email).await? else {
            return Ok(RouteState::default());
        };
        let (class, domain) = (JobClass::Transactional, Some(domain.to_owned()));
        let route =
            Route { workspace_id: workspace, class, settings, domain, recipient: None, terms: PathTerms::default() };
        Ok(self.transport(Channel::Email, &name).map(|transport| transport.state_of(&route)).unwrap_or_default())
    }

    /// Returns true if messages of a workspace on a channel do not leave the server.
    pub(crate) async fn is_captured(&self, workspace: WorkspaceId, channel: Channel) -> Result<bool, StoreError> {
        let provider = self.provider(workspace, channel).await?;
        Ok(provider.is_some_and(|provider| self.captures(channel, &provider.name)))
    }

    /// Returns true if messages over a provider do not leave the server.
    pub(crate) fn captures(&self, channel: Channel, provider: &str) -> bool {
        self.transport(channel, provider).is_some_and(|transport| transport.is_local())
    }

    fn obstacle_of_account(&self, account: Account, provider: &Provider) -> Option<Obstacle> {
        let paused = self.account_pauses().state_of(account, provider, self.monotonic())?;
        let kind = match paused.kind {
            PauseKind::Rests => ObstacleKind::ChannelThrottled,
            PauseKind::Stopped => ObstacleKind::ChannelFailing,
        };
        let until = (!paused.wait.is_zero()).then(|| self.now() + paused.wait);
        Some(Obstacle { kind, words: Some(paused.error), until })
    }
}
