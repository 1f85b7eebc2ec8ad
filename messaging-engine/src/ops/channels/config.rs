//! Configuration of a channel: from the given to the stored form, and from the stored to the shown form.
//!
//! A configuration has parts: the settings of the channel's provider, and under [`ROUTES`] those of other providers
//! beside it. Every part is checked, sealed and shown alike.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider::{self, MASK, Member, ProviderKind, ROUTES};
use messaging_core::domain::channel::settings::ChannelSettings;
use messaging_core::domain::security::secret_key::channel_secret_place;
use messaging_core::ids::WorkspaceId;
use messaging_core::violation::{FieldCode, Violations, escape};
use serde_json::{Map, Value};

use crate::app::App;

/// Converts a given configuration to the stored form.
pub(super) struct Intake<'a> {
    pub(super) app: &'a App,
    pub(super) workspace: WorkspaceId,
    pub(super) channel: Channel,
    /// Provider of the channel.
    pub(super) provider: &'a ProviderKind,
    /// Settings of the channel that are stored already; `None` if there are none.
    pub(super) stored: Option<&'a ChannelSettings>,
    /// True if unknown members of the settings are ignored: `Prefer: handling=lenient`.
    pub(super) lenient: bool,
    pub(super) violations: Violations,
}

/// One provider's settings within a configuration.
#[derive(Clone, Copy)]
struct Part<'a> {
    kind: &'a ProviderKind,
    /// JSON pointer to the settings in the body.
    at: &'a str,
    is_route: bool,
}

impl<'a> Intake<'a> {
    /// Returns the configuration to store: checked, secrets sealed, with the settings that we generate. Faults are
    /// added to the violations.
    pub(super) fn take(&mut self, mut given: Map<String, Value>) -> Map<String, Value> {
        let kind = self.provider;
        let routes = if kind.has_routes() { given.remove(ROUTES) } else { None };
        let routes = self.take_routes(routes);
        // The provider's own settings may also be among the routes.
        let is_elsewhere = routes.contains_key(&kind.name);
        let mut config = Map::new();
        if !is_elsewhere {
            config = self.take_part(Part { kind, at: "/config", is_route: false }, given);
        } else if given.values().any(|value| !value.is_null()) {
            let rule = "stands here and beside routes; give it once";
            self.violations.add(format!("/config/{ROUTES}/{}", kind.name), FieldCode::Conflict, rule);
        }
        if !routes.is_empty() {
            config.insert(ROUTES.to_owned(), routes.into());
        }
        config
    }

    fn take_routes(&mut self, given: Option<Value>) -> Map<String, Value> {
        let mut routes = Map::new();
        let given = match given {
            None | Some(Value::Null) => return routes,
            Some(Value::Object(given)) => given,
            Some(_) => {
                self.violations.add(format!("/config/{ROUTES}"), FieldCode::InvalidType, "must be an object");
                return routes;
            }
        };
        for (name, value) in given {
            let at = format!("/config/{ROUTES}/{}", escape(&name));
            let kind = provider::find(self.channel, &name).filter(|kind| kind.has_routes());
            match (kind, value) {
                (Some(_), Value::Null) => {}
                (Some(kind), Value::Object(part)) => {
                    let part = self.take_part(Part { kind, at: &at, is_route: true }, part);
                    routes.insert(name, part.into());
                }
                (Some(_), _) => self.violations.add(at, FieldCode::InvalidType, "must be an object"),
                (None, _) if self.lenient => {}
                (None, _) => {
                    let known = provider::all().iter().filter(|kind| kind.channel == self.channel && kind.has_routes());
                    let known = known.map(|kind| kind.name.as_str());
                    self.violations.add_unknown(at, known, &name);
                }
            }
        }
        routes
    }

    fn take_part(&mut self, part: Part<'_>, mut given: Map<String, Value>) -> Map<String, Value> {
        let Part { kind, at, is_route } = part;
        let members: Vec<_> =
            kind.members.iter().filter(|member| !is_route || member.form != provider::Form::Routes).collect();
        let mut config = Map::new();
        for member in &members {
            match given.remove(&member.name) {
                None | Some(Value::Null) => {}
                // A setting that we generate and show may be sent back; one that is never shown cannot have been read.
                Some(_) if member.is_made_by_us => {
                    if !member.is_shown() {
                        let rule = "is made by us and cannot be given";
                        self.violations.add(format!("{at}/{}", member.name), FieldCode::NotAllowed, rule);
                    }
                }
                Some(Value::String(text)) if text.is_empty() && !member.required => {}
                Some(value) => drop(config.insert(member.name.clone(), value)),
            }
        }
        provider::complete(kind, &mut config);
        for name in given.keys().filter(|_| !self.lenient) {
            let known = members.iter().map(|member| member.name.as_str());
            self.violations.add_unknown(format!("{at}/{}", escape(name)), known, name);
        }
        provider::check(kind, &config, at, &mut self.violations);
        let kept = self.kept(kind, &config);
        for member in &members {
            let is_kept = config.get(&member.name).is_some_and(|value| is_mask(member, value));
            if is_kept && sealed(kept, &member.name).is_none() {
                let rule =
                    "*** keeps a secret only while it is stored and everything that says where it goes is unchanged";
                self.violations.add(format!("{at}/{}", member.name), FieldCode::Required, rule);
            }
        }
        let transport = self.app.transport(kind.channel, &kind.name);
        if let Some(Err(fault)) = transport.map(|transport| transport.check(&config)) {
            self.violations.add(format!("{at}/{}", fault.member), FieldCode::NotAllowed, fault.message);
        }
        for member in members.iter().filter(|member| member.is_secret()) {
            let Some(value) = config.remove(&member.name) else { continue };
            let stored = if is_mask(member, &value) {
                sealed(kept, &member.name).cloned()
            } else {
                Some(self.seal(kind, member, &value))
            };
            config.extend(stored.map(|stored| (member.name.clone(), stored)));
        }
        config.extend(self.made_by_us(kind));
        config
    }

