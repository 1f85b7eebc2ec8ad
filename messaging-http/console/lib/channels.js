// The channels, and what a message of each consists of (contract section 4.1).
import { t } from "./ui.js";

const NAMES = { email: "Email", sms: "SMS", push: "Push", telegram: "Telegram", whatsapp: "WhatsApp", viber: "Viber" };

/** The channels, as the API writes them. */
export const CHANNELS = Object.keys(NAMES);

/** What people read for a channel. */
export function channelName(channel) {
  return t(NAMES[channel] ?? channel);
}

/** The members of a template of the channel that are texts of the message. */
export function contentOf(channel) {
  if (channel === "email") return ["subject", "preheader", "from_name", "from_email", "reply_to", "html", "mjml", "text"];
  if (channel === "push") return ["subject", "text"];
  return channel === "telegram" ? ["html", "text"] : ["text"];
}
