//! Which provider carries each channel of a workspace, and with what settings.
//!
//! Contract section 16. Secrets are sealed before they reach the store and shown as `***`.

use http::{Method, StatusCode};
use messaging_core::changes::{Expect, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::provider::{self, MASK, ProviderKind};
use messaging_core::domain::secret_key::channel_secret_place;
use messaging_core::domain::settings::ChannelSettings;
use messaging_core::ids::WorkspaceId;
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::scope::Access;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations, escape, refuse, unknown_member};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::app::App;
use crate::app::account_pauses::PauseKind;
use crate::error::Error;
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
    /// The provider that carries it; without settings the channel's default.
    pub provider: String,
    /// Whether settings are stored and complete.
    pub configured: bool,
    /// Every setting of the provider, `null` where it is not given, `***` where it is secret. Empty
    /// when nothing is stored.
    pub config: Map<String, Value>,
    /// How the provider takes messages, as this server has found out since it started.
    pub status: ChannelStatus,
    /// The provider's last words, while `status` is not `active`.
    pub error: Option<String>,
}

/// How a provider takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelStatus {
    /// As far as is known, it does.
    Active,
    /// It refuses the account, or the settings cannot work: one message tries every five minutes, and the first one
    /// under new settings.
    Failing,
    /// It asked for a pause.
    Throttled,
}

impl ChannelView {
    /// What is shown of a channel of a workspace.
    async fn shown(
        cx: &Context<'_>,
        (workspace, channel): (WorkspaceId, Channel),
        settings: Option<&ChannelSettings>,
    ) -> Result<Self, Error> {
        let mut view = Self::of(cx.app, channel, settings);
        let Some(provider) = cx.app.provider(workspace, channel).await? else { return Ok(view) };
        if let Some((kind, error)) =
            cx.app.account_pauses().trouble((workspace, channel), &provider, cx.app.monotonic())
        {
            view.status = match kind {
                PauseKind::Rests => ChannelStatus::Throttled,
                PauseKind::Stopped => ChannelStatus::Failing,
            };
            view.error = Some(cx.redactor().text(error));
        }
        Ok(view)
    }

    /// What is shown of settings of which nothing is known but themselves.
    fn of(app: &App, channel: Channel, settings: Option<&ChannelSettings>) -> Self {
        let (status, error) = (ChannelStatus::Active, None);
        let Some(settings) = settings else {
            return Self {
                channel,
                provider: provider::default_of(channel).name.clone(),
                // Direct delivery is the one provider that needs no settings; whether this installation
                // has it is known by its transport.
                configured: app.transport(channel, provider::BUILTIN).is_some(),
                config: Map::new(),
                status,
                error,
            };
        };
        // A provider that is not in the table any more has nothing to show.
        let kind = app.provider_kind(channel, &settings.provider);
        let members = kind.map_or(&[][..], |kind| kind.members.as_slice());
        let shown = |name: &str, secret: bool| match settings.config.get(name) {
            Some(Value::Null) | None => Value::Null,
            Some(_) if secret => MASK.into(),
            Some(value) => value.clone(),
        };
        let config: Map<_, _> =
            members.iter().map(|member| (member.name.clone(), shown(&member.name, member.is_secret()))).collect();
        let complete =
            kind.is_some() && members.iter().all(|member| !member.required || !config[&member.name].is_null());
        let present = settings.provider != provider::BUILTIN || app.transport(channel, provider::BUILTIN).is_some();
        Self { channel, provider: settings.provider.clone(), configured: complete && present, config, status, error }
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
        // Always one page, whatever `limit` says; a cursor can only come from elsewhere.
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
    /// Its settings. `null` is the same as leaving a setting out. `***` keeps a stored secret while everything that
    /// says where it goes (host, port, TLS, account, …) is unchanged. Settings that the provider does not have are
    /// refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
}

impl Input for ChannelInput {}

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
        // The operator can name any workspace, also one that is not there.
        cx.app.workspace(workspace_id).await?.ok_or(Error::NotFound)?;
        let kind = cx
            .app
            .provider_kind(channel, &call.body.provider)
            .ok_or_else(|| refuse("/provider", FieldCode::UnknownValue, "is not a provider of this channel"))?;
        let stored = cx.store().channel(workspace_id, channel).await?;
        let kept = stored.as_ref().map(|stored| &stored.record).filter(|settings| settings.provider == kind.name);
        let settings = ChannelSettings {
            workspace_id,
            channel,
            provider: kind.name.clone(),
            config: take_over(cx, kind, call.body.config.unwrap_or_default(), kept)?,
        };
        let settings = seal(cx.app, kind, settings, kept);
        let expected = stored.as_ref().map_or(Expect::Absent, |stored| Expect::Revision(stored.revision));
        let view = ChannelView::of(cx.app, channel, Some(&settings));
        cx.change(Write::PutChannel(settings, expected));
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
        cx.change(Write::DeleteChannel(call.path.workspace_id, call.path.channel));
        Ok(NoContent)
    }
}

