// Deliverability: a sentence first, then how mail fares at each mailbox provider, what each sending domain proves, and the
// addresses that mail leaves from.
import { allowed } from "../lib/api.js";
import { Badge, Copy, duration, Empty, Head, html, Loaded, number, percent, Sandboxed, t, useCall } from "../lib/ui.js";
import { Table } from "../lib/table.js";
import { changeQuery, href } from "../lib/route.js";
import { spanOf, SPANS } from "../lib/span.js";

const DEFAULT_DAYS = "30";

export default function Deliverability({ query }) {
  const days = SPANS.some(([known]) => known === query.days) ? query.days : DEFAULT_DAYS;
  const span = spanOf({ days });
  const found = useCall("getDeliverability", { query: { since: span.from, until: span.to } });
  return html`
    <${Head} title=${t("Deliverability")} text=${t("Whether your email arrives, what mailbox providers say of it, and what to do.")} />
    <form class="filters" onSubmit=${(event) => event.preventDefault()}>
      <label><span>${t("Time")}</span><select value=${days} onChange=${(event) => changeQuery({ days: event.target.value })}>
        ${SPANS.map(([value, label]) => html`<option value=${value} selected=${value === days}>${t(label)}</option>`)}</select></label></form>
    <${Sandboxed} />
    <${Loaded} of=${found} skeleton=${10}>${({ summary, sites, domains, pools }) => html`
      <section class="notice ${toneOf(sites, pools)}" aria-labelledby="summary"><h2 id="summary" class="sr">${t("Summary")}</h2><p>${summary}</p></section>
      <${Sites} sites=${sites} />
      <${Domains} domains=${domains} />
      <${Pools} pools=${pools} />`}</${Loaded}>`;
}

// Lines of bulk senders, as the server names them in its sentence.
const WARN_COMPLAINTS = 0.001;
const MAX_COMPLAINTS = 0.003;

const complaintsOf = ({ complaints, delivered }) => (complaints ? complaints / Math.max(1, delivered) : 0);

function toneOf(sites, pools) {
  const worst = Math.max(0, ...sites.map(complaintsOf));
  if (worst > MAX_COMPLAINTS || pools.some(({ sources }) => sources.some(({ status }) => status === "stopped"))) return "fault";
  return worst > WARN_COMPLAINTS ? "warning" : "";
}

// ---- sites ----

const NAMES = { gmail: "Gmail", microsoft: "Microsoft", yahoo: "Yahoo", icloud: "iCloud", gmx: "GMX", other: "Other sites" };

function Sites({ sites }) {
  const attempts = (row) => row.deferred + row.delivered + row.bounced_hard + row.bounced_soft;
  const share = (part, whole) => html`<span class="nowrap">${number(part)} ${whole > 0 && part > 0 && html`<span class="muted">${percent(part / whole)}</span>`}</span>`;
  return html`<section class="stack" aria-labelledby="sites"><h2 id="sites">${t("Mailbox providers")}</h2>
    <p class="muted">${t("By who operates the recipients' mail servers. Each recipient of a message counts; opens are those of people.")}</p>
    ${sites.length === 0
      ? html`<${Empty} title=${t("No email left in this time")} text=${t("What a mail server takes, puts off or refuses stands here within seconds, by provider.")}
          action=${allowed("sendMessage") && t("Send a message")} href=${href("send")} />`
      : html`<${Table} caption=${t("Mailbox providers")} rows=${sites} rowKey=${(row) => row.site} columns=${[
        { label: t("Provider"), cell: (row) => html`<bdi>${t(NAMES[row.site] ?? row.site)}</bdi>` },
        { label: t("Accepted"), numeric: true, cell: (row) => number(row.accepted) },
        { label: t("Delivered"), numeric: true, cell: (row) => share(row.delivered, row.accepted) },
        { label: t("Put off"), numeric: true, cell: (row) => share(row.deferred, attempts(row)) },
        { label: t("Bounced"), numeric: true, cell: (row) => html`<${Bounces} row=${row} />` },
        { label: t("Complaints"), numeric: true, cell: (row) => html`<${Complaints} row=${row} />` },
        { label: t("Opened"), numeric: true, cell: (row) => share(row.opened_human, row.delivered) },
        { label: t("Half within"), numeric: true, cell: (row) => (row.median_seconds === null ? "–" : duration(row.median_seconds * 1000)) },
        { label: t("Over TLS"), numeric: true, cell: (row) => percent(row.tls_share ?? NaN) },
      ]} />`}
    <p class="help">${t("Gmail and Yahoo want complaints below 0.1 % of what is delivered, and refuse bulk mail from 0.3 % on.")}</p></section>`;
}

