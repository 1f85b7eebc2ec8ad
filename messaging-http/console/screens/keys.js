// API keys: which there are and what they were used for, a new one with its scopes, one in the place of another, and deleting one.
import { allowed, urlOf } from "../lib/api.js";
import { absolute, Action, Badge, Code, confirm, Copy, Empty, Head, html, number, relative, t, Time, useCall, useState } from "../lib/ui.js";
import { Field, Form, useFaults, useForm } from "../lib/form.js";
import { changeQuery, href } from "../lib/route.js";
import { List } from "../lib/table.js";
import { keepFocus, useFirstFocus, useFocusBack } from "../lib/focus.js";
import { LastUse, Rotation, ScopesOf } from "./key_use.js";

export default function Keys({ query }) {
  const [made, setMade] = useState(null);
  const [rotated, setRotated] = useState(null);
  const [reloads, setReloads] = useState(0);
  const again = () => setReloads((n) => n + 1);
  const isNew = query.new && allowed("createApiKey");
  const done = (key) => {
    setMade(key);
    setRotated(null);
    changeQuery({ new: null });
    again();
  };
  return html`
    <${Head} title=${t("Keys")} text=${t("A program calls the API with a key. Give each program one of its own, with no more rights than it needs.")}>
      ${allowed("createApiKey") && !isNew && html`<a class="button primary" href=${href("keys", { new: 1 })} onClick=${() => setMade(null)}>${t("New key")}</a>`}
    </${Head}>
    ${made && html`<${Made} key_=${made} onClose=${() => setMade(null)} />`}
    ${isNew && html`<${NewKey} onDone=${done} />`}
    ${rotated && html`<${Rotation} key=${rotated.id} row=${rotated} onDone=${done} onCancel=${() => setRotated(null)} />`}
    <${List} id="listApiKeys" reloads=${reloads} caption=${t("API keys")} columns=${columns()} empty=${html`<${NoKeys} />`}
      actions=${(row) => html`<${Rotate} row=${row} onClick=${() => { setMade(null); setRotated(row); scrollTo(0, 0); }} /> <${Revoke} row=${row} onDone=${() => { again(); keepFocus(); }} />`} />`;
}

const columns = () => [
  { label: t("Name"), cell: (row) => html`<strong dir="auto">${row.name}</strong> <${State} row=${row} /><br /><code class="muted">${row.prefix}…</code>` },
  { label: t("Scopes"), wide: true, cell: (row) => html`<${ScopesOf} row=${row} />` },
  { label: t("Last used"), cell: (row) => html`<${LastUse} row=${row} />` },
  { label: t("Requests"), cell: (row) => html`<div><span class="nowrap">${t("{number} a minute", { number: number(row.rate_limit) })}</span>
      ${row.ip_allowlist.length > 0 && html`<br /><span class="muted">${t("only from {addresses}", { addresses: row.ip_allowlist.join(", ") })}</span>`}
      ${row.expires_at && html`<br /><span class="muted">${isPast(row.expires_at) ? t("expired") : t("expires")} <${Time} at=${row.expires_at} /></span>`}</div>` },
  { label: t("Created"), cell: (row) => html`<${Time} at=${row.created_at} />` },
];

const isPast = (time) => new Date(time) < new Date();

function State({ row }) {
  if (row.revoked_at) return html`<${Badge} status="revoked">${t("revoked")}</${Badge}>`;
  if (row.expires_at && isPast(row.expires_at)) return html`<${Badge} status="disabled">${t("expired")}</${Badge}>`;
  return row.replaced_by ? html`<${Badge} status="paused">${t("replaced")}</${Badge}>` : null;
}

/** A key that works and that no other has replaced. */
const isActive = (row) => !row.revoked_at && !row.replaced_by && !(row.expires_at && isPast(row.expires_at));

function Rotate({ row, onClick }) {
  if (!allowed("rotateApiKey") || !isActive(row)) return null;
  return html`<button type="button" class="small" onClick=${onClick}>${t("Rotate")}<span class="sr"> ${row.name}</span></button>`;
}

function NoKeys() {
  return html`<${Empty} title=${t("No keys yet")} text=${t("A key lets a program send messages and read what became of them.")}
    action=${allowed("createApiKey") && t("New key")} href=${href("keys", { new: 1 })}
    example="messaging key create --name backend --scopes messages:send" />`;
}

