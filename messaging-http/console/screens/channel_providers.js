// The providers of each channel in words for people. Which there are, and what settings they take, the server says; one that
// a program has brought is shown with its settings as JSON.
import { providers } from "../providers.js";

const SANDBOX = { title: "Sandbox", text: "Nothing leaves this server; messages count as delivered at once. For trying out." };
const GATEWAY = "A server that takes messages as JSON and reports what became of them to the callback address in each.";

// Titles by channel and provider; a provider without one is called by its name.
const TITLES = {
  "email builtin": { title: "This server", text: "Delivers straight to the mail servers of the recipients. Needs port 25 outwards and an address with a good name." },
  "email smtp": { title: "SMTP relay", text: "Hands mail to another mail server or service." },
  "sms http": { title: "Gateway of your own", text: GATEWAY },
  "sms twilio": { title: "Twilio" },
  "sms vonage": { title: "Vonage" },
  "sms smpp": { title: "SMPP", text: "A connection to a message center." },
  "push fcm": { title: "Firebase (Android, iOS, web)" },
  "push apns": { title: "Apple (APNs)" },
  "push webpush": { title: "Browsers (Web Push)" },
  "telegram bot_api": { title: "Bot" },
  "whatsapp cloud_api": { title: "Cloud API (Meta)" },
  "viber http": { title: "Gateway of a partner", text: GATEWAY },
  "viber bot": { title: "Bot" },
};

// Labels by name of the setting; one without a label is called by its name.
const LABELS = {
  access_token: "Access token", account_sid: "Account SID", api_base: "API address", app_secret: "App secret", application_id: "Application ID",
  auth_token: "Auth token", bot_token: "Bot token", environment: "Environment", host: "Host", key_id: "Key ID", max_rate: "Messages per second",
  password: "Password", phone_number_id: "Phone number ID", port: "Port", private_key: "Private key", project_id: "Project ID", public_key: "Public key",
  sender: "Sender", service_account: "Service account", signature_secret: "Signature secret", subject: "Contact", system_id: "System ID",
  team_id: "Team ID", tls: "Security", token: "Token", topic: "Topic", username: "User name",
};
const OPTIONS = { starttls: "STARTTLS", tls: "TLS from the first byte", none: "None", production: "Production", development: "Development" };
const PLACEHOLDERS = {
  account_sid: "AC…", host: "smtp.example.com", private_key: "-----BEGIN PRIVATE KEY-----", service_account: "{ \"type\": \"service_account\", … }",
  subject: "mailto:you@example.com", topic: "com.example.app",
};

const TO = {
  email: { label: "Email address", placeholder: "you@example.com" },
  push: { label: "Device token or subscription", placeholder: "" },
  telegram: { label: "Chat ID", placeholder: "123456789" },
  viber: { label: "Phone number, or the user id of a bot's reader", placeholder: "+14155550123" },
};
const PHONE = { label: "Phone number", placeholder: "+14155550123" };

function fieldOf({ name, kind, help, options, required, secret, made, maxlength, default: usual }) {
  const label = kind === "checkbox" && name === "tls" ? OPTIONS.tls : LABELS[name] ?? name;
  return {
    name, label, help, kind, secret, made, maxlength, optional: !required && kind !== "checkbox" && !made,
    options: options?.map((value) => [value, OPTIONS[value] ?? value]), placeholder: usual ? String(usual) : PLACEHOLDERS[name],
  };
}

// What has to be given comes first.
function providerOf(channel, [name, settings]) {
  const fields = [...settings.filter(({ required }) => required), ...settings.filter(({ required }) => !required)].map(fieldOf);
  return [name, { title: name, text: "", ...(name === "sandbox" ? SANDBOX : TITLES[`${channel} ${name}`]), fields }];
}

/** By channel: what a test goes to, and its providers, the usual one first. Several of push may stand together. */
export const CHANNELS = Object.fromEntries(Object.entries(providers).map(([channel, known]) => [channel, {
  to: TO[channel] ?? PHONE, routes: channel === "push", providers: Object.fromEntries(known.map((one) => providerOf(channel, one))),
}]));

/** The title of a provider, also of one that a program has brought. */
export function providerTitle(channel, provider) {
  return CHANNELS[channel]?.providers[provider]?.title ?? provider;
}

/** Where the callback address is entered at the provider; null where that happens by itself or with each message. */
export const CALLBACKS = {
  twilio: "Reports come by themselves. For replies and STOP, enter it in the Twilio console under Phone Numbers → Messaging → “A message comes in”.",
  vonage: "Enter it in the Vonage dashboard at the application, under Messages: both as inbound and as status URL.",
  bot_api: "Told to Telegram by itself when the settings are saved.",
  bot: "Told to Viber by itself when the settings are saved.",
  cloud_api: "Enter it in the Meta app dashboard under WhatsApp → Configuration → Webhook, and subscribe to messages.",
};
