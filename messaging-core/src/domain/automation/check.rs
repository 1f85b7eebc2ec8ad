//! Faults of a complete design that depend on its workspace (contract section 13.4, "Checks").
//!
//! The caller looks up the objects that the design names and the settings that its sends need, and passes what it
//! found.

use super::graph::{NodeKind, Send};
use super::parse::{AutomationPlan, Reading};
use crate::domain::campaign::check::{NOT_FOUND, ReferenceTarget};
use crate::domain::campaign::schedule::SenderState;
use crate::domain::channel::Channel;
use crate::domain::segment::filter::Filter;
use crate::domain::segment::parse::Reference;
use crate::domain::template::Parts;
use crate::violation::{FieldCode, Violations};

/// Result of looking up an object that a design names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedDesignReference {
    /// JSON Pointer of the member that names the object.
    pub pointer: String,
    /// Object that the member refers to, by its id.
    pub reference: Reference,
    /// Result of the look-up: what is stored under that id.
    pub target: ReferenceTarget,
}

/// Facts that were looked up for a send node whose template exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendFacts {
    /// The place of its node.
    pub node: usize,
    /// The channel of its template.
    pub channel: Channel,
    /// The parts of its template.
    pub parts: Parts,
    /// True if the channel has settings and this installation has their provider.
    pub channel_is_configured: bool,
    /// State of the sender that the message would have.
    pub sender: SenderState,
}

/// Facts about the workspace that a design depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Result of the look-up of each id in the design.
    pub found: Vec<ResolvedDesignReference>,
    /// Facts about each node that sends.
    pub sends: Vec<SendFacts>,
    /// JSON Pointers of the members with web addresses that may not be called.
    pub refused_urls: Vec<String>,
}

impl Reading {
    /// Returns everything that keeps the design from being active.
    pub fn faults_with(&self, facts: &Facts) -> Violations {
        let mut faults = self.gaps.clone();
        for ResolvedDesignReference { pointer, target, .. } in &facts.found {
            if *target == ReferenceTarget::Nothing {
                faults.add(pointer, FieldCode::NotFound, NOT_FOUND);
            }
        }
        for pointer in &facts.refused_urls {
            let rule = "this address may not be called: https, a public host, no user in it";
            faults.add(pointer, FieldCode::NotAllowed, rule);
        }
        self.check_sends(&facts.sends, &mut faults);
        faults
    }

    fn check_sends(&self, facts: &[SendFacts], faults: &mut Violations) {
        for (index, send) in &self.sends {
            let Some(facts) = facts.iter().find(|facts| facts.node == *index) else { continue };
            let at = |name: &str| format!("/graph/nodes/{index}/config/{name}");
            if send.channel.is_some_and(|channel| channel != facts.channel) {
                faults.add(at("template_id"), FieldCode::Conflict, "the template is for another channel");
                continue;
            }
            send.check_members_of_channel(facts.channel, &at, faults);
            if !send.has_what_is_said(facts) {
                let rule = if facts.channel == Channel::Email {
                    "the template needs a subject and html or text"
                } else {
                    "the template needs a text"
                };
                faults.add(at("template_id"), FieldCode::Required, rule);
            }
            if !facts.channel_is_configured {
                faults.add(at("channel"), FieldCode::NotAllowed, "the channel has no settings");
            }
            match facts.sender {
                SenderState::Verified => {}
                SenderState::Missing => {
                    let rule = "is required: neither the template nor a default sender of the workspace has one";
                    faults.add(at("from_email"), FieldCode::Required, rule);
                }
                SenderState::NotVerified => {
                    let rule = "belongs to no verified domain of the workspace";
                    faults.add(at("from_email"), FieldCode::NotAllowed, rule);
                }
            }
        }
    }
}

impl AutomationPlan {
    /// Returns its filters, each with its JSON Pointer: of the trigger, the goal, the exit conditions and the condition
    /// nodes.
    pub fn filters(&self) -> Vec<(String, &Filter)> {
        let graph = &self.graph;
        let mut found = vec![("/trigger/config/filter".to_owned(), &self.trigger.filter)];
        found.extend(graph.goal.iter().map(|goal| ("/graph/goal".to_owned(), goal)));
        let exit = |(index, filter)| (format!("/graph/exit_conditions/{index}"), filter);
        found.extend(graph.exit_conditions.iter().enumerate().map(exit));
        found.extend(graph.nodes.iter().enumerate().filter_map(|(index, node)| match &node.kind {
            NodeKind::Condition(filter) => Some((format!("/graph/nodes/{index}/config/filter"), filter)),
            _ => None,
        }));
        found
    }
}