const DAY = 86400000;

// A key that is in use stops a program when it goes, so its name is asked for.
function Revoke({ row, onDone }) {
  if (row.revoked_at) return null;
  const isUsed = row.last_used_at && Date.now() - new Date(row.last_used_at) < 30 * DAY;
  const before = () => confirm({
    title: t("Revoke the key {name}?", { name: row.name }),
    text: row.last_used_at
      ? t("It was last used {when}. Every program that calls with it is refused from now on, and the key cannot be brought back.", { when: relative(row.last_used_at) })
      : t("It was never used. It cannot be brought back."),
    action: t("Revoke"), name: isUsed ? row.name : undefined,
  });
  return html`<${Action} id="deleteApiKey" className="small" args=${{ path: { id: row.id } }} before=${before} onDone=${onDone}
    done=${t("The key {name} is revoked", { name: row.name })}>${t("Revoke")}<span class="sr"> ${row.name}</span></${Action}>`;
}

// ---- a new key ----

/** The scopes by subject: `[group, [[subject, what it is about, scopes]]]`. */
const SCOPES = [
  ["Sending", [
    ["Messages", "send includes reading and cancelling", ["messages:read", "messages:send"]],
    ["Product events", "what contacts do in your product", ["events:write"]],
  ]],
  ["Audience", [
    ["Contacts", "also lists, segments, fields, imports, suppressions", ["contacts:read", "contacts:write"]],
    ["Personal data", "addresses in clear; otherwise they are masked", ["pii:read"]],
  ]],
  ["Campaigns", [
    ["Templates", "", ["templates:read", "templates:write"]], ["Campaigns", "", ["campaigns:read", "campaigns:write"]],
    ["Automations", "", ["automations:read", "automations:write"]], ["Analytics", "", ["analytics:read"]],
  ]],
  ["Setup", [["Domains", "", ["domains:read", "domains:write"]], ["Webhooks", "", ["webhooks:read", "webhooks:write"]]]],
];

const ALL = SCOPES.flatMap(([, subjects]) => subjects.flatMap(([, , scopes]) => scopes));

// A scope that writes includes the one that reads.
const coveredBy = (scope) => (scope === "messages:read" ? "messages:send" : scope.endsWith(":read") ? scope.replace(/:read$/, ":write") : null);

const STARTS = [
  ["Send", "Send messages", ["messages:send"]],
  ["Sync", "Keep contacts up to date", ["contacts:write", "events:write"]],
  ["Read", "Read everything, addresses masked", ALL.filter((scope) => scope.endsWith(":read") && scope !== "pii:read")],
];

function NewKey({ onDone }) {
  const part = useFirstFocus();
  return html`<section ref=${part} class="card" aria-labelledby="new-key"><h2 id="new-key">${t("New key")}</h2>
    <${Form} id="createApiKey" initial=${{ name: "", scopes: ["messages:send"] }} onDone=${onDone} submit=${t("Create key")}
        extra=${html`<a class="button" href=${href("keys")}>${t("Cancel")}</a>`}>
      <${Field} name="name" label=${t("Name")} help=${t("The program that will use it, for instance backend.")} autocomplete="off" />
      <${Scopes} />
      <details><summary>${t("Limits: requests a minute, addresses, expiry")}</summary>
        <div class="form"><div class="row-of-fields">
          <${Field} name="rate_limit" label=${t("Requests a minute")} kind="number" placeholder="600" />
          <${Field} name="expires_at" label=${t("Expires")} kind="datetime" /></div>
          <${Field} name="ip_allowlist" label=${t("Only from these addresses")} kind="list" help=${t("IP addresses or blocks like 10.0.0.0/8, separated by commas. Empty: from everywhere.")} /></div></details>
    </${Form}></section>`;
}

