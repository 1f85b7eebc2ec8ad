//! Mapping of a provider's groups to roles in workspaces, applied at each sign-in.
//!
//! Groups may change and end a membership that groups gave. One that was given by hand stays as it is, whatever the
//! groups say; an invitation that nobody has accepted gives no access, so groups may replace it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::domain::security::account::{Member, MemberStatus};
use crate::ids::{UserId, WorkspaceId};
use crate::scope::Role;
use crate::time::Timestamp;

/// Maximum length of the name of a group, in characters.
const MAX_GROUP: usize = 512;

/// Role that the members of a group have in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GroupRole {
    /// Name of the group in the claim.
    pub group: String,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The role.
    pub role: Role,
}

/// The text is not a mapping of a group to a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not of the form group=workspace:role, such as staff=wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH:editor; the roles are viewer, editor, admin, owner"
)]
pub struct MalformedGroupRole(String);

impl FromStr for GroupRole {
    type Err = MalformedGroupRole;

    fn from_str(text: &str) -> Result<Self, MalformedGroupRole> {
        let malformed = || MalformedGroupRole(text.chars().take(100).collect());
        // Names of groups may contain `=`, as those of LDAP do; the rest after the last one has none.
        let (group, given) = text.rsplit_once('=').ok_or_else(malformed)?;
        let (workspace, role) = given.split_once(':').ok_or_else(malformed)?;
        let group = group.trim();
        if group.is_empty() || group.chars().count() > MAX_GROUP {
            return Err(malformed());
        }
        Ok(Self {
            group: group.to_owned(),
            workspace: workspace.trim().parse().map_err(|_| malformed())?,
            role: role_named(role.trim()).ok_or_else(malformed)?,
        })
    }
}

const ROLES: [(&str, Role); 4] =
    [("viewer", Role::Viewer), ("editor", Role::Editor), ("admin", Role::Admin), ("owner", Role::Owner)];

fn role_named(name: &str) -> Option<Role> {
    ROLES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
}

impl fmt::Display for GroupRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ROLES.iter().find(|(_, role)| *role == self.role).map_or("", |(name, _)| *name);
        write!(f, "{}={}:{name}", self.group, self.workspace)
    }
}

impl TryFrom<String> for GroupRole {
    type Error = MalformedGroupRole;

    fn try_from(text: String) -> Result<Self, MalformedGroupRole> {
        text.parse()
    }
}

impl From<GroupRole> for String {
    fn from(role: GroupRole) -> Self {
        role.to_string()
    }
}

/// Returns the role in each workspace that a person has by their groups: of several the highest.
pub fn roles_of(map: &[GroupRole], groups: &[String]) -> BTreeMap<WorkspaceId, Role> {
    let mut roles = BTreeMap::new();
    for given in map.iter().filter(|given| groups.contains(&given.group)) {
        let role = roles.entry(given.workspace).or_insert(given.role);
        *role = given.role.max(*role);
    }
    roles
}

/// Change of a membership at a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembershipChange {
    /// The membership stays as it is, or there is none.
    None,
    /// The membership is created or replaced.
    Put(Member),
    /// The membership ends.
    Remove,
}

