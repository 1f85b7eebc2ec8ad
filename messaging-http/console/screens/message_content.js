// What was sent: the mail as it looks, its text, its source, its headers with who vouches for them, and what was asked.
import { allowed, needs } from "../lib/api.js";
import { bytes, Code, html, Loaded, Refused, t, Tabs, useCall } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { MailFrame } from "../lib/frame.js";
import { parseMail } from "../lib/mime.js";
import { Headers } from "./message_headers.js";

export default function Content({ message, content, attempts, query }) {
  if (!allowed("getMessageContent")) return html`<${Refused} needs=${needs("getMessageContent")} />`;
  if (content.error?.status === 404) {
    return html`<div class="empty"><p class="empty-title">${t("The content is no longer kept")}</p>
      <p>${t("It was forgotten with its contact, or because its time was over. What happened stays.")}</p></div>`;
  }
  return html`<${Loaded} of=${content}>${(found) => html`<${Shown} message=${message} content=${found} attempts=${attempts} wanted=${query.show} />`}</${Loaded}>`;
}

function Shown({ message, content, attempts, wanted }) {
  const isEmail = message.channel === "email";
  // Only mail that the sandbox captured has a source that is kept; it has no provider of its own.
  const isCaptured = isEmail && !message.provider && ["sent", "delivered", "complained"].includes(message.status);
  const tabs = [
    content.html && ["html", "HTML"],
    content.text && ["text", isEmail ? t("Text") : t("Message")],
    isEmail && ["source", t("Source")],
    isEmail && ["headers", t("Headers")],
    ["request", t("Request")],
  ].filter(Boolean);
  const [first] = tabs[0];
  const current = tabs.some(([id]) => id === wanted) ? wanted : first;
  const wantsSource = isCaptured && (["source", "headers"].includes(current) || (current === "html" && /cid:/i.test(content.html)));
  const source = useCall(wantsSource && "getSandboxMessage", { path: { message_id: message.message_id } }, { quiet: true });
  const link = (id) => href(`messages/${message.message_id}`, { show: id });
  return html`
    <${Tabs} label=${t("What was sent")} current=${current} tabs=${tabs.map(([id, label]) => ({ id, label, href: link(id) }))} />
    ${{
      html: () => html`<${MailFrame} source=${content.html} inline=${typeof source.data === "string" ? parseMail(source.data).inline : {}} title=${t("The mail as HTML")} />`,
      text: () => html`<pre class="letter" tabindex="0" aria-label=${t("Text")} dir="auto">${content.text}</pre>`,
      source: () => html`<${Source} source=${source} isCaptured=${isCaptured} message=${message} />`,
      headers: () => html`<${Headers} content=${content} attempts=${attempts} source=${typeof source.data === "string" ? source.data : null} />`,
      request: () => html`<${Request} message=${message} content=${content} />`,
    }[current]()}`;
}

function Source({ source, isCaptured, message }) {
  if (isCaptured && !source.error) {
    return html`<${Loaded} of=${source}>${(text) => html`<p><a href=${href(`sandbox/${message.message_id}`)}>${t("Open it in the sandbox")}</a></p>
      <${Code} text=${text} label=${t("Source of the mail")} />`}</${Loaded}>`;
  }
  const isSent = ["sent", "delivered", "complained", "bounced"].includes(message.status);
  return html`<p class="muted">${isSent
    ? t("The source is kept only of mail that the sandbox captured. This is everything that is kept: HTML, text, headers and request.")
    : t("There is no source: the mail was not written for sending.")}</p>`;
}

// ---- what was asked for ----

function Request({ message, content }) {
  const { request, template, size } = content;
  const { variables, attachments } = request;
  return html`
    ${template && html`<p><a href=${href(`templates/${template.id}`)}>${t("Template")}</a>, ${t("version {version}", { version: template.version })}</p>`}
    <p class="muted">${message.campaign_id || message.automation_id ? "" : t("This was asked for.")} ${size > 0 && t("The content has {size}.", { size: bytes(size) })}</p>
    ${attachments?.length > 0 && html`<ul class="plain">${attachments.map((one) => html`<li><span dir="auto">${one.filename}</span> <span class="muted">${one.content_type} · ${bytes(one.size)}${one.content_id ? ` · cid:${one.content_id}` : ""}</span></li>`)}</ul>`}
    <${Code} text=${JSON.stringify(request, null, 2)} label=${t("Request")} />
    ${variables && Object.keys(variables).length > 0 && html`<h3>${t("Variables")}</h3><${Code} text=${JSON.stringify(variables, null, 2)} label=${t("Variables")} />`}`;
}