function Scopes() {
  const [values, change] = useForm();
  const chosen = values.scopes ?? [];
  const hasAll = chosen.includes("*");
  const set = (scope, on) => change("scopes", on ? [...chosen, scope] : chosen.filter((other) => other !== scope));
  return html`<fieldset><legend>${t("Scopes")}</legend>
    <p class="help">${t("What the key may do. Start with one of these, then tick more:")}</p>
    <div class="actions">${STARTS.map(([, label, scopes]) => html`<button type="button" class="small" disabled=${hasAll} onClick=${() => change("scopes", scopes)}>${t(label)}</button>`)}</div>
    <div class="row-of-fields">${SCOPES.map(([group, subjects]) => html`<div class="stack" role="group" aria-label=${t(group)} key=${group}><h3>${t(group)}</h3>
      ${subjects.map(([subject, text, scopes]) => html`<div key=${subject}><p>${t(subject)}${text && html` <span class="help">${t(text)}</span>`}</p>
        <div class="actions">${scopes.map((scope) => html`<${Scope} key=${scope} scope=${scope} isChosen=${chosen.includes(scope)}
          isCovered=${hasAll || chosen.includes(coveredBy(scope))} onChange=${set} />`)}</div></div>`)}</div>`)}</div>
    <h3>${t("Everything")}</h3>
    <${Scope} scope="*" text=${t("all of these, channel settings, and what will be added later")} isChosen=${hasAll} onChange=${(_, on) => change("scopes", on ? ["*"] : [])} />
    <${ScopesFault} /></fieldset>`;
}

function Scope({ scope, text, isChosen, isCovered, onChange }) {
  return html`<div class="field check"><label><input type="checkbox" name=${scope} checked=${isChosen || isCovered} disabled=${isCovered}
    onChange=${(event) => onChange(scope, event.target.checked)} /> <span><code>${scope}</code>${text && html` <span class="help">${text}</span>`}</span></label></div>`;
}

function ScopesFault() {
  const faults = useFaults("scopes");
  const [values] = useForm();
  if (values.scopes?.length && !faults.length) return null;
  return html`<p class="fault-text">${faults.length ? faults.map(({ message }) => message).join(" ") : t("Choose at least one scope.")}</p>`;
}

// ---- the key, once ----

function Made({ key_: made, onClose }) {
  useFocusBack();
  const domains = useCall(allowed("listSendingDomains") && "listSendingDomains", { query: { limit: 200 } }, { quiet: true });
  const from = domains.data?.data.find((one) => one.status === "verified");
  const part = useFirstFocus("button");
  return html`<section ref=${part} class="notice good" aria-labelledby="made">
    <h2 id="made">${t("Copy the key {name} now", { name: made.name })}</h2>
    <p>${t("It is shown only this once; the server keeps no copy of it.")}</p>
    <${Code} text=${made.key} label=${t("API key")} />
    <h3>${t("Try it")}</h3>
    <${Code} text=${example(made, from)} label=${t("curl command")} />
    ${made.expires_at && html`<p>${t("It works until {time}.", { time: absolute(made.expires_at) })}</p>`}
    <div class="actions"><${Copy} text=${`MESSAGING_API_KEY=${made.key}`} label=${t("Copy as a line of .env")} />
      <button type="button" class="small" onClick=${onClose}>${t("I have copied it")}</button></div></section>`;
}

// A call that the key may make: sending if it can, else the first of its reads.
const READS = [
  ["contacts", "listContacts"], ["messages", "listMessages"], ["templates", "listTemplates"], ["campaigns", "listCampaigns"],
  ["automations", "listAutomations"], ["webhooks", "listWebhooks"], ["domains", "listSendingDomains"], ["analytics", "getAnalyticsOverview"],
];

function example({ key, scopes }, from) {
  const post = (id, body) => `curl ${urlOf(id)} \\\n  -H "Authorization: Bearer $MESSAGING_API_KEY" \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(body)}'`;
  const commands = () => {
    if (scopes.includes("*") || scopes.includes("messages:send")) {
      return post("sendMessage", { channel: "email", to: "ann@example.com", from_email: `hello@${from?.domain ?? "example.com"}`, subject: "Hello", text: "It works" });
    }
    const [, read] = READS.find(([subject]) => scopes.some((scope) => scope.startsWith(`${subject}:`))) ?? [];
    if (read) return `curl "${urlOf(read)}" \\\n  -H "Authorization: Bearer $MESSAGING_API_KEY"`;
    return scopes.includes("events:write")
      ? post("sendEvent", { name: "signed_up", contact: { email: "ann@example.com" } })
      : `curl ${urlOf("getHealth")} -H "Authorization: Bearer $MESSAGING_API_KEY"`;
  };
  return `export MESSAGING_API_KEY=${key}\n${commands()}`;
}
