// Audit log: who changed what in the workspace, newest first, with what was there before and after.
import { href } from "../lib/route.js";
import { Filters, filtersOf, List, Table } from "../lib/table.js";
import { absolute, count, dialog, Empty, Facts, Head, html, t, Time, words } from "../lib/ui.js";

const ACTORS = [["user", "people"], ["key", "API keys"], ["command", "commands of the operator"], ["system", "the server"]];
const KINDS = [
  "api_key", "automation", "campaign", "channel", "contact", "custom_field", "import", "ip_pool", "list", "member", "segment", "sending_domain",
  "suppression", "template", "user", "webhook", "workspace",
];
const FILTERS = ["actor", "resource", "operation", "since", "until"];

export default function Audit({ query }) {
  return html`
    <${Head} title=${t("Audit log")} text=${t("Who changed what. Nobody can change this list; entries stay for 400 days unless the operator chose another time.")} />
    <${Filters} fields=${[
      { name: "actor", label: t("By"), options: ACTORS.map(([value, text]) => [value, t(text)]) },
      { name: "resource", label: t("About"), options: KINDS.map((kind) => [kind, t(words(kind))]) },
      { name: "operation", label: t("Operation") },
      { name: "since", label: t("Since"), type: "date" },
      { name: "until", label: t("Until"), type: "date" },
    ]} />
    <${List} id="listAudit" args=${{ query: filtersOf(query, FILTERS) }} caption=${t("Audit log")} filters=${FILTERS}
      columns=${[
        { label: t("Operation"), cell: (row) => html`<strong>${row.operation}</strong>` },
        { label: t("About"), cell: (row) => html`<${About} resource=${row.resource} />` },
        { label: t("By"), cell: (row) => html`<${By} actor=${row.actor} />` },
        { label: t("Changes"), wide: true, cell: (row) => (row.changes.length ? html`<code class="muted">${shortened(row.changes)}</code>` : null) },
        { label: t("Time"), cell: (row) => html`<${Time} at=${row.at} />` },
      ]}
      actions=${(row) => html`<button type="button" class="small" onClick=${() => open(row)}>${t("Details")}<span class="sr"> ${row.operation} ${absolute(row.at)}</span></button>`}
      empty=${html`<${Empty} title=${t("Nothing was recorded yet")} text=${t("Changes of keys, members, settings, templates and campaigns stand here, and who signed in.")}
        example="messaging audit list" />`} />`;
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
    <h3>${changes.length ? count(changes.length, "change", "changes") : t("No change of a value")}</h3>
    ${changes.length > 0 && html`<${Table} caption=${t("Changes")} rows=${changes} rowKey=${({ pointer }) => pointer} columns=${[
      { label: t("Member"), cell: ({ pointer }) => html`<code>${pointer}</code>` },
      { label: t("Before"), cell: ({ before }) => valueOf(before) },
      { label: t("After"), cell: ({ after }) => valueOf(after) },
    ]} />`}`;
}

function valueOf(value) {
  return value !== null && html`<code dir="auto">${typeof value === "string" ? value : JSON.stringify(value)}</code>`;
}
