// What helps a message that was not sent or did not arrive. The server's own cure comes first: a button when it is a
// call with everything in it, else a link to the screen that does it. Where the server names none, advice by code.
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
export function pathArguments(operation, path) {
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
    if (path && SCREENS[operation] && !allowed(operation)) return { text: t("{cure}: an admin of the workspace can do that.", { cure: sentence(cure.text) }) };
    if (path && SCREENS[operation]) return { button: sentence(cure.text), link: SCREENS[operation](path, body), isCure: true };
    if (path && operations[operation].method !== "GET") {
      return { ...CALLS[operation]?.(message, to), button: sentence(cure.text), operation, path, body: body ?? undefined };
    }
    if (code !== "held") return { text: cure.text };
    const system = allowed("getSystem") && { button: t("Open System"), link: href("system") };
    return { text: t("Who runs the server says what becomes of the messages that wait:"), command: "messaging admin resume --queued send", ...system };
  }
  return advice(message, to);
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

// The server offers to take an address off the list as long as it may be taken off.
function hasLeft({ events, explanation }) {
  const { meta } = events.findLast(({ kind }) => kind === "suppressed") ?? {};
  return explanation.code === "suppressed" && ["bounce", "manual", "invalid"].includes(meta?.reason);
}

function advice(message, to) {
  const { explanation: { code }, status, channel } = message;
  const again = maySendAgain(message) && { button: t("Send again"), link: href("send", { like: message.message_id }), needs: "sendMessage" };
  const contact = message.contact_id
    ? { button: t("Open the contact"), link: href(`contacts/${message.contact_id}`), needs: "getContact" }
    : { button: t("Look for the contact"), link: href("contacts", channel === "email" ? { email: to } : { phone: to }), needs: "listContacts" };
  const listed = { button: t("Open the suppression list"), link: href("suppressions", { address: to, channel }), needs: "listSuppressions" };
  const channels = { button: t("Open Channels"), link: href("channels"), needs: "listChannels" };
  const domains = { button: t("Check the domain's records"), link: href("domains"), needs: "listSendingDomains" };
  const texts = {
    // Bounces.
    invalid_recipient: [t("Correct the address, at the contact too. It is on the suppression list now, so nothing more goes to it."), contact],
    invalid_domain: [t("Look for a typing error in the domain, and correct the address at the contact too."), contact],
    mailbox_full: [t("Nothing is wrong on your side. Send again in a few days, or reach the person another way."), again],
    policy: [channel === "email" ? t("Read the server's words: they often name the rule and a page about it. Then check that the records of your domain are right.") : t("Read the provider's words: they often name the rule that was broken."), channel === "email" ? domains : channels],
    content: [t("Change what the server's words point at, such as size, links or wording, and send again."), again],
    unreachable: [t("Check the address for typing errors. If it is right, their server was away: send again later."), again],
    blocked: [t("Only the recipient can change that, by writing to you or by unblocking you. Reach the person another way."), contact],
    unknown: [t("Read the answer of the other side in the attempts below, then correct the address or send again."), again],
    complained: [t("Send nothing more to this address: it is on the suppression list, and complaints harm what you send to others."), listed],
    // Failures.
    render_error: [t("Correct the template or the values that it was given, and send again."), again],
    provider_error: [t("Check the settings of the channel against what the provider says, then send again."), channels],
    no_route: [t("Check the number or address, and whether your provider reaches its country."), channels],
    sender_domain_not_verified: [t("Verify the domain of the sender, then send again."), domains],
    channel_not_configured: [t("Set up a provider for the channel, then send again."), channels],
    attachment_error: [t("Send again with the file attached anew."), again],
    // Suppressed.
    suppressed: hasLeft(message) ? [t("The address is no longer on the list: send it again."), again] : [t("Leave this address alone, unless the person asks for your messages again. Who may change the list finds it there."), listed],
    no_consent: [t("Ask for consent first. Once it is given, record it at the contact."), contact],
    frequency_cap: status === "suppressed"
      ? [t("Nobody has to do anything: later campaigns reach this contact again."), message.campaign_id && { button: t("Open the campaign"), link: href(`campaigns/${message.campaign_id}`), needs: "getCampaign" }]
      : [t("Nobody has to do anything: it is sent as soon as a place is free.")],
    // Waiting.
    queued: [message.campaign_id ? t("Nobody has to do anything: it is sent when its turn comes, at the pace of the campaign.") : t("Nobody has to do anything: it is sent within seconds.")],
    scheduled: [t("Nobody has to do anything. To send it at another time, cancel it and send it anew.")],
    by_timezone: [t("Nobody has to do anything: it is sent when that time has come there.")],
    quiet_hours: [t("Nobody has to do anything: it is sent when the quiet hours are over.")],
    domain_pace: [t("Nobody has to do anything: a steady pace keeps the other side from refusing your mail.")],
    deferred: [t("Nobody has to do anything: it is tried again by itself, until it arrives or expires.")],
    sent: [t("Nobody has to do anything: the report comes from the relay or provider, if it sends one.")],
    cancelled: [t("To send it after all, send it again."), again],
  };
  const [text, action] = texts[code] ?? [];
  if (!text) return null;
  return action && allowed(action.needs) ? { text, button: action.button, link: action.link } : { text };
}
