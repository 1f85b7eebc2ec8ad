// The providers of each channel and their settings, in words for people. What is valid is the server's to say: a provider
// that is not named here is shown with its settings as JSON.

const apiBase = (usual) => ({ name: "api_base", label: "API address", placeholder: usual, optional: Boolean(usual), help: usual ? "Leave empty for the provider's own." : "Where messages are posted." });

const sender = (help) => ({ name: "sender", label: "Sender", help });

const own = [
  apiBase(""),
  sender("The number or name that messages come from."),
  { name: "token", label: "Token", secret: true, optional: true, help: "Sent along as a bearer token." },
];

const SANDBOX = { title: "Sandbox", text: "Nothing leaves this server; messages count as delivered at once. For trying out.", fields: [] };

/** By channel: its title, what a test goes to, and its providers, the usual one first. */
export const CHANNELS = {
  email: {
    to: { label: "Email address", placeholder: "you@example.com" },
    providers: {
      builtin: { title: "This server", text: "Delivers straight to the mail servers of the recipients. Needs port 25 outwards and an address with a good name.", fields: [] },
      smtp: {
        title: "SMTP relay",
        text: "Hands mail to another mail server or service.",
        fields: [
          { name: "host", label: "Host", placeholder: "smtp.example.com" },
          { name: "port", label: "Port", kind: "number", placeholder: "587", help: "Mostly 587, or 465 with TLS." },
          { name: "username", label: "User name", optional: true, help: "Without one there is no sign-in." },
          { name: "password", label: "Password", secret: true, optional: true },
          { name: "tls", label: "Security", options: [["starttls", "STARTTLS"], ["tls", "TLS from the first byte"], ["none", "None"]], optional: true, help: "STARTTLS unless chosen, on port 465 TLS." },
        ],
      },
      sandbox: SANDBOX,
    },
  },
  sms: {
    to: { label: "Phone number", placeholder: "+14155550123" },
    providers: {
      http: { title: "Gateway of your own", text: "A server that takes messages as JSON and reports what became of them to the callback address in each.", fields: own },
      twilio: {
        title: "Twilio",
        text: "",
        fields: [
          { name: "account_sid", label: "Account SID", placeholder: "AC…" },
          { name: "auth_token", label: "Auth token", secret: true, help: "It also proves what Twilio calls back with." },
          sender("A number, a name of up to 11 letters, or a messaging service (MG…)."),
          apiBase("https://api.twilio.com"),
        ],
      },
      vonage: {
        title: "Vonage",
        text: "",
        fields: [
          { name: "application_id", label: "Application ID" },
          { name: "private_key", label: "Private key", secret: true, kind: "textarea", placeholder: "-----BEGIN PRIVATE KEY-----" },
          sender("A number, or a name of up to 11 letters."),
          { name: "signature_secret", label: "Signature secret", secret: true, optional: true, help: "Callbacks are signed with it. Without it none of them is believed, so messages never count as delivered." },
          apiBase("https://api.nexmo.com"),
        ],
      },
      smpp: {
        title: "SMPP",
        text: "A connection to a message center.",
        fields: [
          { name: "host", label: "Host" },
          { name: "port", label: "Port", kind: "number", placeholder: "2775", help: "Mostly 2775, with TLS 3550." },
          { name: "system_id", label: "System ID" },
          { name: "password", label: "Password", secret: true },
          sender("A number, or a name of up to 11 letters."),
          { name: "tls", label: "TLS from the first byte", kind: "checkbox" },
        ],
      },
      sandbox: SANDBOX,
    },
  },
  push: {
    to: { label: "Device token or subscription", placeholder: "" },
    // Several may stand together; the recipient's address tells which one is meant.
    routes: true,
    providers: {
      fcm: {
        title: "Firebase (Android, iOS, web)",
        text: "",
        fields: [
          { name: "project_id", label: "Project ID" },
          { name: "service_account", label: "Service account", secret: true, kind: "textarea", placeholder: "{ \"type\": \"service_account\", … }", help: "The JSON key of a service account that may send messages." },
          apiBase("https://fcm.googleapis.com"),
        ],
      },
      apns: {
        title: "Apple (APNs)",
        text: "",
        fields: [
          { name: "team_id", label: "Team ID" },
          { name: "key_id", label: "Key ID" },
          { name: "private_key", label: "Private key", secret: true, kind: "textarea", placeholder: "-----BEGIN PRIVATE KEY-----", help: "The text of the .p8 file." },
          { name: "topic", label: "Topic", placeholder: "com.example.app", help: "The bundle id of the app." },
          { name: "environment", label: "Environment", options: [["production", "Production"], ["development", "Development"]], optional: true, help: "Which of Apple's servers the device tokens are for. Production unless chosen." },
          apiBase("https://api.push.apple.com"),
        ],
      },
      webpush: {
        title: "Browsers (Web Push)",
        text: "",
        fields: [
          { name: "subject", label: "Contact", placeholder: "mailto:you@example.com", help: "Where the push services of browsers reach you." },
          { name: "public_key", label: "Public key", made: true, help: "Browsers subscribe with it (applicationServerKey)." },
        ],
      },
      sandbox: SANDBOX,
    },
  },
  telegram: {
    to: { label: "Chat ID", placeholder: "123456789" },
    providers: {
      bot_api: {
        title: "Bot",
        text: "",
        fields: [
          { name: "bot_token", label: "Bot token", secret: true, help: "The one that BotFather gave you." },
          apiBase("https://api.telegram.org"),
        ],
      },
      sandbox: SANDBOX,
    },
  },
  whatsapp: {
    to: { label: "Phone number", placeholder: "+14155550123" },
    providers: {
      cloud_api: {
        title: "Cloud API (Meta)",
        text: "",
        fields: [
          { name: "phone_number_id", label: "Phone number ID", help: "The id of the number that messages come from." },
          { name: "access_token", label: "Access token", secret: true, help: "That of a system user." },
          { name: "app_secret", label: "App secret", secret: true, optional: true, help: "Callbacks are signed with it. Without it none of them is believed, so messages never count as delivered." },
          apiBase("https://graph.facebook.com/v26.0"),
        ],
      },
      sandbox: SANDBOX,
    },
  },
  viber: {
    to: { label: "Phone number, or the user id of a bot's reader", placeholder: "+14155550123" },
    providers: {
      http: { title: "Gateway of a partner", text: "A server that takes messages as JSON and reports what became of them to the callback address in each.", fields: own },
      bot: {
        title: "Bot",
        text: "",
        fields: [
          { name: "auth_token", label: "Auth token", secret: true, help: "It also proves what Viber calls back with." },
          { ...sender("The name that messages come from."), maxlength: 28 },
          apiBase("https://chatapi.viber.com/pa"),
        ],
      },
      sandbox: SANDBOX,
    },
  },
};

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