function Bounces({ row: { bounced_hard: hard, bounced_soft: soft } }) {
  if (!hard && !soft) return number(0);
  return html`<span class="nowrap">${number(hard + soft)} <span class="muted">${t("{hard} hard", { hard: number(hard) })}</span></span>`;
}

function Complaints({ row }) {
  const rate = complaintsOf(row);
  if (rate <= WARN_COMPLAINTS) return html`<span class="nowrap">${number(row.complaints)} ${row.complaints > 0 && html`<span class="muted">${percent(rate)}</span>`}</span>`;
  return html`<span class="nowrap">${number(row.complaints)} <${Badge} status=${rate > MAX_COMPLAINTS ? "failed" : "warning"}>${percent(rate)}</${Badge}></span>`;
}

// ---- domains ----

const VERDICTS = { ok: ["ok", "Safe"], attention: ["warning", "Look at it"], unsafe: ["failed", "Unsafe"], no_data: ["skipped", "No reports yet"] };
const RECORDS = { verified: "found", pending: "not found", failed: "wrong" };

function Domains({ domains }) {
  if (!domains.length) return null;
  return html`<section class="stack" aria-labelledby="sending-domains"><h2 id="sending-domains">${t("Sending domains")}</h2>
    ${domains.map((domain) => html`<${Domain} key=${domain.id} domain=${domain} />`)}</section>`;
}

function Domain({ domain }) {
  const { id, domain: name, verdict, one_click: oneClick } = domain;
  const [status, label] = VERDICTS[verdict.status] ?? ["skipped", verdict.status];
  const opens = allowed("getSendingDomain");
  return html`<article class="card">
    <div class="head-line"><h3><bdi>${name}</bdi></h3>
      ${opens && html`<a class="button small" href=${href(`domains/${id}`)}>${t("Records")}<span class="sr"> ${name}</span></a>`}</div>
    <ul class="plain">
      ${[["SPF", domain.spf], ["DKIM", domain.dkim], ["DMARC", domain.dmarc]].map(([record, state]) => html`<li key=${record}><${Badge} status=${state}>${record}: ${t(RECORDS[state] ?? state)}</${Badge}></li>`)}
      <li><${Badge} status=${oneClick ? "ok" : "warning"}>${oneClick ? t("One click unsubscribes") : t("No one-click unsubscribing")}</${Badge}>
        ${oneClick ? null : html` ${t("It needs https and a signing key.")}`}</li></ul>
    <p><${Badge} status=${status}>${t("DMARC reports")}: ${t(label)}</${Badge}> ${verdict.text}</p>
    ${verdict.next_record && html`<p>${t("The record to publish next at {host}:", { host: `_dmarc.${name}` })}</p>
      <p class="copied"><code>${verdict.next_record}</code> <${Copy} text=${verdict.next_record} label=${html`${t("Copy")}<span class="sr"> ${t("the DMARC record of {domain}", { domain: name })}</span>`} /></p>`}
  </article>`;
}

// ---- pools ----

const SOURCES = {
  warm: ["ok", "warm"], warming: ["running", "warming up"], resting: ["paused", "resting"], stopped: ["failed", "stopped"], absent: ["skipped", "on no server"],
};

function Pools({ pools }) {
  return html`<section class="stack" aria-labelledby="pools"><h2 id="pools">${t("IP pools")}</h2>
    ${pools.length === 0
      ? html`<p class="muted">${t("No pool is named: mail leaves from whatever addresses the server has for everybody.")}</p>`
      : pools.map(({ id, name, sources }) => html`<div key=${id} class="stack"><h3><bdi>${name}</bdi></h3>
        <${Table} caption=${name} rows=${sources} rowKey=${(row) => row.ip} columns=${[
          { label: t("Address"), cell: (row) => html`<code>${row.ip}</code>` },
          { label: t("State"), cell: (row) => html`<${SourceState} status=${row.status} />` },
          { label: t("Warm-up level"), numeric: true, cell: (row) => (row.status === "warming" ? number(row.level) : "–") },
          { label: t("Sent today"), numeric: true, cell: (row) => number(row.sent_today) },
          { label: t("Allowed today"), numeric: true, cell: (row) => (row.allowed_today !== null ? number(row.allowed_today) : row.status === "warm" ? t("no bound") : "–") },
        ]} /></div>`)}</section>`;
}

/** State of an address that mail leaves from. */
export function SourceState({ status }) {
  const [sign, text] = SOURCES[status] ?? ["skipped", status];
  return html`<${Badge} status=${sign}>${t(text)}</${Badge}>`;
}
