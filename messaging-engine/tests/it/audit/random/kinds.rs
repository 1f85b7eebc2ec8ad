//! Kinds of resources that are created, changed and deleted in the same way.

use serde_json::{Value, json};

use crate::images::png;

/// Something else that is done to one: `POST` to a path below it.
pub(super) struct Act {
    pub(super) operation: &'static str,
    pub(super) path: &'static str,
    /// Pointers of changes that its entry has.
    pub(super) changes: &'static [&'static str],
    /// True if it makes another one.
    pub(super) is_copy: bool,
}

const fn act(operation: &'static str, path: &'static str, changes: &'static [&'static str]) -> Act {
    Act { operation, path, changes, is_copy: false }
}

/// The body of a change of one, told apart by a number.
type Patch = fn(usize, &Value) -> Value;

/// A kind of resource.
pub(super) struct Kind {
    /// Name in entries.
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    /// Operations that create and delete one.
    pub(super) operations: [&'static str; 2],
    /// The body of a new one, told apart by a number; it may name a public list and a template.
    pub(super) body: fn(usize, &[Value; 2]) -> Vec<u8>,
    /// Operation that changes one, and its body.
    pub(super) patch: Option<(&'static str, Patch)>,
    pub(super) acts: &'static [Act],
    /// Member that has the id.
    pub(super) id: &'static str,
    /// True if values are of a person, and not kept.
    pub(super) is_personal: bool,
    /// True if the entry of a deletion shows the deleted resource.
    pub(super) shows_deletion: bool,
}

impl Kind {
    /// A resource as entries name it; a name of null is not compared.
    pub(super) fn resource(&self, one: &Value) -> Value {
        let named = ["name", "domain", "email", "key"].iter().map(|name| &one[*name]).find(|name| name.is_string());
        json!({"kind": self.name, "id": one[self.id], "name": named.filter(|_| !self.is_personal)})
    }
}

/// A kind without more to it.
const fn plain(
    name: &'static str,
    path: &'static str,
    operations: [&'static str; 2],
    body: fn(usize, &[Value; 2]) -> Vec<u8>,
) -> Kind {
    let (patch, acts): (Option<(&'static str, Patch)>, &[Act]) = (None, &[]);
    Kind { name, path, operations, body, patch, acts, id: "id", is_personal: false, shows_deletion: true }
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

fn renamed(n: usize, _: &Value) -> Value {
    json!({"name": format!("Renamed {n}")})
}

pub(super) const KINDS: &[Kind] = &[
    Kind {
        patch: Some(("updateList", renamed)),
        ..plain("list", "/lists", ["createList", "deleteList"], |n, _| {
            bytes(&json!({"name": format!("List {n}"), "visibility": "public", "description": format!("About {n}")}))
        })
    },
    Kind {
        patch: Some(("updateForm", renamed)),
        ..plain("form", "/forms", ["createForm", "deleteForm"], |n, fixed| {
            bytes(&json!({"name": format!("Form {n}"), "list_ids": [fixed[0]]}))
        })
    },
    Kind {
        patch: Some(("updateSegment", renamed)),
        ..plain("segment", "/segments", ["createSegment", "deleteSegment"], |n, _| {
            bytes(&json!({"name": format!("Segment {n}"), "kind": "dynamic", "filter": {}}))
        })
    },
    Kind {
        patch: Some(("updateCustomField", |n, _| json!({"label": format!("Relabelled {n}")}))),
        ..plain("custom_field", "/custom-fields", ["createCustomField", "deleteCustomField"], |n, _| {
            bytes(&json!({"key": format!("f{n}"), "type": "string", "label": format!("Field {n}")}))
        })
    },
    Kind {
        patch: Some((
            "updateTemplate",
            |n, before| json!({"name": before["name"], "channel": "email", "subject": format!("Subject {n}")}),
        )),
        ..plain("template", "/templates", ["createTemplate", "deleteTemplate"], |n, _| {
            bytes(&json!({"name": format!("Template {n}"), "channel": "email", "subject": "Hi", "text": "Hello"}))
        })
    },
    Kind {
        patch: Some(("updateCampaign", renamed)),
        acts: &[Act {
            operation: "duplicateCampaign",
            path: "duplicate",
            changes: &["/name", "/channel", "/template_id"],
            is_copy: true,
        }],
        ..plain("campaign", "/campaigns", ["createCampaign", "deleteCampaign"], |n, fixed| {
            bytes(&json!({"name": format!("Campaign {n}"), "channel": "email", "template_id": fixed[1],
                "audience": {"list_ids": [fixed[0]]}}))
        })
    },
    Kind {
        patch: Some(("updateAutomation", renamed)),
        acts: &[act("activateAutomation", "activate", &["/status"]), act("pauseAutomation", "pause", &["/status"])],
        ..plain("automation", "/automations", ["createAutomation", "deleteAutomation"], |n, _| {
            let url = format!("https://acme.com/node?token=hunter22-of-node-{n}");
            let headers = json!({"Authorization": format!("Bearer hunter22-of-header-{n}")});
            let node = json!({"id": "w", "kind": "webhook", "config": {"url": url, "headers": headers}});
            bytes(
                &json!({"name": format!("Automation {n}"), "trigger": {"kind": "manual"}, "graph": {"nodes": [node]}}),
            )
        })
    },
    Kind {
        acts: &[act("rotateApiKey", "rotate", &["/key", "/prefix"])],
        ..plain("api_key", "/api-keys", ["createApiKey", "deleteApiKey"], |n, _| {
            bytes(&json!({"name": format!("Key {n}"), "scopes": ["contacts:read"]}))
        })
    },
    Kind {
        patch: Some(("updateWebhook", |n, _| {
            let event = ["sent", "open", "click"][n % 3];
            json!({"events": [event]})
        })),
        acts: &[
            act("pauseWebhook", "pause", &["/status"]),
            act("resumeWebhook", "resume", &["/status"]),
            act("rotateWebhookSecret", "rotate-secret", &["/secret"]),
        ],
        ..plain("webhook", "/webhooks", ["createWebhook", "deleteWebhook"], |n, _| {
            let url = format!("https://acme.com/hook?token=hunter22-of-hook-{n}");
            bytes(&json!({"url": url, "events": ["bounce"]}))
        })
    },
    Kind {
        patch: Some(("updateSendingDomain", |_, before| json!({"open_tracking": before["open_tracking"] != true}))),
        acts: &[act("rotateDkim", "rotate-dkim", &["/dkim"])],
        ..plain("sending_domain", "/sending-domains", ["createSendingDomain", "deleteSendingDomain"], |n, _| {
            bytes(&json!({"domain": format!("d{n}.test")}))
        })
    },
    Kind {
        patch: Some(("updateIpPool", renamed)),
        ..plain("ip_pool", "/ip-pools", ["createIpPool", "deleteIpPool"], |n, _| {
            bytes(&json!({"name": format!("Pool {n}"), "ips": ["203.0.113.7"]}))
        })
    },
    Kind {
        patch: Some((
            "updateMember",
            |_, before| json!({"role": if before["role"] == "viewer" { "editor" } else { "viewer" }}),
        )),
        acts: &[act("createMemberTicket", "ticket", &[])],
        id: "user_id",
        ..plain("member", "/members", ["createMember", "deleteMember"], |n, _| {
            bytes(&json!({"email": format!("m{n}@acme.com"), "role": "viewer"}))
        })
    },
    Kind {
        is_personal: true,
        shows_deletion: false,
        ..plain("suppression", "/suppressions", ["createSuppression", "deleteSuppression"], |n, _| {
            bytes(&json!({"channel": "email", "address": format!("s{n}@example.com"), "reason": "manual"}))
        })
    },
    Kind {
        shows_deletion: false,
        ..plain("image", "/images", ["createImage", "deleteImage"], |n, _| png(u8::try_from(n % 256).unwrap()))
    },
];
