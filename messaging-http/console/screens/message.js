// A message: where it is and why with what helps, what happened to it, what was sent, and who was told.
import { allowed } from "../lib/api.js";
import { Action, Badge, confirm, Copy, Facts, Head, html, Loaded, Sandboxed, t, Time, useCall, useEffect } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { channelName } from "../lib/channels.js";
import { useLive } from "../lib/live.js";
import { Answer } from "./message_answer.js";
import { Timeline } from "./message_timeline.js";
import { Later } from "../lib/later.js";
import { maySendAgain } from "../lib/cure.js";

const UNSETTLED = ["queued", "sending", "deferred"];
const UNSENT = ["queued", "suppressed", "cancelled", "failed"];
const ARRIVED = ["sent", "delivered", "complained"];
const LOOK_MS = 5000;

export default function Message({ id, query }) {
  const message = useCall("getMessage", { path: { id } });
  const attempts = useCall("listMessageAttempts", { path: { id } });
  const content = useCall(allowed("getMessageContent") && "getMessageContent", { path: { id } });
  const again = () => {
    message.reload();
    attempts.reload();
  };
  const moves = UNSETTLED.includes(message.data?.status) && !message.data.scheduled_for;
  useLive((events) => events.some(({ data }) => data.message_id === id) && again(), allowed("listWebhookEvents"));
  useEffect(() => {
    if (!moves) return undefined;
    const timer = setInterval(() => document.visibilityState === "visible" && again(), LOOK_MS);
    return () => clearInterval(timer);
  }, [moves]);
  useEffect(() => {
    if (message.data?.subject) document.title = `${message.data.subject} · ${t("Message")} · messaging`;
  }, [message.data?.subject]);
  return html`
    <${Head} title=${t("Message")} back=${href("messages")} backText=${t("Messages")}
        badge=${message.data && html`<${Badge} status=${message.data.status} />`}>
      ${message.data && html`<${Actions} message=${message.data} content=${content.data} onDone=${again} />`}
    </${Head}>
    <${Loaded} of=${message} skeleton=${8}>${(found) => html`
      ${ARRIVED.includes(found.status) && html`<${Sandboxed} channel=${found.channel} />`}
      ${found.subject && html`<p class="subject"><bdi>${found.subject}</bdi></p>`}
      <${Answer} message=${found} to=${recipientOf(found, content.data)} attempts=${attempts.data?.data} onDone=${again} />
      <div class="columns">
        <section class="stack" aria-labelledby="happened"><h2 id="happened">${t("What happened")}</h2>
          <${Timeline} message=${found} attempts=${attempts} /></section>
        <section class="stack" aria-labelledby="about"><h2 id="about">${t("About it")}</h2>
          <${About} message=${found} content=${content.data} /></section>
      </div>
      <section class="stack" aria-labelledby="sent"><h2 id="sent">${UNSENT.includes(found.status) ? t("What was to be sent") : t("What was sent")}</h2>
        <${Later} load=${() => import("./message_content.js")} message=${found} content=${content} attempts=${attempts.data?.data} query=${query} /></section>
      ${allowed("listWebhooks") && allowed("listWebhookEvents") && html`<section class="stack" aria-labelledby="told"><h2 id="told">${t("Webhooks that were told")}</h2>
        <${Later} load=${() => import("./message_webhooks.js")} message=${found} /></section>`}`}
    </${Loaded}>`;
}

// A message names its recipient only in what was asked for and in what happened to it.
function recipientOf(message, content) {
  return content?.request?.to ?? message.events.find(({ meta }) => meta.recipient)?.meta.recipient;
}

