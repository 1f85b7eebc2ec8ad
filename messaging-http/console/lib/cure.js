// What helps a message that was not sent or did not arrive. The server's own cure comes first: a button when it is a
// call with everything in it, else its words and a link to the screen where they are followed.
import { operations } from "../operations.js";
import { allowed } from "./api.js";
import { href } from "./route.js";
import { t } from "./ui.js";

// Operations that want more than the cure holds, and the screens that ask for it.
const SCREENS = {
  previewTemplate: (path, body) => href(`templates/${path.id}`, { contact_id: body?.contact_id }),
  listSendingDomains: () => href("domains"),
  setChannel: () => href("channels"),
};

/** The arguments in a path that the server wrote: `{ workspace_id, id }`. */
function pathArguments(operation, path) {
  const names = [];
  const pattern = operations[operation].path.replace(/\{(\w+)\}/g, (_, name) => {
    names.push(name);
    return "([^/]+)";
  });
  const found = new RegExp(`${pattern}$`).exec(path ?? "");
  return found && Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(found[at + 1])]));
}

/**
 * Whether the same may be sent to the same address by hand: not what a campaign or an automation sent, whose rules would
 * be passed over, and not to who complained.
 */
export function maySendAgain({ campaign_id: campaign, automation_id: automation, status, events }) {
  const reason = events.findLast(({ kind }) => kind === "suppressed")?.meta.reason;
  return allowed("sendMessage") && allowed("getMessageContent") && !campaign && !automation && status !== "complained"
    && !(status === "suppressed" && reason === "complaint");
}

const sentence = (text) => text.replace(/\.$/, "");

/**
 * What helps: `{ text, button, operation, path, body }` for a call, `{ text, button, link }` for a screen, `{ text }` for
 * what nobody has to do or only a person can, with `command` where that is one of the server. `to` is the recipient, if
 * it is known.
 */
export function cureOf(message, to) {
  const { cure, code } = message.explanation;
  if (cure) {
    const { operation, body } = cure;
    const path = operation && operations[operation] && pathArguments(operation, cure.path);
    if (path && operation === "resumeQueue") {
      return allowed(operation) ? { button: t("Resume this part of the queue"), operation, path, body } : { text: cure.text };
    }
    if (path && SCREENS[operation] && !allowed(operation)) return { text: t("{cure}: an admin of the workspace can do that.", { cure: sentence(cure.text) }) };
    if (path && SCREENS[operation]) return { button: sentence(cure.text), link: SCREENS[operation](path, body), isCure: true };
    if (path && operations[operation].method !== "GET") {
      return { ...CALLS[operation]?.(message, to), button: sentence(cure.text), operation, path, body: body ?? undefined };
    }
    if (code !== "held") return { text: cure.text, ...linkOf(message, to) };
    const system = allowed("getSystem") && { button: t("Open System"), link: href("system") };
    return { text: t("The operator of the server decides about the waiting messages:"), command: "messaging admin resume --queued send", ...system };
  }
  const text = waiting(message);
  return text && { text, ...linkOf(message, to) };
}

// What is asked before a call is made.
const CALLS = {
  deleteSuppression: (message, to) => ({
    title: t("Take this address off the list?"),
    asks: t("1 address is mailed again from now on: {to}. This message stays as it is; send it again afterwards.", { to: to ?? t("the recipient") }),
    action: t("Take it off the list"),
    done: t("The address is off the list"),
    after: t("The address is off the list. Messages to it are sent again; this one was not."),
  }),
  updateContact: (message) => ({
    title: t("Record the consent?"),
    asks: message.channel === "email"
      ? t("1 contact gets marketing emails from now on. Record it only if that person has agreed.")
      : t("1 contact gets marketing messages from now on. Record it only if that person has agreed."),
    action: t("Record the consent"),
    done: t("The consent is recorded"),
    after: t("The consent is recorded. The next campaign reaches this contact; this message was not sent."),
  }),
  scheduleCampaign: () => ({
    title: t("Resume the campaign?"),
    asks: t("The 1 campaign goes on: this message and all others of it that wait are sent."),
    action: t("Resume"),
    done: t("The campaign is resumed"),
  }),
};

// The server names no cure where nobody has to do anything.
function waiting({ explanation: { code }, campaign_id: campaign }) {
  return {
    queued: campaign ? t("Nobody has to do anything: it is sent when its turn comes, at the pace of the campaign.") : t("Nobody has to do anything: it is sent within seconds."),
    scheduled: t("Nobody has to do anything. To send it at another time, cancel it and send it anew."),
    by_timezone: t("Nobody has to do anything: it is sent when that time has come there."),
    quiet_hours: t("Nobody has to do anything: it is sent when the quiet hours are over."),
    frequency_cap: t("Nobody has to do anything: it is sent as soon as a place is free."),
    domain_pace: t("Nobody has to do anything: a steady pace keeps the other side from refusing your mail."),
    warming_up: t("Nobody has to do anything: a new address sends little more each day, so that mailbox providers get to know it."),
    braked: t("Nobody has to do anything unless it lasts: sending slowed down because the mailbox provider complained. The page Deliverability says why."),
    no_source: t("Whoever runs the servers has to do something: none of them has an address that this mail may leave from."),
    deferred: t("Nobody has to do anything: it is tried again by itself, until it arrives or expires."),
    sent: t("Nobody has to do anything: the report comes from the relay or provider, if it sends one."),
    cancelled: t("To send it after all, send it again."),
  }[code];
}

// The screen where what the server advises is done: `{ button, link }`, or nothing.
function linkOf(message, to) {
  const { explanation: { code }, status, channel, campaign_id: campaign } = message;
  const again = maySendAgain(message) && [t("Send again"), href("send", { like: message.message_id }), "sendMessage"];
  const contact = message.contact_id && [t("Open the contact"), href(`contacts/${message.contact_id}`), "getContact"];
  const listed = [t("Open the suppression list"), href("suppressions", { address: to, channel }), "listSuppressions"];
  const channels = [t("Open Channels"), href("channels"), "listChannels"];
  const domains = [t("Check the domain's records"), href("domains"), "listSendingDomains"];
  const { meta } = message.events.findLast(({ kind }) => kind === "suppressed") ?? {};
  const [button, link, needs] = {
    invalid_recipient: contact,
    invalid_domain: contact,
    mailbox_full: again,
    policy: channel === "email" ? domains : channels,
    content: again,
    unreachable: again,
    blocked: contact,
    unknown: again,
    complained: listed,
    render_error: again,
    provider_error: channels,
    no_route: channels,
    attachment_error: again,
    braked: [t("Open Deliverability"), href("deliverability"), "getDeliverability"],
    warming_up: [t("Open Deliverability"), href("deliverability"), "getDeliverability"],
    no_source: [t("Open System"), href("system"), "getSystem"],
    // While the address is on the list, the cure is to take it off.
    suppressed: ["complaint", "unsubscribe"].includes(meta?.reason) ? listed : again,
    no_consent: contact,
    frequency_cap: status === "suppressed" && campaign && [t("Open the campaign"), href(`campaigns/${campaign}`), "getCampaign"],
    cancelled: again,
  }[code] || [];
  return link && allowed(needs) ? { button, link } : {};
}
