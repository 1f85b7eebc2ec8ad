//! Providers of a workspace's channels, and their settings.
//!
//! Contract section 16. Secrets are sealed before they reach the store and shown as `***`.

mod config;
pub mod try_out;

use http::{Method, StatusCode};
use messaging_core::changes::{DocumentKey, Expect, JobWrite, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider::{self, Callbacks};
use messaging_core::domain::channel::settings::{CallbackRegistration, ChannelSettings};
use messaging_core::ids::WorkspaceId;
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::scope::Access;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations, refuse};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::config::Intake;
use crate::app::account_pauses::PauseKind;
use crate::error::Error;
use crate::jobs::JobData as _;
use crate::jobs::register_callback::RegisterCallback;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, NoContent, Operation};
use crate::ops::page::Page;

/// A channel's settings as shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChannelSettings")]
#[non_exhaustive]
pub struct ChannelView {
    /// The channel.
    pub channel: Channel,
    /// Provider that carries the channel; without settings the channel's default.
    pub provider: String,
    /// True if settings are stored and complete, and this server has the provider.
    pub configured: bool,
    /// All settings of the provider, `null` where one is not given, `***` where one is secret. Empty if nothing is
    /// stored.
    pub config: Map<String, Value>,
    /// State of the provider, as this server has seen it since its start.
    pub status: ChannelStatus,
    /// Last response of the provider while `status` is not `active`; or the reason why its callbacks fail.
    pub error: Option<String>,
    /// Address that the provider calls about this channel; it has to be entered there unless it was registered
    /// automatically. Changes with the settings. `null` if the provider makes no callbacks, or gets the address with
    /// each message.
    pub callback_url: Option<String>,
}

/// State of the channel's provider: whether it takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelStatus {
    /// The provider takes messages, as far as is known.
    Active,
    /// The provider refuses the account, or the settings cannot work: one message tries every five minutes, and the
    /// first one under new settings. Or its last ten answers could not be read, and whether those messages arrived is
    /// not known.
    Failing,
    /// The provider asked for a pause, or said within the last minute that it gets too many messages at a time.
    Throttled,
}

impl ChannelView {
    /// Returns the view of a workspace's channel, with the state of its provider.
    async fn shown(
        cx: &Context<'_>,
        (workspace, channel): (WorkspaceId, Channel),
        settings: Option<&ChannelSettings>,
    ) -> Result<Self, Error> {
        let mut view = Self::of(cx, channel, settings);
        let Some(provider) = cx.app.provider(workspace, channel).await? else { return Ok(view) };
        let (of, now) = ((workspace, channel), cx.app.monotonic());
        let slowed = || Some((PauseKind::Rests, cx.app.account_rates().trouble(of, &provider, now)?));
        let garbled = || Some((PauseKind::Stopped, cx.app.unreadable_answers().trouble(of, &provider)?));
        let paused = cx.app.account_pauses().trouble(of, &provider, now);
        if let Some((kind, error)) = paused.or_else(garbled).or_else(slowed) {
            view.status = match kind {
                PauseKind::Rests => ChannelStatus::Throttled,
                PauseKind::Stopped => ChannelStatus::Failing,
            };
            view.error = Some(cx.redactor().text(error));
        }
        Ok(view)
    }

    /// Returns the view of settings alone, without the state of the provider.
    fn of(cx: &Context<'_>, channel: Channel, settings: Option<&ChannelSettings>) -> Self {
        let (app, status) = (cx.app, ChannelStatus::Active);
        let Some(settings) = settings else {
            return Self {
                channel,
                provider: provider::default_of(channel).name.clone(),
                // Direct delivery is the one provider that needs no settings; whether this installation
                // has it is known by its transport.
                configured: app.transport(channel, provider::BUILTIN).is_some(),
                config: Map::new(),
                status,
                error: None,
                callback_url: None,
            };
        };
        let (config, configured) = config::shown(app, settings);
        let error = app.callback_fault(settings).map(|error| cx.redactor().text(error));
        let callback_url = app.channel_callback(settings).map(|address| address.url);
        Self { channel, provider: settings.provider.clone(), configured, config, status, error, callback_url }
    }
}

/// `GET /workspaces/{workspace_id}/channels`
pub struct ListChannels;

impl Operation for ListChannels {
    const ID: &'static str = "listChannels";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/channels";
    const ACCESS: Access = Access::Administration;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "channel list";
    const SUMMARY: &'static str = "List all six channels with their providers and settings, on one page";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<ChannelView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<ChannelView>, Error> {
        // There is always one page, whatever `limit` says; a cursor can only come from another listing.
        cx.page(&call.query)?;
        let stored = cx.store().channels(call.path.workspace_id).await?;
        let mut shown = Vec::with_capacity(Channel::ALL.len());
        for channel in Channel::ALL {
            let settings = stored.iter().find(|settings| settings.channel == channel);
            shown.push(ChannelView::shown(cx, (call.path.workspace_id, channel), settings).await?);
        }
        Ok(Page::only(shown))
    }
}