/// What of a given configuration is to be stored, checked; kept secrets are still `***`.
fn take_over(
    cx: &Context<'_>,
    kind: &ProviderKind,
    mut given: Map<String, Value>,
    kept: Option<&ChannelSettings>,
) -> Result<Map<String, Value>, Error> {
    let mut config = Map::new();
    for member in &kind.members {
        match given.remove(&member.name) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() && !member.required => {}
            Some(value) => drop(config.insert(member.name.clone(), value)),
        }
    }
    provider::complete(kind, &mut config);
    let mut violations = Violations::new();
    for name in given.keys().filter(|_| !cx.lenient) {
        let known = kind.members.iter().map(|member| member.name.as_str());
        violations.add(format!("/config/{}", escape(name)), FieldCode::UnknownField, unknown_member(known, name));
    }
    provider::check(kind, &config, "/config", &mut violations);
    // A secret goes where it went before, or whoever may change the settings could have it sent to a host of
    // their own.
    let kept = kept.filter(|kept| kind.has_same_destination(&config, &kept.config));
    for member in &kind.members {
        let is_kept = config.get(&member.name).and_then(Value::as_str).is_some_and(|text| is_mask(member, text));
        if is_kept && !has(kept, &member.name) {
            let rule = "*** keeps a secret only while it is stored and everything that says where it goes is unchanged";
            violations.add(format!("/config/{}", member.name), FieldCode::Required, rule);
        }
    }
    if let Some(Err(fault)) = cx.app.transport(kind.channel, &kind.name).map(|transport| transport.check(&config)) {
        violations.add(format!("/config/{}", fault.member), FieldCode::NotAllowed, fault.message);
    }
    violations.into_result()?;
    Ok(config)
}

/// Seals the secrets; those that are `***` are taken from the stored settings as they are.
fn seal(
    app: &App,
    kind: &ProviderKind,
    mut settings: ChannelSettings,
    kept: Option<&ChannelSettings>,
) -> ChannelSettings {
    for member in kind.members.iter().filter(|member| member.is_secret()) {
        let Some(value) = settings.config.remove(&member.name) else { continue };
        let sealed = match value {
            Value::String(text) if is_mask(member, &text) => {
                kept.and_then(|kept| kept.config.get(&member.name)).cloned()
            }
            value => {
                let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
                let place = channel_secret_place(&settings, &member.name);
                Some(app.vault().seal(&place, &text, app.entropy()).into())
            }
        };
        settings.config.extend(sealed.map(|sealed| (member.name.clone(), sealed)));
    }
    settings
}

fn is_mask(member: &provider::Member, text: &str) -> bool {
    member.is_secret() && text == MASK
}

fn has(kept: Option<&ChannelSettings>, name: &str) -> bool {
    kept.is_some_and(|settings| settings.config.get(name).is_some_and(Value::is_string))
}
