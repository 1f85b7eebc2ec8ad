//! The sites that mail of a workspace is counted by.
//!
//! A site of the rules is counted under its name. Of the others each workspace has a number a day, the first that its
//! mail goes to, which are likely to be those with most of it; mail to further ones is counted together. So neither the
//! number of rows nor the size of a commit grows with the number of sites.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use messaging_core::domain::channel::provider::SANDBOX;
use messaging_core::domain::delivery::site::{SiteName, SiteRules};
use messaging_core::ids::WorkspaceId;
use messaging_core::time::Timestamp;

/// Sites without a rule that a workspace has counters of, a day.
const MAX_OF_WORKSPACE: usize = 100;

/// Sites without a rule that all workspaces have counters of, a day.
const MAX_IN_ALL: usize = 20_000;

/// Name of all further sites together.
const OTHER: &str = "other";

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// Names sites for counters.
#[derive(Debug)]
pub(crate) struct CountedSites {
    rules: Arc<SiteRules>,
    today: Mutex<Today>,
}

/// The sites without a rule that were named today.
#[derive(Debug, Default)]
struct Today {
    /// Days since 1970 in UTC.
    day: i64,
    of: HashMap<WorkspaceId, HashSet<SiteName>>,
    count: usize,
}

impl CountedSites {
    pub(crate) fn new(rules: Arc<SiteRules>) -> Self {
        Self { rules, today: Mutex::default() }
    }

    /// The rules of sites.
    pub(crate) fn rules(&self) -> &SiteRules {
        &self.rules
    }

    /// The site that mail of a workspace to an exchanger is counted by. `None` for what is no exchanger.
    pub(crate) fn of_exchanger(&self, workspace: WorkspaceId, exchanger: &str, now: Timestamp) -> Option<SiteName> {
        if exchanger == SANDBOX {
            return None;
        }
        let site = self.rules.site_of(&[exchanger])?;
        if self.rules.names(&site) {
            return Some(site);
        }
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        let day = now.as_millis().div_euclid(DAY_MILLIS);
        if today.day != day {
            *today = Today { day, ..Today::default() };
        }
        let Today { of, count, .. } = &mut *today;
        if *count < MAX_IN_ALL {
            let named = of.entry(workspace).or_default();
            if named.len() < MAX_OF_WORKSPACE && !named.contains(&site) {
                named.insert(site.clone());
                *count += 1;
            }
        }
        let is_named = of.get(&workspace).is_some_and(|named| named.contains(&site));
        if is_named { Some(site) } else { SiteName::parse(OTHER).ok() }
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::delivery::site::{Site, SiteLimits};
    use messaging_core::ids::Id as _;

    use super::*;

    #[test]
    fn further_sites_of_a_day_are_counted_together() {
        let gmail = Site {
            name: SiteName::parse("gmail").unwrap(),
            exchangers: vec!["google.com".to_owned()],
            limits: SiteLimits::default(),
        };
        let counted = CountedSites::new(Arc::new(SiteRules::new(SiteLimits::default(), vec![gmail], Vec::new())));
        let [mine, other] = [1, 2].map(|n| WorkspaceId::from_bytes([n; 16]));
        let site = |workspace, exchanger: &str, day: i64| {
            let site = counted.of_exchanger(workspace, exchanger, Timestamp::from_millis(day * DAY_MILLIS));
            site.map(|site| site.as_str().to_owned())
        };
        for n in 0..MAX_OF_WORKSPACE {
            assert_eq!(site(mine, &format!("mx.n{n}.example"), 1), Some(format!("n{n}.example")));
        }
        assert_eq!(site(mine, "mx.more.example", 1).as_deref(), Some("other"));
        assert_eq!(site(mine, "mx2.n7.example", 1).as_deref(), Some("n7.example"));
        assert_eq!(site(mine, "gmail-smtp-in.l.google.com", 1).as_deref(), Some("gmail"));
        assert_eq!(site(other, "mx.more.example", 1).as_deref(), Some("more.example"));
        assert_eq!(site(mine, "mx.more.example", 2).as_deref(), Some("more.example"));
        assert_eq!(site(mine, "sandbox", 2), None);
    }
}
