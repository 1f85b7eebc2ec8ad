//! Lanes: groups of jobs that share concurrency, pace and back-off.
//!
//! A lane is a class, a workspace where there is one, and a resource that may be slow or down: the domain of
//! recipients, a receiver of webhooks. All lanes of one class and workspace are a [`Flow`]; flows take turns by weight
//! ([`FairTurns`](super::fair_turns::FairTurns)), lanes of a flow by how long they waited.
//!
//! Mail of a campaign or an automation has a lane for each sender, so that senders take turns; lanes that differ in the
//! sender alone share one limit ([`Lane::shared`]), because it is the resource that is slow.
//!
//! All jobs of a lane are claimed by one process at a time. If that process has no address that a message may leave
//! from, the message is moved to a parallel lane ([`Lane::routed`]), which another process claims.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::WorkspaceId;

/// Separator before the sender in the text form of a lane.
const SENDER: char = '#';

/// Separator before the number of a parallel lane.
const ROUTE: char = '~';

/// Urgency of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobClass {
    /// Somebody waits for the job: a password reset, a webhook. Claimed first.
    Transactional,
    /// The job is one of many that nobody waits for, such as a message of a campaign. Claimed for the places that are
    /// left, and for at least one of `BULK_SHARE` places.
    Bulk,
}

impl JobClass {
    /// Every class, in the order in which they are claimed.
    pub const ALL: [Self; 2] = [Self::Transactional, Self::Bulk];

    /// Returns the letter in the text form of a lane.
    const fn letter(self) -> &'static str {
        match self {
            Self::Transactional => "t",
            Self::Bulk => "b",
        }
    }
}

/// The jobs of one class for one workspace, which take turns with those of other flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The class.
    pub class: JobClass,
    /// Workspace whose jobs these are; `None` for those of the installation.
    pub workspace: Option<WorkspaceId>,
}

impl Flow {
    /// Parses a text form, `t/ws_…` or `b/-`; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (letter, workspace) = text.split_once('/')?;
        let class = JobClass::ALL.into_iter().find(|class| class.letter() == letter)?;
        let workspace = match workspace {
            "-" => None,
            id => Some(id.parse().ok()?),
        };
        Some(Self { class, workspace })
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.class.letter())?;
        match self.workspace {
            Some(workspace) => write!(f, "/{workspace}"),
            None => f.write_str("/-"),
        }
    }
}

/// A lane. Lanes are equal if their text forms are, which stores keep: `t/ws_…/email:example.org`.
///
/// A text of another form is the lane of a transactional resource of no workspace.
#[derive(Clone)]
pub struct Lane {
    text: Arc<str>,
    flow: Flow,
    /// Place in `text` at which the resource begins; `resource_end` is where it ends.
    resource_at: usize,
    resource_end: usize,
}

impl Lane {
    /// Returns the lane of a resource.
    pub fn new(class: JobClass, workspace: WorkspaceId, resource: &str) -> Self {
        Self::of(Flow { class, workspace: Some(workspace) }, resource)
    }

    /// Returns the lane of a resource for transactional work of the installation.
    pub fn of_installation(resource: &str) -> Self {
        let lane = Self::parse(resource);
        // A resource that looks like a lane itself gets the prefix of its flow.
        let flow = Flow { class: JobClass::Transactional, workspace: None };
        if lane.resource_at == 0 { lane } else { Self::of(flow, resource) }
    }

    fn of(flow: Flow, resource: &str) -> Self {
        let text = format!("{flow}/{resource}");
        let resource_end = Self::shared_part(&text).len();
        Self { resource_at: text.len() - resource.len(), resource_end, text: text.into(), flow }
    }

    /// Returns the lane of one of several senders that use the resource: `b/ws_…/email:example.org#cmp_…`. No sender
    /// may contain `~`.
    #[must_use]
    pub fn of_sender(&self, sender: impl fmt::Display) -> Self {
        Self::parse(&format!("{}{SENDER}{sender}", self.shared()))
    }

    /// Returns a lane parallel to this one, `t/ws_…/email:example.org#~7`: it has the same class, resource, sender and
    /// limits, but another process may claim it.
    #[must_use]
    pub fn routed(&self, route: u16) -> Self {
        Self::parse(&format!("{}{SENDER}{}{ROUTE}{route}", self.shared(), self.sender().unwrap_or_default()))
    }

    /// Returns the lane that this one is parallel to; the lane itself if it has no route.
    #[must_use]
    pub fn unrouted(&self) -> Self {
        match (self.route(), self.sender()) {
            (None, _) => self.clone(),
            (Some(_), None) => Self::parse(self.shared()),
            (Some(_), Some(sender)) => self.of_sender(sender),
        }
    }

    /// Parses a text form; every text is a lane.
    pub fn parse(text: &str) -> Self {
        let flow_end = text.match_indices('/').nth(1).map(|(at, _)| at);
        let parsed = flow_end.and_then(|end| Some((Flow::parse(text.get(..end)?)?, end + 1)));
        let (flow, resource_at) = parsed.unwrap_or((Flow { class: JobClass::Transactional, workspace: None }, 0));
        Self { text: text.into(), flow, resource_at, resource_end: Self::shared_part(text).len() }
    }

    /// Returns the text form of a lane without its sender and route, if it has them.
    pub fn shared_part(text: &str) -> &str {
        text.rsplit_once(SENDER).map_or(text, |(shared, _)| shared)
    }

