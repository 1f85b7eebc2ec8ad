//! Translation of filters to SQL.
//!
//! The text is put together from fragments in this file and from numbered parameters; nothing that a user wrote becomes
//! part of it: [`Sql::push`] takes only strings of the program. The condition on a value is tested by the function
//! `passes` (see [`probe`](super::probe)), which finds the test by the number that is bound beside the value.
//!
//! Every condition is 1 or 0, never NULL, so that NOT is the exact complement. Lists of conditions are
//! balanced trees, because SQLite limits how deep an expression may be.

use jiff::tz::TimeZone;
use messaging_core::domain::audience::contact::fields::ContactField;
use messaging_core::domain::audience::subscription::SubscriptionStatus;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::EventKind;
use messaging_core::domain::segment::filter::{
    Condition, ConsentKind, Count, EventLeaf, Filter, FilterField, Leaf, MessageEventKind, MessageLeaf, Test, Within,
};
use messaging_core::domain::segment::values::Present;
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::segments::MemberQuery;
use messaging_core::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::numbers::{list_number, segment_number, workspace_number};
use super::super::query::one;
use super::super::row::number;
use super::probe::{Probe, Probes};

/// SQL expression of an address in an attribute.
const OF_ATTRIBUTES: &str = "a.value";

/// Conditions on `contacts c`, with their parameters, and the tests that they name by number.
pub(in super::super) struct Compiled {
    /// Number of the workspace whose contacts are examined.
    pub(super) workspace_number: i64,
    /// The conditions, in the order of the filters.
    pub(super) conditions: Vec<String>,
    /// Values of the parameters, from the first one on.
    pub(super) parameters: Vec<Value>,
    /// The tests.
    pub(super) probes: Probes,
}

/// Compiles filters for the contacts of a workspace; `None` if it has none.
///
/// Names are resolved to numbers here, so the result is valid only at the moment of the call.
pub(in super::super) fn compile<'f>(
    connection: &Connection,
    workspace: WorkspaceId,
    query: &MemberQuery,
    filters: impl IntoIterator<Item = &'f Filter>,
) -> Result<Option<Compiled>, Fault> {
    let present = Present { now: query.now, zone: query.zone.clone() };
    compile_for(connection, workspace, filters.into_iter().map(|filter| (filter, present.clone())), None)
}

/// Like `compile`, for questions of automations about a contact and a span of events, each filter as of its own moment.
/// The first parameters are the number of the contact and the ids in [`Span`], which the caller binds for each
/// question.
pub(in super::super) fn compile_asks<'f>(
    connection: &Connection,
    workspace: WorkspaceId,
    filters: impl IntoIterator<Item = (&'f Filter, Present)>,
) -> Result<Option<Compiled>, Fault> {
    let span = Span { after: Parameter(2), up_to: Parameter(3) };
    compile_for(connection, workspace, filters, Some(span))
}

/// Range of the events that count, by their ids, which are in the order of acceptance.
#[derive(Clone, Copy)]
struct Span {
    /// Events after this one are since the entry; none if it is NULL.
    after: Parameter,
    /// Last event that counts; all if it is NULL.
    up_to: Parameter,
}

fn compile_for<'f>(
    connection: &Connection,
    workspace: WorkspaceId,
    filters: impl IntoIterator<Item = (&'f Filter, Present)>,
    span: Option<Span>,
) -> Result<Option<Compiled>, Fault> {
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(None) };
    let bound = if span.is_some() { vec![Value::Null; 3] } else { Vec::new() };
    let mut compiler = Compiler {
        connection,
        workspace,
        workspace_number,
        sql: Sql { text: String::new(), parameters: bound },
        probes: Vec::new(),
        workspace_parameter: None,
        present: Present { now: Timestamp::from_millis(0), zone: TimeZone::UTC },
        span,
    };
    let mut conditions = Vec::new();
    for (filter, present) in filters {
        compiler.present = present;
        compiler.filter(filter)?;
        conditions.push(std::mem::take(&mut compiler.sql.text));
    }
    let Compiler { sql, probes, .. } = compiler;
    Ok(Some(Compiled { workspace_number, conditions, parameters: sql.parameters, probes: Probes(probes) }))
}

