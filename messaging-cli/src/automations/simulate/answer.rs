//! The answer of `automation simulate`, in the form of the API.

use messaging_engine::ops::automations::simulate::SimulationReport;
use messaging_http::standalone::rehearsal::ContactReport;
use serde::Serialize;

/// The answer of the API for one contact, or a list with one for each of several contacts.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Answer<'a> {
    One(&'a SimulationReport),
    Several { contacts: Vec<ContactAnswer<'a>> },
}

/// The answer for one of several contacts.
#[derive(Serialize)]
pub(super) struct ContactAnswer<'a> {
    external_id: Option<&'a str>,
    #[serde(flatten)]
    report: &'a SimulationReport,
}

impl<'a> Answer<'a> {
    pub(super) fn of(told: &'a [ContactReport]) -> Self {
        if let [one] = told {
            return Self::One(&one.report);
        }
        let contact =
            |one: &'a ContactReport| ContactAnswer { external_id: one.external_id.as_deref(), report: &one.report };
        Self::Several { contacts: told.iter().map(contact).collect() }
    }
}
