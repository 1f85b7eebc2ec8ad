// Audit log: who changed what in the workspace, newest first, with what was there before and after.
import { urlOf } from "../lib/api.js";
import { changeQuery, href } from "../lib/route.js";
import { Filters, isFiltered, List } from "../lib/table.js";
import { absolute, Code, count, dialog, Empty, Facts, Head, html, laterDay, startOf, t, Time, words } from "../lib/ui.js";

const ACTORS = [["user", "people"], ["key", "API keys"], ["command", "commands of the operator"], ["system", "the server"]];
const KINDS = [
  "api_key", "automation", "campaign", "channel", "contact", "custom_field", "import", "ip_pool", "list", "member", "segment", "sending_domain",
  "suppression", "template", "user", "webhook", "workspace",
];
const FILTERS = ["actor", "resource", "operation", "since", "until"];
const DAY = /^\d{4}-\d\d-\d\d$/;

export default function Audit({ query }) {
  const asked = { ...Object.fromEntries(FILTERS.map((name) => [name, query[name] || undefined])), since: moment(query.since, 0), until: moment(query.until, 1) };
  return html`
    <${Head} title=${t("Audit log")} text=${t("Who changed what. Nobody can change this list; entries stay for 400 days unless the operator chose another time.")}>
      <button type="button" onClick=${() => exported(asked)}>${t("As CSV")}</button></${Head}>
    <${Filters} fields=${[
      { name: "actor", label: t("By"), options: ACTORS.map(([value, text]) => [value, t(text)]) },
      { name: "resource", label: t("About"), options: kinds(query.resource) },
      { name: "operation", label: t("Operation") },
    ]}>
      <${Day} name="since" label=${t("Since")} query=${query} />
      <${Day} name="until" label=${t("Until")} query=${query} />
      ${isFiltered(query, FILTERS) && html`<a class="button" href=${href("audit")}>${t("Clear filters")}</a>`}
    </${Filters}>
    <${List} id="listAudit" args=${{ query: asked }} caption=${t("Audit log")} filtered=${isFiltered(query, FILTERS)}
      columns=${[
        { label: t("Operation"), cell: (row) => html`<strong>${row.operation}</strong>` },
        { label: t("About"), cell: (row) => html`<${About} resource=${row.resource} />` },
        { label: t("By"), cell: (row) => html`<${By} actor=${row.actor} />` },
        { label: t("Changes"), wide: true, cell: (row) => (row.changes.length ? html`<code class="muted">${shortened(row.changes)}</code>` : html`<span class="muted">–</span>`) },
        { label: t("Time"), cell: (row) => html`<${Time} at=${row.at} />` },
      ]}
      actions=${(row) => html`<button type="button" class="small" onClick=${() => open(row)}>${t("Details")}<span class="sr"> ${row.operation} ${absolute(row.at)}</span></button>`}
      empty=${html`<${Empty} title=${t("Nothing was recorded yet")} text=${t("Changes of keys, members, settings, templates and campaigns stand here, and who signed in.")}
        example="messaging audit list" />`} />`;
}

const moment = (text, days) => (DAY.test(text ?? "") ? startOf(laterDay(text, days)).toISOString() : text || undefined);

// A link may name one resource; it stays offered.
function kinds(chosen) {
  const options = KINDS.map((kind) => [kind, t(words(kind))]);
  return chosen && !KINDS.includes(chosen) ? [...options, [chosen, chosen]] : options;
}

function Day({ name, label, query }) {
  const value = query[name] ?? "";
  return html`<label><span>${label}</span><input type="date" name=${name} value=${DAY.test(value) ? value : ""}
    onChange=${(event) => changeQuery({ [name]: event.target.value, cursor: null })} /></label>`;
}

function About({ resource: { kind, id, name } }) {
  return html`<div>${t(words(kind))} ${name && html`<strong dir="auto">${name}</strong>`}${id && html`<br /><code class="muted">${id}</code>`}</div>`;
}

function By({ actor: { kind, name } }) {
  return html`<bdi>${name ?? t(words(kind))}</bdi>${kind === "key" && html` <span class="muted">${t("key")}</span>`}`;
}

function shortened(changes) {
  const names = changes.slice(0, 4).map(({ pointer }) => pointer.slice(1)).join(", ");
  return changes.length > 4 ? `${names}, …` : names;
}

function open(entry) {
  return dialog(() => html`<${Entry} entry=${entry} />`, { title: entry.operation, wide: true });
}

function Entry({ entry }) {
  const { actor, resource, changes } = entry;
  return html`
    <${Facts} pairs=${[
      [t("About"), html`<${About} resource=${resource} />`],
      [t("By"), html`<div><${By} actor=${actor} />${actor.id && html`<br /><code class="muted">${actor.id}</code>`}</div>`],
      [t("Time"), absolute(entry.at)],
      [t("Address"), entry.ip && html`<code>${entry.ip}</code>`],
      [t("Request"), entry.request_id && html`<a href=${href(`requests/${entry.request_id}`)}><code>${entry.request_id}</code></a>`],
      ["ID", html`<code>${entry.id}</code>`],
    ].filter(([, value]) => value)} />
    <h3>${changes.length ? count(changes.length, t("change"), t("changes")) : t("No change of a value")}</h3>
    ${changes.length > 0 && html`<table class="rows"><caption class="sr">${t("Changes")}</caption>
      <thead><tr><th scope="col">${t("Member")}</th><th scope="col">${t("Before")}</th><th scope="col">${t("After")}</th></tr></thead>
      <tbody>${changes.map(({ pointer, before, after }) => html`<tr key=${pointer}><th scope="row" data-label=${t("Member")}><code>${pointer}</code></th>
        <td data-label=${t("Before")}><${Value} value=${before} /></td><td data-label=${t("After")}><${Value} value=${after} /></td></tr>`)}</tbody></table>`}`;
}

function Value({ value }) {
  if (value === null) return html`<span class="muted">–</span>`;
  return html`<code dir="auto">${typeof value === "string" ? value : JSON.stringify(value)}</code>`;
}

// The browser's own download sends no header of its own, so the command is shown that does.
function exported(query) {
  const text = `curl -sS -H "Authorization: Bearer $TOKEN" -H 'Accept: text/csv' \\\n  '${urlOf("listAudit", { query })}' > audit.csv`;
  return dialog(() => html`<p>${t("With a session's token, which {command} prints:", { command: "messaging login" })}</p><${Code} text=${text} label=${t("curl command")} />`, { title: t("As CSV"), wide: true });
}