/// Returns the change of a person's membership in a workspace by their groups. `wanted` is the role that the groups
/// give there.
pub fn follow_groups(
    current: Option<&Member>,
    wanted: Option<Role>,
    (workspace, user): (WorkspaceId, UserId),
    now: Timestamp,
) -> MembershipChange {
    match (current, wanted) {
        (None, Some(role)) => {
            MembershipChange::Put(Member { from_groups: true, ..Member::active(workspace, user, role, now) })
        }
        (Some(member), Some(role)) if member.from_groups && member.role != role => {
            MembershipChange::Put(Member { role, ..member.clone() })
        }
        (Some(member), Some(role)) if !member.from_groups && !member.is_active() => MembershipChange::Put(Member {
            role,
            status: MemberStatus::Active,
            from_groups: true,
            up_to: None,
            ..member.clone()
        }),
        (Some(member), None) if member.from_groups => MembershipChange::Remove,
        _ => MembershipChange::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id as _;

    fn acme() -> WorkspaceId {
        WorkspaceId::from_bytes([1; 16])
    }

    fn other() -> WorkspaceId {
        WorkspaceId::from_bytes([2; 16])
    }

    fn ann() -> UserId {
        UserId::from_bytes([3; 16])
    }

    const NOW: Timestamp = Timestamp::from_millis(0);

    #[test]
    fn a_group_is_mapped_to_a_role_in_a_workspace() {
        let (acme, ann) = (acme(), ann());
        for (group, role) in
            [("staff", "viewer"), ("/ops/all", "owner"), ("CN=Mail,OU=IT", "editor"), ("a:b c", "admin")]
        {
            let text = format!("{group}={acme}:{role}");
            let given: GroupRole = text.parse().unwrap();
            assert_eq!((given.group.as_str(), given.workspace, given.to_string()), (group, acme, text));
        }
        for text in [
            String::new(),
            "staff".to_owned(),
            "staff=".to_owned(),
            format!("={acme}:viewer"),
            format!(" ={acme}:viewer"),
            format!("staff={acme}"),
            format!("staff={acme}:boss"),
            format!("staff={acme}:Viewer"),
            "staff=Acme:viewer".to_owned(),
            format!("staff={ann}:viewer"),
            format!("{}={acme}:viewer", "g".repeat(MAX_GROUP + 1)),
        ] {
            assert!(text.parse::<GroupRole>().is_err(), "{text}");
        }
    }

    #[test]
    fn of_several_groups_the_highest_role_counts() {
        let given = |group: &str, workspace, role| GroupRole { group: group.to_owned(), workspace, role };
        let map = [
            given("staff", acme(), Role::Viewer),
            given("leads", acme(), Role::Admin),
            given("staff", other(), Role::Editor),
            given("nobody", other(), Role::Owner),
        ];
        let of = |groups: &[&str]| roles_of(&map, &groups.iter().map(|&group| group.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["leads", "staff"]), BTreeMap::from([(acme(), Role::Admin), (other(), Role::Editor)]));
        assert_eq!(of(&["staff"]), BTreeMap::from([(acme(), Role::Viewer), (other(), Role::Editor)]));
        assert_eq!(of(&["Staff", "nobody "]), BTreeMap::new(), "names are compared as they are");
    }

    #[test]
    fn groups_change_what_groups_gave_and_nothing_else() {
        let by_hand = Member::active(acme(), ann(), Role::Admin, NOW);
        let by_groups = Member { from_groups: true, ..by_hand.clone() };
        let invited =
            Member { status: MemberStatus::Invited, invited_by: Some("bob@example.com".to_owned()), ..by_hand.clone() };
        let follow = |current: Option<&Member>, wanted| match follow_groups(current, wanted, (acme(), ann()), NOW) {
            MembershipChange::None => "none".to_owned(),
            MembershipChange::Remove => "remove".to_owned(),
            MembershipChange::Put(Member { role, status, from_groups, .. }) => {
                format!("{role:?} {status:?} {from_groups}")
            }
        };
        for (current, wanted, expected) in [
            (None, None, "none"),
            (None, Some(Role::Viewer), "Viewer Active true"),
            (Some(&by_hand), None, "none"),
            (Some(&by_hand), Some(Role::Viewer), "none"),
            (Some(&by_hand), Some(Role::Owner), "none"),
            (Some(&by_groups), Some(Role::Admin), "none"),
            (Some(&by_groups), Some(Role::Viewer), "Viewer Active true"),
            (Some(&by_groups), Some(Role::Owner), "Owner Active true"),
            (Some(&by_groups), None, "remove"),
            (Some(&invited), None, "none"),
            (Some(&invited), Some(Role::Editor), "Editor Active true"),
        ] {
            assert_eq!(follow(current, wanted), expected, "{current:?} {wanted:?}");
        }
    }
}