/// SQL text and the values of its parameters.
struct Sql {
    text: String,
    parameters: Vec<Value>,
}

impl Sql {
    fn push(&mut self, fragment: &'static str) {
        self.text.push_str(fragment);
    }

    fn bind(&mut self, value: impl Into<Value>) -> Parameter {
        self.parameters.push(value.into());
        let parameter = Parameter(self.parameters.len());
        self.parameter(parameter);
        parameter
    }

    fn parameter(&mut self, Parameter(number): Parameter) {
        self.text.push('?');
        self.text.push_str(&number.to_string());
    }
}

/// The number of a parameter.
#[derive(Clone, Copy)]
struct Parameter(usize);

struct Compiler<'a> {
    connection: &'a Connection,
    workspace: WorkspaceId,
    workspace_number: i64,
    sql: Sql,
    probes: Vec<Probe>,
    /// Parameter with the id of the workspace, once it is bound.
    workspace_parameter: Option<Parameter>,
    present: Present,
    /// Range of the events that count; `None`, and all count, unless the question is of an automation.
    span: Option<Span>,
}

impl Compiler<'_> {
    fn filter(&mut self, filter: &Filter) -> Result<(), Fault> {
        match filter {
            Filter::Everyone => {
                self.sql.push("1");
                Ok(())
            }
            Filter::Where(condition) => self.condition(condition),
        }
    }

    fn condition(&mut self, condition: &Condition) -> Result<(), Fault> {
        match condition {
            Condition::And(all) => self.joined(all, " AND ", "1"),
            Condition::Or(any) => self.joined(any, " OR ", "0"),
            Condition::Not(inner) => {
                self.sql.push("NOT ");
                self.condition(inner)
            }
            Condition::Leaf(leaf) => self.leaf(leaf),
        }
    }

    fn joined(&mut self, conditions: &[Condition], operator: &'static str, nothing: &'static str) -> Result<(), Fault> {
        match conditions {
            [] => {
                self.sql.push(nothing);
                Ok(())
            }
            [only] => self.condition(only),
            several => {
                let (first, second) = several.split_at(several.len() / 2);
                self.sql.push("(");
                self.joined(first, operator, nothing)?;
                self.sql.push(operator);
                self.joined(second, operator, nothing)?;
                self.sql.push(")");
                Ok(())
            }
        }
    }

    /// Writes one condition, which needs no parentheses beside AND, OR and NOT.
    fn leaf(&mut self, leaf: &Leaf) -> Result<(), Fault> {
        match leaf {
            Leaf::Field(field, test) => self.field(*field, test),
            Leaf::Attribute(path, test) => {
                self.passes(Probe::member(path, test, &self.present));
                self.sql.push(", c.attributes)");
            }
            Leaf::Tags { needs, values } => {
                self.passes(Probe::tags(*needs, values));
                self.sql.push(", c.tags)");
            }
            Leaf::List { id, member, status } => {
                let list = list_number(self.connection, self.workspace, *id)?;
                let rows = match status {
                    SubscriptionStatus::Confirmed => "(SELECT 1 FROM list_members m WHERE m.list = ",
                    SubscriptionStatus::Unconfirmed => {
                        "(SELECT 1 FROM list_subscriptions m WHERE m.status = 0 AND m.list = "
                    }
                    SubscriptionStatus::Left => "(SELECT 1 FROM list_subscriptions m WHERE m.status = 2 AND m.list = ",
                };
                self.membership(rows, list, *member);
            }
            Leaf::Segment { id, member } => {
                let segment = segment_number(self.connection, self.workspace, *id)?;
                self.membership("(SELECT 1 FROM segment_members m WHERE m.segment = ", segment, *member);
            }
            Leaf::Consent(kind, state) => {
                self.sql.push(match kind {
                    ConsentKind::MarketingEmail => "(c.marketing_email IS ",
                    ConsentKind::Sms => "(c.sms IS ",
                });
                self.sql.bind(*state);
                self.sql.push(")");
            }
            Leaf::Suppression(channel, suppressed) => self.suppression(*channel, *suppressed),
            Leaf::Event(leaf) => self.events(leaf)?,
            Leaf::Message(leaf) => self.messages(leaf),
        }
        Ok(())
    }

    /// Begins a test of a value, which the caller writes next.
    fn passes(&mut self, probe: Probe) {
        self.sql.push("passes(");
        self.sql.bind(i64::try_from(self.probes.len()).unwrap_or(i64::MAX));
        self.probes.push(probe);
    }

    fn field(&mut self, field: FilterField, test: &Test) {
        let (column, probe): (_, fn(&Test, &Present) -> Probe) = match field {
            FilterField::Text(ContactField::Email) => ("email", Probe::email),
            FilterField::Text(field) => (field.name(), Probe::text),
            FilterField::CreatedAt => ("created_at", Probe::time),
            FilterField::UpdatedAt => ("updated_at", Probe::time),
        };
        self.passes(probe(test, &self.present));
        self.sql.push(", c.");
        self.sql.push(column);
        self.sql.push(")");
    }

    /// `rows` begins a subquery and ends where the number is bound. A list or segment that does not exist has no
    /// members.
    fn membership(&mut self, rows: &'static str, n: Option<i64>, member: bool) {
        self.sql.push(if member { "EXISTS " } else { "NOT EXISTS " });
        self.sql.push(rows);
        self.sql.bind(n);
        self.sql.push(" AND m.contact = c.n)");
    }

    fn suppression(&mut self, channel: Channel, suppressed: bool) {
        if !suppressed {
            self.sql.push("NOT ");
        }
        match channel {
            Channel::Email => self.listed(channel, "c.email"),
            Channel::Sms | Channel::Whatsapp => self.listed(channel, "c.phone"),
            Channel::Telegram | Channel::Push => self.listed(channel, OF_ATTRIBUTES),
            // Two lookups, so that each uses the key.
            Channel::Viber => {
                self.sql.push("(");
                self.listed(channel, "c.phone");
                self.sql.push(" OR ");
                self.listed(channel, OF_ATTRIBUTES);
                self.sql.push(")");
            }
        }
    }

    /// Writes the condition that an address of a contact is on the suppression list of a channel.
    fn listed(&mut self, channel: Channel, address: &'static str) {
        self.sql.push("EXISTS (SELECT 1 FROM ");
        if address == OF_ATTRIBUTES {
            self.sql.push("json_each(addresses(");
            self.sql.bind(number(&Channel::ALL, &channel));
            self.sql.push(", c.attributes)) a CROSS JOIN ");
        }
        self.sql.push("suppressions s WHERE s.workspace = ");
        self.workspace();
        self.sql.push(" AND s.channel = ");
        self.sql.bind(number(&Channel::ALL, &channel));
        self.sql.push(" AND s.digest = address_digest(");
        self.sql.push(address);
        self.sql.push("))");
    }

    fn workspace(&mut self) {
        match self.workspace_parameter {
            Some(parameter) => self.sql.parameter(parameter),
            None => self.workspace_parameter = Some(self.sql.bind(self.workspace.to_bytes().to_vec())),
        }
    }

    fn events(&mut self, leaf: &EventLeaf) -> Result<(), Fault> {
        let sql = "SELECT n FROM event_names WHERE workspace_number = ?1 AND name = ?2";
        let name: Option<i64> =
            one(self.connection, sql, params![self.workspace_number, leaf.name], |row| Ok(row.get(0)?))?;
        self.counted(leaf.count, |this| {
            this.sql.push("product_events e INDEXED BY product_events_by_contact WHERE e.contact = c.n AND e.name = ");
            this.sql.bind(name);
            this.within(leaf.within);
            if !leaf.properties.is_empty() {
                this.sql.push(" AND ");
                this.passes(Probe::properties(&leaf.properties, &this.present));
                this.sql.push(", e.properties)");
            }
        });
        Ok(())
    }

    fn messages(&mut self, leaf: &MessageLeaf) {
        self.counted(leaf.count, |this| {
            this.sql.push("messages m INDEXED BY messages_by_contact CROSS JOIN message_events e WHERE m.workspace = ");
            this.workspace();
            this.sql.push(" AND m.contact = c.id");
            if let Some(channel) = leaf.channel {
                this.sql.push(" AND m.channel = ");
                this.sql.bind(number(&Channel::ALL, &channel));
            }
            if let Some(campaign) = leaf.campaign_id {
                this.sql.push(" AND m.campaign = ");
                this.sql.bind(campaign.to_bytes().to_vec());
            }
            if let Some(automation) = leaf.automation_id {
                this.sql.push(" AND m.automation = ");
                this.sql.bind(automation.to_bytes().to_vec());
            }
            if let Some(template) = leaf.template_id {
                this.sql.push(" AND m.template = ");
                this.sql.bind(template.to_bytes().to_vec());
            }
            this.sql.push(" AND e.workspace = m.workspace AND e.message = m.id");
            this.within(leaf.within);
            this.sql.push(" AND e.kind = ");
            let kind = event_kind(leaf.event);
            this.sql.bind(number(&EventKind::ALL, &kind));
            if matches!(kind, EventKind::Open | EventKind::Click) {
                this.sql.push(" AND e.meta -> '$.machine' IS NOT 'true'");
            }
            if let Some(part) = &leaf.url_contains {
                this.sql.push(" AND ");
                this.passes(Probe::url(part));
                this.sql.push(", e.meta)");
            }
        });
    }

    fn within(&mut self, within: Option<Within>) {
        if let Some(span) = self.span {
            self.sql.push(" AND (");
            self.sql.parameter(span.up_to);
            self.sql.push(" IS NULL OR e.id <= ");
            self.sql.parameter(span.up_to);
            self.sql.push(")");
            if within == Some(Within::SinceEntry) {
                self.sql.push(" AND e.id > ");
                self.sql.parameter(span.after);
                return;
            }
        }
        if let Some(within) = within {
            let moments = within.moments(self.present.now, &self.present.zone);
            self.sql.push(" AND e.at BETWEEN ");
            self.sql.bind(*moments.start());
            self.sql.push(" AND ");
            self.sql.bind(*moments.end());
        }
    }

    /// Compares the number of rows with a count. Reads no more rows than are needed to decide.
    fn counted(&mut self, count: Count, rows: impl FnOnce(&mut Self)) {
        let (least, most) = match count {
            Count::AtLeast(0) => {
                self.sql.push("1");
                return;
            }
            Count::AtLeast(1) => {
                self.sql.push("EXISTS (SELECT 1 FROM ");
                rows(self);
                self.sql.push(")");
                return;
            }
            Count::AtMost(0) | Count::Exactly(0) => {
                self.sql.push("NOT EXISTS (SELECT 1 FROM ");
                rows(self);
                self.sql.push(")");
                return;
            }
            Count::AtLeast(least) => (least, least),
            Count::AtMost(most) => (0, most),
            Count::Exactly(count) => (count, count),
        };
        let enough = if let Count::AtLeast(_) = count { i64::from(least) } else { i64::from(most) + 1 };
        self.sql.push("((SELECT count(*) FROM (SELECT 1 FROM ");
        rows(self);
        self.sql.push(" LIMIT ");
        self.sql.bind(enough);
        self.sql.push(")) BETWEEN ");
        self.sql.bind(i64::from(least));
        self.sql.push(" AND ");
        self.sql.bind(i64::from(most));
        self.sql.push(")");
    }
}

const fn event_kind(kind: MessageEventKind) -> EventKind {
    match kind {
        MessageEventKind::Sent => EventKind::Sent,
        MessageEventKind::Delivered => EventKind::Delivered,
        MessageEventKind::Open => EventKind::Open,
        MessageEventKind::Click => EventKind::Click,
        MessageEventKind::Bounce => EventKind::Bounce,
        MessageEventKind::Complaint => EventKind::Complaint,
        MessageEventKind::Unsubscribe => EventKind::Unsubscribe,
    }
}