function Actions({ message, content, onDone }) {
  const { message_id: id, status, scheduled_for: due } = message;
  const before = () => confirm({
    title: t("Cancel this message?"),
    text: due ? t("1 message is not sent at its time. This cannot be undone; it can be sent anew.") : t("1 message is not sent any more. This cannot be undone; it can be sent anew."),
    action: t("Cancel the message"),
    back: t("Keep it"),
  });
  return html`
    ${content && maySendAgain(message) && html`<a class="button" href=${href("send", { like: id })}>${t("Send again")}</a>`}
    ${["queued", "deferred"].includes(status) && html`<${Action} id="cancelMessage" args=${{ path: { id } }} before=${before} onDone=${onDone}
      done=${t("The message is cancelled")} className="">${t("Cancel")}</${Action}>`}`;
}

// ---- what belongs to it ----

function About({ message, content }) {
  const { request = {} } = content ?? {};
  const from = content?.headers?.find(([name]) => name.toLowerCase() === "from")?.[1];
  const metadata = Object.keys(message.metadata ?? {}).length > 0;
  return html`<${Facts} pairs=${[
    [t("To"), address(recipientOf(message, content))],
    [t("Cc"), list(request.cc)],
    [t("Bcc"), list(request.bcc)],
    [t("From"), from && address(from)],
    [t("Channel"), channelName(message.channel)],
    [t("Provider"), message.provider && `${message.provider}${message.provider_message_id ? ` · ${message.provider_message_id}` : ""}`],
    [t("Parts"), message.segments && t("{segments} in {encoding}", { segments: message.segments, encoding: message.encoding === "ucs2" ? "UCS-2" : "GSM-7" })],
    [t("Accepted"), html`<${Time} at=${message.created_at} />`],
    [t("Due"), message.scheduled_for && html`<${Time} at=${message.scheduled_for} />`],
    [t("Contact"), message.contact_id && html`<${Named} id="getContact" path="contacts" of=${message.contact_id} name=${(one) => one.email ?? one.phone ?? one.external_id} />`],
    [t("Campaign"), message.campaign_id && html`<${Named} id="getCampaign" path="campaigns" of=${message.campaign_id} />`],
    [t("Variant"), message.variant],
    [t("Automation"), message.automation_id && html`<${Named} id="getAutomation" path="automations" of=${message.automation_id} />`],
    [t("Run"), message.automation_id && message.contact_id && allowed("listAutomationRuns") && html`<${Run} message=${message} />`],
    [t("Template"), message.template_id && html`<${Named} id="getTemplate" path="templates" of=${message.template_id} />`],
    [t("Fallback of"), message.fallback_of && html`<a href=${href(`messages/${message.fallback_of}`)}>${t("the first message")}</a>`],
    [t("Tags"), message.tags.length > 0 && html`<span>${message.tags.map((tag) => html`<a class="tag" dir="auto" href=${href("messages", { tag })}>${tag}</a>`)}</span>`],
    [t("Metadata"), metadata && html`<code class="wrapped">${JSON.stringify(message.metadata)}</code>`],
    [t("Id"), html`<code class="wrapped">${message.message_id}</code> <${Copy} text=${message.message_id} />`],
  ].map(([name, value]) => [name, value === false ? null : value])} />`;
}

const address = (text) => text && html`<span dir="auto">${text}</span>`;
const list = (addresses) => addresses?.length > 0 && html`<span dir="auto">${addresses.join(", ")}</span>`;

/** A link to something by its name, or by its id until that is known. */
function Named({ id, path, of, name = (one) => one.name }) {
  const found = useCall(allowed(id) && id, { path: { id: of } }, { quiet: true });
  const link = html`<a dir="auto" href=${href(`${path}/${of}`)}>${(found.data && name(found.data)) || of}</a>`;
  return found.error?.status === 404 ? html`<span class="muted">${t("deleted")}</span>` : link;
}

// The run that sent it: the contact's run that was under way at its time.
function Run({ message }) {
  const { automation_id: id, contact_id: contact } = message;
  const found = useCall("listAutomationRuns", { path: { id }, query: { contact_id: contact, limit: 50 } }, { quiet: true });
  const run = found.data?.data.find((one) => one.entered_at <= message.created_at);
  return run ? html`<a href=${href(`automations/${id}/runs/${run.id}`)}>${t("Its path")}</a>` : html`<span class="muted">–</span>`;
}