    /// Returns the text form.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the flow of the lane: its class and workspace.
    pub const fn flow(&self) -> Flow {
        self.flow
    }

    /// Returns the class.
    pub const fn class(&self) -> JobClass {
        self.flow.class
    }

    /// Returns the resource, which its jobs share with those of other senders: `email:example.org`.
    pub fn resource(&self) -> &str {
        self.text.get(self.resource_at..self.resource_end).unwrap_or_default()
    }

    /// Returns the sender, if the lane is that of one of several.
    pub fn sender(&self) -> Option<&str> {
        let rest = self.behind_resource()?;
        let sender = rest.split_once(ROUTE).map_or(rest, |(sender, _)| sender);
        Some(sender).filter(|sender| !sender.is_empty() || rest.is_empty())
    }

    /// Returns the number of a parallel lane; `None` for any other.
    pub fn route(&self) -> Option<&str> {
        Some(self.behind_resource()?.split_once(ROUTE)?.1)
    }

    fn behind_resource(&self) -> Option<&str> {
        self.text.get(self.resource_end..)?.strip_prefix(SENDER)
    }

    /// Returns the text form of the lane that all senders to the resource have in common, by which limits are counted.
    pub fn shared(&self) -> &str {
        self.text.get(..self.resource_end).unwrap_or_default()
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Lane {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Lane {}

impl PartialEq<&str> for Lane {
    fn eq(&self, other: &&str) -> bool {
        &*self.text == *other
    }
}

impl Hash for Lane {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Same as for its text, by which maps are searched.
        self.text.hash(state);
    }
}

impl Borrow<str> for Lane {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl From<&str> for Lane {
    fn from(text: &str) -> Self {
        Self::parse(text)
    }
}

impl Serialize for Lane {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Lane {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id as _;

    #[test]
    fn text_forms_round_trip() {
        let workspace = WorkspaceId::from_bytes([7; 16]);
        for class in JobClass::ALL {
            for resource in ["email:example.org", "sms", "", "a/b", "t/-/x"] {
                let lane = Lane::new(class, workspace, resource);
                let read = Lane::parse(lane.as_str());
                assert_eq!(read, lane);
                assert_eq!((read.class(), read.flow().workspace), (class, Some(workspace)));
                assert_eq!(read.resource(), resource);
            }
        }
        assert_eq!(
            Lane::new(JobClass::Bulk, workspace, "email:example.org").as_str(),
            format!("b/{workspace}/email:example.org")
        );
    }

    #[test]
    fn senders_have_lanes_of_their_own_that_share_a_limit() {
        let all = Lane::new(JobClass::Bulk, WorkspaceId::from_bytes([7; 16]), "email:example.org");
        let (one, other) = (all.of_sender("cmp_1"), all.of_sender("cmp_2"));
        assert_eq!(one.as_str(), format!("{all}#cmp_1"));
        assert_eq!(one.of_sender("cmp_2"), other);
        for lane in [&one, &other, &Lane::parse(one.as_str()), &all] {
            assert_eq!((lane.shared(), lane.resource(), lane.flow()), (all.as_str(), "email:example.org", all.flow()));
        }
        assert!(one != other && one != all);
        // A sender begins nowhere but behind the resource.
        let odd = Lane::parse("#/x/y");
        assert_eq!((odd.as_str(), odd.resource(), odd.shared()), ("#/x/y", "", ""));
    }

    #[test]
    fn a_lane_beside_shares_all_but_its_place() {
        let all = Lane::new(JobClass::Bulk, WorkspaceId::from_bytes([7; 16]), "email:example.org");
        let of_sender = all.of_sender("cmp_1");
        for (lane, text) in [(&all, format!("{all}#~7")), (&of_sender, format!("{all}#cmp_1~7"))] {
            let beside = lane.routed(7);
            assert_eq!((beside.as_str(), beside.route(), lane.route()), (text.as_str(), Some("7"), None));
            assert_eq!(
                (beside.shared(), beside.resource(), beside.flow()),
                (all.as_str(), "email:example.org", all.flow())
            );
            assert_eq!((beside.sender(), beside.unrouted()), (lane.sender(), lane.clone()));
            assert_eq!((beside.routed(8), lane.unrouted()), (lane.routed(8), lane.clone()));
        }
        assert_eq!((all.sender(), all.routed(7).sender(), of_sender.sender()), (None, None, Some("cmp_1")));
    }

    #[test]
    fn other_texts_are_transactional_and_of_no_workspace() {
        let workspace = WorkspaceId::from_bytes([7; 16]);
        for text in [
            "",
            "imports",
            "email:example.org",
            "b/nobody/email:example.org",
            &format!("x/{workspace}/a"),
            &format!("b/{workspace}"),
            &format!("segments:{workspace}"),
        ] {
            let lane = Lane::parse(text);
            assert_eq!(lane.flow(), Flow { class: JobClass::Transactional, workspace: None }, "{text}");
            assert_eq!((lane.as_str(), lane.resource()), (text, text));
            assert_eq!(Lane::of_installation(text), lane);
        }
        let disguised = Lane::of_installation(&format!("b/{workspace}/a"));
        assert_eq!(disguised.resource(), format!("b/{workspace}/a"));
        assert_eq!(Lane::parse(disguised.as_str()).flow(), Flow { class: JobClass::Transactional, workspace: None });
    }
}
