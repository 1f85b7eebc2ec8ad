// The DNS records of a sending domain: what is wanted, what is there, what is wrong with it.
import { Badge, Copy, html, t, words } from "../lib/ui.js";

const PURPOSES = {
  dkim: ["Signing key (DKIM)", "Receivers check the signature of your mail with it."],
  spf: ["Permission to send (SPF)", "Says that this server may send for the domain."],
  return_path: ["Return path (MX)", "Brings bounces back to this server."],
  dmarc: ["Policy (DMARC)", "Large mailbox providers want a policy of whoever sends much. Any valid one will do."],
  tls_rpt: ["TLS reports (TLS-RPT)", "Asks other mail servers to report where mail to this domain could not be encrypted."],
  tracking: ["Tracking host (CNAME)", "Links that count clicks lead here."],
};

const STATES = { verified: "Found", pending: "Not found yet", failed: "Wrong" };

// The name that stands in records while the server has none of its own.
const UNNAMED = "hostname-not-set.invalid";

/**
 * The records to publish with what is known of them: those of the API, each with the sentence about it that stands in
 * the domain.
 */
export function recordsOf(domain, wanted) {
  const known = [...domain.dkim, domain.spf, domain.dmarc, domain.return_path, domain.tracking].filter(Boolean);
  return wanted.map((record) => {
    const { status = record.status, detail } = known.find(({ host, type }) => host === record.host && type === record.type) ?? {};
    return { ...record, status, detail };
  });
}

/** How many of the records are there. */
export function foundOf(records) {
  return records.filter(({ status }) => status === "verified").length;
}

/** Whether the records lead nowhere yet, for the server has no name of its own. */
export function isUnnamed(records) {
  return records.some(({ value }) => value.includes(UNNAMED));
}

/** All records, those that still need somebody first. */
export function Records({ records, domain }) {
  const needsWork = records.filter(({ status }) => status !== "verified");
  const done = records.filter(({ status }) => status === "verified");
  return html`
    ${isUnnamed(records) && html`<div class="notice fault"><p><strong>${t("Do not publish these records yet.")}</strong>${" "}
      ${t("This server has no name that others can look up, so they would lead nowhere. Whoever runs it starts it with --hostname, such as mx.example.com, and runs: messaging admin set-name")}</p></div>`}
    ${needsWork.length > 0 && html`<p class="muted">${t("Enter them where the DNS of {domain} is kept. If your provider adds the domain by itself, leave it out of the name: {short} instead of {long}.", {
      domain, short: needsWork[0].host.replace(`.${domain}`, ""), long: needsWork[0].host,
    })}</p>`}
    ${needsWork.map((record) => html`<${Record} key=${record.type + record.host} record=${record} />`)}
    ${done.length > 0 && html`<details><summary>${needsWork.length ? t("{number} found", { number: done.length }) : t("Show the records")}</summary>
      <div class="stack">${done.map((record) => html`<${Record} key=${record.type + record.host} record=${record} />`)}</div></details>`}
    <div class="actions"><${Copy} text=${zoneFile(records)} label=${t("Copy all as zone file")} /></div>`;
}

function Record({ record }) {
  const { purpose, type, host, value, required, status, detail } = record;
  const [title, text] = PURPOSES[purpose] ?? [words(purpose), ""];
  const kind = purpose === "dkim" && { rsa: "RSA", ed25519: "Ed25519" }[/k=(\w+)/.exec(value)?.[1]];
  return html`<article class="card record">
    <div class="head-line"><h3>${t(title)}${kind && `, ${kind}`}</h3>
      <${Badge} status=${status}>${t(STATES[status] ?? words(status))}</${Badge}>
      ${!required && html`<span class="muted">${t("recommended")}</span>`}</div>
    <p class="muted">${t(text)}</p>
    <dl class="facts">
      <div><dt>${t("Type")}</dt><dd>${type}</dd></div>
      <div><dt>${t("Name")}</dt><dd><${Value} text=${host} what=${t("name")} /></dd></div>
      ${type === "MX"
        ? html`<div><dt>${t("Mail server")}</dt><dd><${Value} text=${value.replace(/^\d+ /, "")} what=${t("mail server")} /></dd></div>
            <div><dt>${t("Priority")}</dt><dd>${value.split(" ")[0]}</dd></div>`
        : html`<div><dt>${t("Value")}</dt><dd><${Value} text=${value} what=${t("value")} /></dd></div>`}
      ${detail && html`<div><dt>${status === "verified" ? t("Note") : t("What is there")}</dt>
        <dd class=${status === "failed" ? "fault-text" : ""}>${detail}</dd></div>`}
    </dl>
  </article>`;
}

function Value({ text, what }) {
  return html`<span class="copied"><code>${text}</code> <${Copy} text=${text} label=${html`${t("Copy")}<span class="sr"> ${what}</span>`} /></span>`;
}

/** The records as lines of a zone file. */
function zoneFile(records) {
  return records.map(({ host, type, value }) => {
    // A text in DNS has parts of at most 255 bytes.
    const data = type === "TXT" ? value.match(/.{1,255}/g).map((part) => `"${part}"`).join(" ") : `${value}.`;
    return `${host}. 3600 IN ${type} ${data}`;
  }).join("\n");
}