impl Send {
    /// Reports members that the channel does not have (second table of contract section 4.1).
    fn check_members_of_channel(&self, channel: Channel, at: &dyn Fn(&str) -> String, faults: &mut Violations) {
        let is_email = channel == Channel::Email;
        let has_subject = is_email || channel == Channel::Push;
        for (name, is_given, is_known) in [
            ("from_email", self.from_email.is_some(), is_email),
            ("from_name", self.from_name.is_some(), is_email),
            ("reply_to", self.reply_to.is_some(), is_email),
            ("subject_override", self.subject_override.is_some(), has_subject),
        ] {
            if is_given && !is_known {
                faults.add(at(name), FieldCode::NotAllowed, format_args!("{channel} has no such field"));
            }
        }
    }

    /// Returns true if the template, with the subject of the node, has the parts that sending needs (contract section
    /// 11).
    fn has_what_is_said(&self, facts: &SendFacts) -> bool {
        let subject = facts.parts.subject || self.subject_override.is_some();
        Parts { subject, ..facts.parts }.suffice(facts.channel)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::automation::Design;

    const TEMPLATE: &str = "tpl_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";

    /// A design whose first node sends.
    fn sending(more: Value) -> Reading {
        let mut config = json!({"template_id": TEMPLATE});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let graph = json!({"nodes": [{"id": "s", "kind": "send", "config": config}]});
        let object = |value: Value| value.as_object().unwrap().clone();
        Design { trigger: object(json!({"kind": "manual"})), graph: object(graph), ..Design::default() }.read()
    }

    fn facts() -> SendFacts {
        SendFacts {
            node: 0,
            channel: Channel::Email,
            parts: Parts { subject: true, html: true, text: false },
            channel_is_configured: true,
            sender: SenderState::Verified,
        }
    }

    /// Checks the faults of a send, told by their places within its config.
    #[track_caller]
    fn check(more: Value, sends: SendFacts, expected: &str) {
        let faults = sending(more).faults_with(&Facts { sends: vec![sends], ..Facts::default() });
        let shown = serde_json::to_value(faults.as_slice()).unwrap();
        let fault = |one: &Value| format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap());
        let mut faults: Vec<_> = shown.as_array().unwrap().iter().map(fault).collect();
        faults.sort();
        assert_eq!(faults.join(", ").replace("/graph/nodes/0/config/", ""), expected);
    }

    #[test]
    fn a_send_needs_a_template_a_channel_and_a_sender() {
        let nothing = || json!({});
        check(nothing(), facts(), "");
        let no_subject = Parts { subject: false, html: true, text: true };
        check(nothing(), SendFacts { parts: no_subject, ..facts() }, "template_id required");
        check(json!({"subject_override": "Hi"}), SendFacts { parts: no_subject, ..facts() }, "");
        let no_body = Parts { subject: true, html: false, text: false };
        check(nothing(), SendFacts { parts: no_body, ..facts() }, "template_id required");
        check(json!({"channel": "sms"}), facts(), "template_id conflict");
        check(
            json!({"channel": "email"}),
            SendFacts { channel_is_configured: false, ..facts() },
            "channel not_allowed",
        );
        check(nothing(), SendFacts { sender: SenderState::Missing, ..facts() }, "from_email required");
        check(nothing(), SendFacts { sender: SenderState::NotVerified, ..facts() }, "from_email not_allowed");
        let text = Parts { subject: false, html: false, text: true };
        let sms = SendFacts { channel: Channel::Sms, parts: text, ..facts() };
        check(nothing(), sms, "");
        let email_only = json!({"from_email": "a@example.com", "from_name": "A", "reply_to": "b@example.com",
            "subject_override": "Hi"});
        check(
            email_only,
            sms,
            "from_email not_allowed, from_name not_allowed, reply_to not_allowed, subject_override not_allowed",
        );
        let push = SendFacts { channel: Channel::Push, ..sms };
        check(json!({"subject_override": "Hi"}), push, "");
    }

    #[test]
    fn what_is_named_is_there() {
        let reference = Reference::Template(TEMPLATE.parse().unwrap());
        let target = ReferenceTarget::Nothing;
        let gone = ResolvedDesignReference { pointer: "/graph/nodes/0/config/template_id".into(), reference, target };
        let target = ReferenceTarget::Other;
        let other = ResolvedDesignReference { pointer: "/trigger/config/list_id".into(), target, ..gone.clone() };
        let refused_urls = vec!["/graph/nodes/3/config/url".to_owned()];
        let faults =
            sending(json!({})).faults_with(&Facts { found: vec![gone, other], refused_urls, ..Facts::default() });
        let codes: Vec<_> = faults.as_slice().iter().map(|fault| fault.code).collect();
        assert_eq!(codes, [FieldCode::NotFound, FieldCode::NotAllowed]);
    }
}
