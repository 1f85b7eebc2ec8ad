// A captured message: as it looks at three widths, its text, source, headers, links and files.
import { allowed, needs } from "../lib/api.js";
import { Table } from "../lib/table.js";
import { bytes, Code, count, Facts, Head, html, Loaded, Refused, t, Tabs, useCall, useMemo } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { MailFrame } from "../lib/frame.js";
import { decodeWords, linksOf, parseMail } from "../lib/mime.js";

const WIDTHS = [["phone", "Phone", 375], ["tablet", "Tablet", 768], ["wide", "Wide", undefined]];

export default function Captured({ id, query }) {
  const found = useCall(allowed("getSandboxMessage") && "getSandboxMessage", { path: { message_id: id } });
  return html`
    <${Head} title=${t("Captured message")} back=${href("sandbox")} backText=${t("Sandbox")}>
      ${allowed("getMessage") && html`<a class="button" href=${href(`messages/${id}`)}>${t("What became of it")}</a>`}
    </${Head}>
    ${allowed("getSandboxMessage")
      ? html`<${Loaded} of=${found} skeleton=${8}>${(source) => (typeof source === "string"
          ? html`<${Mail} id=${id} source=${source} query=${query} />`
          : html`<${Other} message=${source} />`)}</${Loaded}>`
      : html`<${Refused} needs=${needs("getSandboxMessage")} />`}`;
}

function Mail({ id, source, query }) {
  const mail = useMemo(() => parseMail(source), [source]);
  const links = useMemo(() => linksOf(mail.html), [mail]);
  const header = (name) => decodeWords(mail.headers.find(([known]) => known.toLowerCase() === name)?.[1] ?? "");
  const tabs = [
    mail.html !== null && ["html", "HTML"],
    mail.text !== null && ["text", t("Text")],
    ["source", t("Source")],
    ["headers", t("Headers")],
    mail.html !== null && ["links", t("Links ({number})", { number: links.length })],
    mail.attachments.length > 0 && ["files", t("Files ({number})", { number: mail.attachments.length })],
  ].filter(Boolean);
  const current = tabs.some(([tab]) => tab === query.show) ? query.show : tabs[0][0];
  const to = (change) => href(`sandbox/${id}`, { ...query, ...change });
  return html`
    <p class="subject"><bdi>${header("subject")}</bdi></p>
    <${Facts} pairs=${["from", "to", "cc", "reply-to", "date"].map((name) => [LABELS()[name], header(name) && html`<span dir="auto">${header(name)}</span>`])} />
    <${Tabs} label=${t("The mail")} current=${current} tabs=${tabs.map(([tab, label]) => ({ id: tab, label, href: to({ show: tab }) }))} />
    ${{
      html: () => html`<${Look} mail=${mail} query=${query} to=${to} />`,
      text: () => html`<pre class="letter" tabindex="0" aria-label=${t("Text")} dir="auto">${mail.text}</pre>`,
      source: () => html`<${Code} text=${source} label=${t("Source of the mail")} />`,
      headers: () => html`<${Pairs} label=${t("Headers")} head=${[t("Name"), t("Value")]} pairs=${mail.headers.map(([name, value]) => [name, html`<span class="wrapped" dir="auto">${decodeWords(value)}</span>`])} />`,
      links: () => html`<${Links} links=${links} />`,
      files: () => html`<${Pairs} label=${t("Files")} head=${[t("Name"), t("Kind and size")]} pairs=${mail.attachments.map((one) => [
        html`<span dir="auto">${one.filename ?? t("without a name")}</span>`, `${one.type} · ${bytes(one.size)}${one.cid ? ` · cid:${one.cid}` : ""}`])} />`,
    }[current]()}`;
}

const LABELS = () => ({ from: t("From"), to: t("To"), cc: t("Cc"), "reply-to": t("Reply to"), date: t("Date") });

function Look({ mail, query, to }) {
  const [, , width] = WIDTHS.find(([name]) => name === query.width) ?? WIDTHS[2];
  return html`
    <nav class="segmented" aria-label=${t("Width")}>${WIDTHS.map(([name, label, pixels]) => html`
      <a href=${to({ width: name === "wide" ? null : name })} aria-current=${pixels === width ? "true" : undefined}>${t(label)}${pixels ? html` <span class="muted">${pixels}</span>` : ""}</a>`)}</nav>
    <${MailFrame} key=${width} source=${mail.html} inline=${mail.inline} width=${width} title=${t("The mail as HTML")} />`;
}

function Links({ links }) {
  if (!links.length) return html`<p class="muted">${t("The mail has no links.")}</p>`;
  const targets = new Set(links.map(({ url }) => url)).size;
  return html`<p class="muted">${t("{links} to {targets}. They are shown as text, so that a look is no click.", { links: count(links.length, "link", "links"), targets: count(targets, "target", "targets") })}</p>
    <${Pairs} label=${t("Links")} head=${[t("Words"), t("Target")]} pairs=${links.map(({ url, text }) => [
      html`<span dir="auto">${text || t("without words")}</span>`, html`<code class="wrapped">${url}</code>`])} />`;
}

function Pairs({ label, head, pairs }) {
  return html`<${Table} className="headers" caption=${label} rows=${pairs} columns=${head.map((text, nth) => ({ label: text, cell: (pair) => pair[nth] }))} />`;
}

// The other channels have no source; what the provider would have got is one document.
function Other({ message }) {
  return html`
    <${Facts} pairs=${[[t("To"), html`<span dir="auto">${message.to}</span>`], [t("Title"), (message.subject ?? message.title) && html`<span dir="auto">${message.subject ?? message.title}</span>`]]} />
    ${message.text && html`<pre class="letter" tabindex="0" aria-label=${t("Text")} dir="auto">${message.text}</pre>`}
    <section class="stack" aria-labelledby="all"><h2 id="all">${t("As the provider would have got it")}</h2><${Code} text=${JSON.stringify(message, null, 2)} /></section>`;
}