/// The path of a channel.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct ChannelPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The channel.
    pub channel: Channel,
}

/// New settings of a channel; they replace the old ones as a whole.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChannelInput {
    /// The provider's name.
    #[validate(length(min = 1))]
    pub provider: String,
    /// Settings of the provider. `null` is the same as leaving a setting out. `***` keeps a stored secret while all
    /// settings that say where it is sent (host, port, TLS, account, …) are unchanged. Settings that the provider does
    /// not have are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "config_schema")]
    pub config: Option<Map<String, Value>>,
}

impl Input for ChannelInput {}

/// Returns the schema of `config`: an object, with a description of the settings of each provider.
fn config_schema(_: &mut SchemaGenerator) -> Schema {
    let description = format!("{CONFIG}\n\nWhat each provider takes:\n\n```\n{}```", provider::described());
    json_schema!({"type": ["object", "null"], "additionalProperties": true, "description": description})
}

const CONFIG: &str = "Its settings. `null` is the same as leaving a setting out. `***` keeps a stored secret while \
    everything that says where it goes (host, port, TLS, account, …) is unchanged. Settings that the provider does not \
    have are refused.";

/// `PUT /workspaces/{workspace_id}/channels/{channel}`
pub struct SetChannel;

impl Operation for SetChannel {
    const ID: &'static str = "setChannel";
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/workspaces/{workspace_id}/channels/{channel}";
    const ACCESS: Access = Access::Administration;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "channel set";
    const SUMMARY: &'static str = "Choose a channel's provider and give its settings";
    type Path = ChannelPath;
    type Query = Empty;
    type Body = ChannelInput;
    type Output = ChannelView;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ChannelView, Error> {
        let ChannelPath { workspace_id, channel } = call.path;
        // The operator can name any workspace, also one that does not exist.
        cx.app.workspace(workspace_id).await?.ok_or(Error::NotFound)?;
        let kind = cx.app.provider_kind(channel, &call.body.provider).ok_or_else(|| {
            let known = cx.app.provider_names(channel).into_iter().collect::<Vec<_>>().join(", ");
            refuse(
                "/provider",
                FieldCode::UnknownValue,
                format_args!("is no provider of this channel, which has {known}"),
            )
        })?;
        let stored = cx.store().channel(workspace_id, channel).await?;
        let before = ChannelView::of(cx, channel, stored.as_ref().map(|stored| &stored.record));
        cx.note_before(&before);
        let mut intake = Intake {
            app: cx.app,
            workspace: workspace_id,
            channel,
            provider: kind,
            stored: stored.as_ref().map(|stored| &stored.record),
            lenient: cx.lenient,
            violations: Violations::new(),
        };
        let config = intake.take(call.body.config.unwrap_or_default());
        intake.violations.into_result()?;
        // The callback address is registered at the provider once the settings are stored.
        let has_callbacks = kind.callbacks != Callbacks::None && cx.app.transport(channel, &kind.name).is_some();
        let registration = has_callbacks.then(|| CallbackRegistration { job: cx.new_id(), address: None, error: None });
        let provider = kind.name.clone();
        let settings = ChannelSettings { workspace_id, channel, provider, config, registration };
        let expected = stored.as_ref().map_or(Expect::Absent, |stored| Expect::Revision(stored.revision));
        let view = ChannelView::of(cx, channel, Some(&settings));
        if let Some(registration) = &settings.registration {
            let job = RegisterCallback { workspace_id, channel, failures: 0 };
            cx.change(Write::Job(JobWrite::Enqueue(job.enqueue(registration.job, cx.now))));
        }
        cx.change(Write::put(settings, expected));
        Ok(view)
    }
}

/// `DELETE /workspaces/{workspace_id}/channels/{channel}`
pub struct DeleteChannel;

impl Operation for DeleteChannel {
    const ID: &'static str = "deleteChannel";
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/workspaces/{workspace_id}/channels/{channel}";
    const ACCESS: Access = Access::Administration;
    const SUCCESS: StatusCode = StatusCode::NO_CONTENT;
    const CLI: &'static str = "channel delete";
    const SUMMARY: &'static str = "Forget a channel's settings; also when there are none";
    type Path = ChannelPath;
    type Query = Empty;
    type Body = Empty;
    type Output = NoContent;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<NoContent, Error> {
        let ChannelPath { workspace_id, channel } = call.path;
        if let Some(stored) = cx.store().channel(workspace_id, channel).await? {
            let before = ChannelView::of(cx, channel, Some(&stored.record));
            cx.note_before(&before);
            cx.change(Write::Delete(DocumentKey::Channel(workspace_id, channel)));
        }
        Ok(NoContent)
    }
}
