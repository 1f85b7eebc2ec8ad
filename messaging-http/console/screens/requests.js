// Requests: what programs and people asked of the API in the last seven days and how it was answered, newest first.
import { changeQuery, href } from "../lib/route.js";
import { Filters, isFiltered, List } from "../lib/table.js";
import { loggedAsCurl } from "../lib/show_as.js";
import { absolute, Badge, bytes, Code, duration, Empty, Facts, Head, html, laterDay, Loaded, startOf, t, Time, useCall } from "../lib/ui.js";

const STATUSES = [["2xx", "succeeded"], ["4xx", "refused"], ["5xx", "failed"]];
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const FILTERS = ["status", "method", "path", "key_id", "user_id", "idempotency_key", "since", "until"];

export default function Requests({ segments, query }) {
  const [id] = segments;
  return id ? html`<${Request} id=${id} />` : html`<${Listing} query=${query} />`;
}

function Listing({ query }) {
  const names = useNames();
  const asked = Object.fromEntries(FILTERS.map((name) => [name, query[name] || undefined]));
  return html`
    <${Head} title=${t("Requests")} text=${t("What was asked of the API in the last seven days. What is kept is a setting of the workspace; secrets never are.")}>
      <a class="button" href=${href("workspace")}>${t("Settings")}</a></${Head}>
    <${Filters} fields=${[
      { name: "status", label: t("Status"), options: STATUSES.map(([value, text]) => [value, `${value} ${t(text)}`]) },
      { name: "method", label: t("Method"), options: METHODS.map((method) => [method, method]) },
      { name: "path", label: t("Path begins with") },
      { name: "key_id", label: t("Key"), options: names.keys },
      { name: "idempotency_key", label: t("Idempotency-Key") },
    ]}>
      <${Day} name="since" label=${t("Since")} query=${query} days=${0} />
      <${Day} name="until" label=${t("Until")} query=${query} days=${1} />
      ${isFiltered(query, FILTERS) && html`<a class="button" href=${href("requests")}>${t("Clear filters")}</a>`}
    </${Filters}>
    <${List} id="listRequests" args=${{ query: { ...asked, since: momentOfDay(query.since, 0), until: momentOfDay(query.until, 1) } }} caption=${t("Requests")}
      rowKey=${(row) => `${row.id} ${row.at}`} rowHref=${(row) => href(`requests/${row.id}`)} filtered=${isFiltered(query, FILTERS)}
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

const DAY = /^\d{4}-\d\d-\d\d$/;

// A day of the workspace as the moment at which it begins or ends.
function momentOfDay(text, days) {
  return DAY.test(text ?? "") ? startOf(laterDay(text, days)).toISOString() : text || undefined;
}

function Day({ name, label, query }) {
  const value = query[name] ?? "";
  return html`<label><span>${label}</span><input type="date" name=${name} value=${DAY.test(value) ? value : ""}
    onChange=${(event) => changeQuery({ [name]: event.target.value, cursor: null })} /></label>`;
}

// The names of keys and members; what is gone is shown by its id.
function useNames() {
  const keys = useCall("listApiKeys", { query: { limit: 200 } }, { quiet: true });
  const members = useCall("listMembers", { query: { limit: 200 } }, { quiet: true });
  const named = new Map([
    ...(keys.data?.data ?? []).map((key) => [key.id, key.name]),
    ...(members.data?.data ?? []).map((member) => [member.user_id, member.name ?? member.email]),
  ]);
  return {
    keys: (keys.data?.data ?? []).map((key) => [key.id, key.name]),
    of: ({ key_id: key, user_id: user }) => named.get(key ?? user) ?? key ?? user ?? "–",
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
