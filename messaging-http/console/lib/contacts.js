// What the screens about contacts share: names of things, how a contact is called, files to keep.
import { html, t } from "./ui.js";
import { allowed, call, seesAddresses } from "./api.js";

export const CHANNELS = [
  ["email", "Email"], ["sms", "SMS"], ["push", "Push"], ["telegram", "Telegram"], ["whatsapp", "WhatsApp"], ["viber", "Viber"],
];

/** What people read for a channel. */
export function channelName(channel) {
  return t(CHANNELS.find(([value]) => value === channel)?.[1] ?? channel);
}

/** What a contact is called: the address first, since it is the only thing that nearly all have. */
export function addressOf(contact) {
  return contact.email ?? contact.phone ?? contact.external_id ?? contact.id;
}

/** The address of a contact on a channel; that of push may be several. */
export function addressFor(contact, channel) {
  if (channel === "email") return contact.email;
  if (channel === "telegram") return contact.attributes.telegram_chat_id;
  return channel === "push" ? contact.attributes.push_token : contact.phone;
}

/** The name of a person, when the attributes hold one under a usual key. */
export function nameOf({ attributes = {} }) {
  const { name, full_name: full, first_name: first, last_name: last } = attributes;
  const text = name ?? full ?? [first, last].filter((part) => typeof part === "string").join(" ");
  return typeof text === "string" ? text : "";
}

/** What somebody wrote, in the direction of its own script. */
export function Written({ children }) {
  return html`<span dir="auto">${children}</span>`;
}

/** Whether somebody agreed to marketing, in a word. */
export function consentWord(value) {
  if (value === true) return t("Agreed");
  return value === false ? t("Refused") : t("Not asked");
}

/** Tags, or nothing. */
export function Tags({ tags }) {
  return tags.map((tag) => html`<span class="tag" dir="auto" key=${tag}>${tag}</span>`);
}

/** Columns of a table of contacts. */
export function contactColumns() {
  return [
    { label: t("Contact"), cell: (row) => html`<span class="address" dir="auto">${addressOf(row)}</span>` },
    { label: t("Name"), wide: true, cell: (row) => (nameOf(row) ? html`<${Written}>${nameOf(row)}</${Written}>` : null) },
    { label: t("Tags"), wide: true, cell: (row) => (row.tags.length ? html`<span><${Tags} tags=${row.tags} /></span>` : null) },
    { label: t("Email marketing"), cell: (row) => html`<span class="nowrap">${consentWord(row.consent.marketing_email)}</span>` },
    {
      label: t("Suppressed"),
      cell: (row) => (row.suppressed_channels.length ? row.suppressed_channels.map(channelName).join(", ") : html`<span class="muted">${t("No")}</span>`),
    },
  ];
}

/** What a reason of a suppression means. */
export const REASONS = [
  ["bounce", "Bounce", "Messages to this address came back for good."],
  ["complaint", "Complaint", "The recipient reported a message as spam."],
  ["unsubscribe", "Unsubscribe", "The recipient wants no marketing. Transactional messages are still sent."],
  ["invalid", "Invalid", "The address is known not to work."],
  ["manual", "Manual", "Somebody put the address on the list."],
];

export function reasonName(reason) {
  return t(REASONS.find(([value]) => value === reason)?.[1] ?? reason);
}

const STATUS_OF = { bounce: "bounced", complaint: "complained" };
const LOOKED_AT = 5;

/** Whether the message that put an address on the suppression list can be looked for. */
export function hasCause({ reason, source }) {
  return source !== "api" && ["bounce", "complaint", "unsubscribe"].includes(reason)
    && seesAddresses() && allowed("listMessages");
}

/** The message that put an address on the suppression list, or null when it is no longer kept. */
export async function causeOf({ channel, address, reason, created_at: at }) {
  // What caused it was sent before; the second is for clocks that round.
  const until = new Date(new Date(at).getTime() + 1000).toISOString();
  const query = { channel, to: address, until, status: STATUS_OF[reason], limit: LOOKED_AT };
  const { data } = await call("listMessages", { query });
  if (reason !== "unsubscribe") return data[0] ?? null;
  for (const message of data) {
    const { events } = await call("getMessage", { path: { id: message.message_id }, quiet: true });
    if (events.some(({ kind }) => kind === "unsubscribe")) return message;
  }
  return null;
}
