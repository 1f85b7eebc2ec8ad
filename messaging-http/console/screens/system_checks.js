// What `messaging doctor` says of the server and of each sending domain: what is wrong first, each with its cure.
import { allowed } from "../lib/api.js";
import { Badge, html, number, t, useCall, words } from "../lib/ui.js";
import { Table } from "../lib/table.js";
import { href } from "../lib/route.js";

const NAMES = {
  name: "Name", address: "Address", ptr: "Reverse name", spf: "SPF of this server", port25_out: "Port 25 outwards", inbound: "Inbound mail", tls: "TLS", clock: "Clock",
  disk: "Disk", files: "Files", secret_key: "Secret key", resolver: "DNS resolver", blocklist: "Blocklists",
  dkim: "Signing keys", return_path: "Return path", dmarc: "DMARC", alignment: "Domain alignment", one_click: "One-click unsubscribe",
};

// These are about a sending domain, the others about the server.
const OF_DOMAIN = ["dkim", "return_path", "dmarc", "alignment", "one_click"];

const ORDER = ["fault", "warning", "skipped", "ok"];

const nameOf = ({ id }) => t(NAMES[id] ?? words(id));
const isOpen = ({ status }) => status === "fault" || status === "warning";

export function Checks({ checks }) {
  const sorted = checks.toSorted((one, other) => ORDER.indexOf(one.status) - ORDER.indexOf(other.status));
  const ofServer = sorted.filter(({ id }) => !OF_DOMAIN.includes(id));
  const domains = [...new Set(sorted.filter(({ id }) => OF_DOMAIN.includes(id)).map(({ subject }) => subject))];
  return html`<section class="stack" aria-labelledby="checks"><h2 id="checks" tabindex="-1">${t("Checks")}</h2>
    <p class="muted">${t("What “messaging doctor” says, some minutes old at most.")}</p>
    ${checks.length === 0 && html`<p>${t("Nothing was looked at yet. Come back in a minute.")}</p>`}
    ${checks.length > 0 && !checks.some(isOpen) && html`<p><${Badge} status="ok" /> ${t("Nothing is wrong.")}</p>`}
    <${Group} title=${t("This server")} checks=${ofServer} />
    <${Domains} names=${domains} checks=${sorted} />
    <${Others} checks=${sorted.filter((check) => !isOpen(check))} />
  </section>`;
}

function Domains({ names, checks }) {
  // A domain of another workspace has no page here.
  const known = useCall(allowed("listSendingDomains") && "listSendingDomains", { query: { limit: 200 } }, { quiet: true });
  return names.map((name) => html`<${Group} key=${name} title=${name} page=${known.data?.data.find(({ domain }) => domain === name)}
    checks=${checks.filter(({ id, subject }) => OF_DOMAIN.includes(id) && subject === name)} />`);
}

/** What is wrong with the server or one domain. */
function Group({ title, checks, page }) {
  const open = checks.filter(isOpen);
  if (!open.length) return null;
  // The cure of several checks is often one and the same.
  const cures = [...new Set(open.map(({ cure }) => cure))];
  return html`<article class="card">
    <div class="head-line"><h3><bdi>${title}</bdi></h3>${page && html`<a class="button small" href=${href(`domains/${page.id}`)}>${t("Records")}<span class="sr"> ${title}</span></a>`}</div>
    <ul class="findings">${cures.map((cure) => {
      const cured = open.filter((check) => check.cure === cure);
      return html`<li key=${cure}>${cured.map((check) => html`<div key=${check.id}><p><${Badge} status=${check.status} /> <strong>${nameOf(check)}</strong>${![title, "-"].includes(check.subject) && html` <bdi class="muted">${check.subject}</bdi>`}</p>
          <p>${check.text}</p></div>`)}
        ${cure && html`<p>→ <${Cure} text=${cure} /></p>`}</li>`;
    })}</ul>
  </article>`;
}

function Others({ checks }) {
  if (!checks.length) return null;
  const fine = checks.filter(({ status }) => status === "ok").length;
  return html`<details><summary>${t("{fine} fine, {skipped} not looked at", { fine: number(fine), skipped: number(checks.length - fine) })}</summary>
    <${Table} caption=${t("Other checks")} rows=${checks} rowKey=${(row) => row.id + row.subject} columns=${[
      { label: t("Check"), cell: nameOf },
      { label: t("Status"), cell: (row) => html`<${Badge} status=${row.status}>${row.status === "skipped" ? t("not looked at") : t("fine")}</${Badge}>` },
      { label: t("Of"), cell: (row) => (row.subject === "-" ? "–" : html`<bdi>${row.subject}</bdi>`) },
      { label: t("Found"), wide: true, cell: (row) => html`<span>${row.text}${row.cure && html` <${Cure} text=${row.cure} />.`}</span>` },
    ]} /></details>`;
}

/** A cure as a sentence. It begins in the middle of one; its commands stand between backquotes. */
export function Cure({ text }) {
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  return sentence.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));
}
