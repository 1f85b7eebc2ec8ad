//! Groups of operations, with their descriptions.

use messaging_engine::ops::Endpoint;

/// The groups in the order in which a newcomer needs them: accounts, content and recipients, operation.
pub(super) const ALL: [&str; 33] = [
    "auth",
    "factor",
    "session",
    "invitation",
    "workspace",
    "member",
    "key",
    "message",
    "template",
    "image",
    "domain",
    "pool",
    "channel",
    "webhook",
    "sandbox",
    "suppression",
    "contact",
    "import",
    "custom-field",
    "list",
    "form",
    "segment",
    "event",
    "campaign",
    "automation",
    "analytics",
    "deliverability",
    "audit",
    "request",
    "system",
    "queue",
    "source",
    "health",
];

/// The word operations are grouped by: the first of the command's words.
pub(super) fn of(endpoint: &Endpoint) -> &'static str {
    endpoint.cli.split(' ').next().filter(|word| !word.is_empty()).unwrap_or("service")
}

/// The description of a group, by the first word of its commands.
pub(super) fn description(tag: &str) -> &'static str {
    match tag {
        "analytics" => "How much was sent, delivered, opened and clicked over time.",
        "audit" => "Who changed what: keys, members, settings, domains, campaigns and the rest, entry by entry.",
        "auth" => "Sign in as a person, and see who one is. Programs use API keys.",
        "automation" => "What happens to a contact after something happened: messages, waits, branches, webhooks.",
        "campaign" => "One message to many: audience, time, variants, and what became of each recipient.",
        "channel" => "Which provider each channel goes through, and with which settings.",
        "contact" => "The people messages are for: identifiers, attributes, consent; erasure and export.",
        "custom-field" => "Attributes of contacts that have a declared type.",
        "deliverability" => "How mail arrives: by mailbox provider, sending domain and IP pool, and in a sentence.",
        "domain" => "The domains mail is sent from: their DNS records, keys and verification.",
        "factor" => "Second factors of a person, which every sign-in asks for, and recovery codes.",
        "event" => "What contacts did in your product; segments and automations look at it.",
        "form" => "Forms by which readers subscribe to public lists.",
        "health" => "Whether the server can take requests.",
        "image" => "Pictures that mail shows by their address.",
        "import" => "Files of contacts: announce, upload, follow.",
        "invitation" => "Workspaces that a person is invited to; a membership opens nothing before they accept.",
        "key" => "API keys: what programs sign their requests with.",
        "list" => "Lists that contacts are put on.",
        "member" => "The people of a workspace and their roles.",
        "message" => "Single messages: send, follow, cancel, and what was said on the wire.",
        "pool" => {
            "Named sets of the addresses that mail leaves from; a sending domain uses one, and may use another for marketing."
        }
        "queue" => {
            "What waits to be sent in the whole installation, and how an operator holds it back, tries it again or gives it up."
        }
        "request" => "Requests that the workspace's programs and people made, with answers of those that failed.",
        "sandbox" => "What the sandbox captured instead of sending it.",
        "segment" => "Contacts that a filter matches, kept up to date.",
        "session" => "The sign-ins of a person: where, since when, and how to end one.",
        "source" => {
            "The addresses that mail leaves from, how far each has warmed up, and how its mail fares at each site; for operators."
        }
        "suppression" => "Addresses that are not written to, and why.",
        "system" => "The state of the installation: queues, nodes, disk, checks.",
        "template" => "What messages say: sources with versions, and previews.",
        "webhook" => "Where events are reported to, each delivery, and replays.",
        "workspace" => "Workspaces: everything belongs to one, and none sees another.",
        _ => "",
    }
}