    /// Returns the stored settings whose secrets `***` keeps: only while they are sent to the same place, or a person
    /// who may change the settings could have them sent to a host of their own.
    fn kept(&self, kind: &ProviderKind, config: &Map<String, Value>) -> Option<&'a Map<String, Value>> {
        let stored = self.stored.filter(|stored| stored.provider == self.provider.name)?;
        let kept = stored_part(stored, &kind.name)?;
        kind.has_same_destination(config, kept).then_some(kept)
    }

    /// Returns the settings that we generate: the stored ones while the provider stays the same, new ones otherwise.
    fn made_by_us(&self, kind: &ProviderKind) -> Map<String, Value> {
        let mut ours = kind.members.iter().filter(|member| member.is_made_by_us).peekable();
        if ours.peek().is_none() {
            return Map::new();
        }
        let before = self.stored.and_then(|stored| stored_part(stored, &kind.name));
        let stored: Option<Map<_, _>> = ours
            .clone()
            .map(|member| before?.get(&member.name).map(|value| (member.name.clone(), value.clone())))
            .collect();
        if let Some(stored) = stored {
            return stored;
        }
        let Some(transport) = self.app.transport(kind.channel, &kind.name) else { return Map::new() };
        let mut made = transport.own_settings();
        ours.filter_map(|member| {
            let value = made.remove(&member.name)?;
            let value = if member.is_secret() { self.seal(kind, member, &value) } else { value };
            Some((member.name.clone(), value))
        })
        .collect()
    }

    fn seal(&self, kind: &ProviderKind, member: &Member, value: &Value) -> Value {
        let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        let place = channel_secret_place(self.workspace, self.channel, &kind.name, &member.name);
        self.app.vault().seal(&place, &text, self.app.entropy()).into()
    }
}

/// Returns the stored settings of a provider, as the channel's own or as a route.
fn stored_part<'a>(stored: &'a ChannelSettings, provider: &str) -> Option<&'a Map<String, Value>> {
    let route = stored.config.get(ROUTES).and_then(|routes| routes.get(provider)?.as_object());
    route.or_else(|| (stored.provider == provider).then_some(&stored.config))
}

fn is_mask(member: &Member, value: &Value) -> bool {
    member.is_secret() && value == MASK
}

fn sealed<'a>(kept: Option<&'a Map<String, Value>>, name: &str) -> Option<&'a Value> {
    kept?.get(name).filter(|value| value.is_string())
}

/// Returns stored settings as they are shown, and true if they are complete and this server has their providers.
pub(super) fn shown(app: &App, settings: &ChannelSettings) -> (Map<String, Value>, bool) {
    let mut is_complete = true;
    let Some(kind) = app.provider_kind(settings.channel, &settings.provider) else {
        // A provider that was removed from the table has nothing to show.
        return (Map::new(), false);
    };
    let routes = settings.config.get(ROUTES).and_then(Value::as_object).filter(|_| kind.has_routes());
    let is_elsewhere = routes.is_some_and(|routes| routes.contains_key(&kind.name));
    let mut part = |kind: &ProviderKind, config: &Map<String, Value>, is_needed: bool| {
        let members = kind.members.iter().filter(|member| member.is_shown() && member.form != provider::Form::Routes);
        let value = |member: &Member| match config.get(&member.name) {
            Some(Value::Null) | None => Value::Null,
            Some(_) if member.is_secret() => MASK.into(),
            Some(value) => value.clone(),
        };
        let shown: Map<_, _> = members.map(|member| (member.name.clone(), value(member))).collect();
        let is_given = |member: &Member| config.get(&member.name).is_some_and(|value| !value.is_null());
        let must_be_there = |member: &&Member| member.required || member.is_made_by_us;
        is_complete &= app.transport(kind.channel, &kind.name).is_some();
        is_complete &= !is_needed || kind.members.iter().filter(must_be_there).all(is_given);
        shown
    };
    let mut config = part(kind, &settings.config, !is_elsewhere);
    if kind.has_routes() {
        let routes: Map<_, _> = routes
            .into_iter()
            .flatten()
            .filter_map(|(name, config)| {
                let kind = app.provider_kind(settings.channel, name)?;
                Some((name.clone(), part(kind, config.as_object()?, true).into()))
            })
            .collect();
        config.insert(ROUTES.to_owned(), if routes.is_empty() { Value::Null } else { routes.into() });
    }
    (config, is_complete)
}
