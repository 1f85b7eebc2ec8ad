// Requests: what programs and people asked of the API in the last seven days and how it was answered, newest first.
import { href } from "../lib/route.js";
import { Filters, filtersOf, List } from "../lib/table.js";
import { loggedAsCurl } from "../lib/show_as.js";
import { absolute, Badge, bytes, Code, duration, Empty, Facts, Head, html, Loaded, t, Time, useCall } from "../lib/ui.js";

const STATUSES = [["2xx", "succeeded"], ["4xx", "refused"], ["5xx", "failed"]];
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const FILTERS = ["status", "method", "path", "key_id", "user_id", "idempotency_key", "since", "until"];

export default function Requests({ segments, query }) {
  const [id] = segments;
  return id ? html`<${Request} id=${id} />` : html`<${Listing} query=${query} />`;
}

function Listing({ query }) {
  const names = useNames();
  return html`
    <${Head} title=${t("Requests")} text=${t("What was asked of the API in the last seven days. What is kept is a setting of the workspace; secrets never are.")}>
      <a class="button" href=${href("workspace")}>${t("Settings")}</a></${Head}>
    <${Filters} fields=${[
      { name: "status", label: t("Status"), options: STATUSES.map(([value, text]) => [value, `${value} ${t(text)}`]) },
      { name: "method", label: t("Method"), options: METHODS.map((method) => [method, method]) },
      { name: "path", label: t("Path begins with") },
      { name: "key_id", label: t("Key"), options: names.keys },
    ]} more=${[
      { name: "user_id", label: t("Member"), options: names.members },
      { name: "idempotency_key", label: t("Idempotency-Key") },
      { name: "since", label: t("Since"), type: "date" },
      { name: "until", label: t("Until"), type: "date" },
    ]} />
    <${List} id="listRequests" args=${{ query: filtersOf(query, FILTERS) }} caption=${t("Requests")}
      rowKey=${(row) => `${row.id} ${row.at}`} rowHref=${(row) => href(`requests/${row.id}`)} filters=${FILTERS}
      columns=${[
        { label: t("Request"), cell: (row) => html`<div><strong>${row.operation}</strong><br /><code class="muted">${row.method} ${row.path}</code></div>` },
        { label: t("Answer"), cell: (row) => html`<${Answer} request=${row} />` },
        { label: t("By"), cell: (row) => html`<bdi>${names.of(row)}</bdi>` },
        { label: t("Took"), numeric: true, cell: (row) => duration(row.duration_ms) },
        { label: t("Time"), cell: (row) => html`<${Time} at=${row.at} />` },
      ]}
      empty=${html`<${Empty} title=${t("No request was logged yet")} text=${t("Each request that changes something, and each that fails, stands here once it was answered.")}
        example="messaging request list --follow" />`} />`;
}

// The names of keys and members; what is gone is shown by its id.
function useNames() {
  const keys = useCall("listApiKeys", { query: { limit: 200 } }, { quiet: true });
  const members = useCall("listMembers", { query: { limit: 200 } }, { quiet: true });
  const named = {
    keys: (keys.data?.data ?? []).map((key) => [key.id, key.name]),
    members: (members.data?.data ?? []).map((member) => [member.user_id, member.name ?? member.email]),
  };
  const all = new Map([...named.keys, ...named.members]);
  return {
    ...named,
    of: ({ key_id: key, user_id: user }) => all.get(key ?? user) ?? key ?? user ?? "–",
  };
}

function Answer({ request: { status, code } }) {
  const tone = status < 400 ? "succeeded" : status < 500 ? "warning" : "failed";
  return html`<${Badge} status=${tone}>${status}${code && ` ${code}`}</${Badge}>`;
}

// ---- one request ----

function Request({ id }) {
  const found = useCall("getRequest", { path: { id } });
  const names = useNames();
  return html`
    <${Head} title=${t("Request")} back=${href("requests")} backText=${t("Requests")} />
    <${Loaded} of=${found}>${(request) => html`
      <${Facts} pairs=${[
        [t("Operation"), html`<strong>${request.operation}</strong>`],
        [t("Request"), html`<code>${request.method} ${request.path}</code>`],
        [t("Answer"), html`<${Answer} request=${request} />`],
        [t("By"), html`<bdi>${names.of(request)}</bdi>`],
        [t("Time"), absolute(request.at)],
        [t("Took"), duration(request.duration_ms)],
        [t("Length of the body"), bytes(request.request_bytes)],
        [t("Address"), request.ip && html`<code>${request.ip}</code>`],
        [t("Program"), request.user_agent && html`<bdi>${request.user_agent}</bdi>`],
        [t("Idempotency-Key"), request.idempotency_key && html`<code>${request.idempotency_key}</code>`],
        [t("Resource"), request.resource_id && html`<code>${request.resource_id}</code>`],
        ["ID", html`<code>${request.id}</code>`],
      ].filter(([, value]) => value)} />
      <${Body} title=${t("Body of the request")} value=${request.request} />
      <${Body} title=${t("Body of the answer")} value=${request.response} />
      <section class="stack" aria-labelledby="curl"><h2 id="curl">${t("As curl")}</h2>
        <${Code} text=${loggedAsCurl(request)} label=${t("curl command")} /></section>`}</${Loaded}>`;
}

function Body({ title, value }) {
  return html`<section class="stack"><h2>${title}</h2>
    ${value === null
      ? html`<p class="muted">${t("There is none, or it is not kept: see the setting of the workspace. Bodies of more than 16 KiB never are.")}</p>`
      : html`<${Code} text=${JSON.stringify(value, null, 2)} label=${title} />`}</section>`;
}
