//! Cases for sending domains.

use messaging_core::changes::{DocumentKey, Expect, Write};
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::domain::mail::sending_domain::{Check, DkimKey, DomainStatus, SendingDomain};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;

use super::sample::{at, domain, id};
use super::{all_pages, first, put, refuse};

/// Returns the write that creates a domain.
fn add(domain: &SendingDomain) -> Write {
    Write::put(domain.clone(), Expect::Absent)
}

/// A domain is found by id and by name, with all fields.
pub async fn domains_round_trip(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let key = DkimKey {
        selector: "mk01234567".to_owned(),
        algorithm: Algorithm::RsaSha256,
        public: "MIIB".to_owned(),
        sealed: "sealed:1:AAAA".to_owned(),
        check: Check::verified_but("Nearly right."),
        created_at: at(1),
        verified_at: Some(at(2)),
    };
    let complete = SendingDomain {
        tracking_subdomain: Some("links.mail.example.org".to_owned()),
        open_tracking: false,
        dkim: vec![key],
        spf: Check::failed("Wrong."),
        last_checked_at: Some(at(3)),
        broken_since: Some(at(4)),
        ..domain(workspace, "mail.example.org")
    };
    let bare = SendingDomain {
        status: DomainStatus::Pending,
        verified_at: None,
        ..domain(workspace, "xn--bcher-kva.example")
    };
    put(store, [add(&complete), add(&bare)]).await;
    for domain in [&complete, &bare] {
        let found = store.domain(workspace, domain.id).await.unwrap().unwrap();
        assert_eq!((&found.record, found.revision), (domain, 1));
        assert_eq!(store.domain_by_name(workspace, &domain.domain).await.unwrap(), Some(found));
    }
    assert_eq!(store.domain_by_name(workspace, "example.org").await.unwrap(), None);
    let failed = SendingDomain { status: DomainStatus::Failed, ..complete };
    put(store, [Write::put(failed.clone(), Expect::Revision(1))]).await;
    assert_eq!(store.domain(workspace, failed.id).await.unwrap().unwrap().record, failed);
}

/// A workspace has at most one domain of a name; two workspaces may each have one.
pub async fn name_is_unique_in_its_workspace(store: &dyn Store) {
    let (mine, other) = (id(), id());
    put(store, [add(&domain(mine, "example.org"))]).await;
    refuse(store, [add(&domain(mine, "example.org"))]).await;
    put(store, [add(&domain(other, "example.org"))]).await;
}

/// A look-up by name alone finds the domains of all workspaces that have ever verified the name, page by page in the
/// order of the workspaces, and none of those that only claim it.
pub async fn a_name_is_found_in_every_workspace(store: &dyn Store) {
    let verified = |status| SendingDomain { status, verified_at: Some(at(2)), ..domain(id(), "example.org") };
    let mut domains = vec![verified(DomainStatus::Verified), verified(DomainStatus::Failed)];
    domains.push(verified(DomainStatus::Verified));
    let claim = || SendingDomain { status: DomainStatus::Pending, verified_at: None, ..domain(id(), "example.org") };
    put(store, domains.iter().map(add).collect::<Vec<_>>()).await;
    put(store, [add(&claim()), add(&claim()), add(&domain(id(), "mail.example.org"))]).await;
    domains.sort_by_key(|domain| domain.workspace_id);
    let named = async |name, after, limit| store.domains_named(name, after, limit).await.unwrap();
    assert_eq!(named("example.org", None, 10).await, domains);
    assert_eq!(named("example.org", None, 2).await, domains[..2]);
    assert_eq!(named("example.org", Some(domains[1].workspace_id), 2).await, domains[2..]);
    assert_eq!(named("example.org", Some(domains[2].workspace_id), 2).await, []);
    assert_eq!(named("org", None, 10).await, []);
}

/// The listing for checks of the installation has the domains of all workspaces by name, up to its limit.
pub async fn all_domains_are_listed_by_name(store: &dyn Store) {
    let domains = ["b.example", "a.example", "c.example"].map(|name| domain(id(), name));
    put(store, domains.iter().map(add).collect::<Vec<_>>()).await;
    let names = async |limit| {
        let found = store.all_domains(limit).await.unwrap();
        found.into_iter().map(|domain| domain.domain).collect::<Vec<_>>()
    };
    assert_eq!(names(10).await, ["a.example", "b.example", "c.example"]);
    assert_eq!(names(2).await, ["a.example", "b.example"]);
}

/// A deleted domain is gone, its name can be taken again, and a write of its old record is a conflict. Deleting twice
/// is no conflict, and deleting it for another workspace does nothing.
pub async fn a_deleted_name_is_free(store: &dyn Store) {
    let (mine, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let old = domain(mine, "example.org");
    put(store, [add(&old)]).await;
    put(store, [Write::Delete(DocumentKey::Domain(other, old.id))]).await;
    assert!(store.domain(mine, old.id).await.unwrap().is_some());
    for _ in 0..2 {
        put(store, [Write::Delete(DocumentKey::Domain(mine, old.id))]).await;
    }
    assert_eq!(store.domain(mine, old.id).await.unwrap(), None);
    assert_eq!(store.domain_by_name(mine, "example.org").await.unwrap(), None);
    refuse(store, [Write::put(old.clone(), Expect::Revision(1))]).await;
    let new = domain(mine, "example.org");
    put(store, [add(&new)]).await;
    assert_eq!(store.domain_by_name(mine, "example.org").await.unwrap().unwrap().record.id, new.id);
}

/// The pages of a listing neither skip nor repeat a domain while others are added.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let workspace: WorkspaceId = id();
    let new = || {
        let name: WorkspaceId = id();
        domain(workspace, &format!("{name}.example"))
    };
    let mut expected = Vec::new();
    for _ in 0..5 {
        let domain = new();
        put(store, [add(&domain)]).await;
        expected.insert(0, domain);
    }
    let add_more = async || put(store, [add(&new())]).await;
    let listed = all_pages(2, async |page| store.domains(workspace, page).await, add_more).await;
    assert_eq!(listed, expected);
}

/// A domain cannot be read through another workspace, nor moved to it.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (mine, other) = (id(), id());
    let domain = domain(mine, "example.org");
    put(store, [add(&domain)]).await;
    assert_eq!(store.domain(other, domain.id).await.unwrap(), None);
    assert_eq!(store.domain_by_name(other, "example.org").await.unwrap(), None);
    assert_eq!(store.domains(other, first(10)).await.unwrap().items, []);
    let moved = SendingDomain { workspace_id: other, ..domain };
    refuse(store, [Write::put(moved, Expect::Revision(1))]).await;
}
