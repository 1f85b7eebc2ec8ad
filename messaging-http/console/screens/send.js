// Send: one message, by hand. What the server refuses is shown where it is wrong, with what helps.
import { allowed } from "../lib/api.js";
import { Head, html, Loaded, t, useCall, useState } from "../lib/ui.js";
import { go, href } from "../lib/route.js";
import { Form } from "../lib/form.js";
import { MailFrame } from "../lib/frame.js";
import { bodyOf, Fields, valuesOf } from "./send_fields.js";
import { refusalOf } from "./send_refusal.js";

export default function Send({ query }) {
  const domains = useCall(allowed("listSendingDomains") && "listSendingDomains", { query: { limit: 200 } });
  const like = useCall(query.like && allowed("getMessageContent") && "getMessageContent", { path: { id: query.like } });
  const waits = domains.loading || like.loading;
  return html`
    <${Head} title=${t("Send")} text=${t("One message to one recipient. Campaigns go to many.")} />
    ${waits
      ? html`<${Loaded} of=${{ loading: true }} skeleton=${8} />`
      : html`<${SendForm} query=${query} domains=${domains.data?.data} request=${like.data?.request} likeFailed=${Boolean(query.like && !like.data)} />`}`;
}

function SendForm({ query, domains, request, likeFailed }) {
  const verified = (domains ?? []).filter(({ status }) => status === "verified");
  const [initial] = useState(() => valuesOf(query, request, verified));
  const [values, setValues] = useState(initial);
  const show = async (current) => {
    const { showAs } = await import("../lib/show_as.js");
    showAs({ id: "sendMessage", body: bodyOf(current) });
  };
  return html`
    ${likeFailed && html`<p class="notice warning">${t("What that message said is no longer kept, so the form is empty.")}</p>`}
    ${request?.attachments?.length > 0 && html`<p class="notice">${t("The form is filled as that message was. Attach its files again: {files}.", { files: request.attachments.map(({ filename }) => filename).join(", ") })}</p>`}
    ${domains && !verified.length && values.channel === "email" && html`<p class="notice warning">${t("No domain of this workspace is verified, so email is refused.")} <a href=${href("domains", domains.length ? {} : { new: 1 })}>${domains.length ? t("Publish the records of a domain") : t("Add a domain")}</a></p>`}
    <div class="columns">
      <${Form} id="sendMessage" initial=${initial} body=${bodyOf} submit=${t("Send")} done=${t("The message is accepted")} refusal=${(failure, sent) => refusalOf(failure, sent, domains)} onChange=${setValues}
        onDone=${(answer) => go(`messages/${answer.message_id}`)}
        extra=${(current) => html`<button type="button" onClick=${() => show(current)}>${t("Show as")}</button>`}>
        <${Fields} verified=${verified} />
      </${Form}>
      <section class="stack preview" aria-labelledby="preview"><h2 id="preview">${t("Preview")}</h2><${Preview} values=${values} /></section>
    </div>`;
}

function Preview({ values }) {
  const { channel, template_id: template, subject, html: source, text, to } = values;
  if (template) return html`<p class="muted">${t("The template makes subject and content.")} <a href=${href(`templates/${template}`)}>${t("Preview it with a contact")}</a></p>`;
  if (!source && !text && !subject) return html`<p class="muted">${t("What you write appears here.")}</p>`;
  const hasHtml = source && ["email", "telegram"].includes(channel);
  return html`<div class="card">
    ${subject && ["email", "push"].includes(channel) && html`<p class="subject"><bdi>${subject}</bdi></p>`}
    ${to && html`<p class="muted" dir="auto">${to}</p>`}
    ${hasHtml ? html`<${MailFrame} source=${source} title=${t("Preview of the HTML")} />` : text && html`<p class="letter" dir="auto">${text}</p>`}
  </div>`;
}
