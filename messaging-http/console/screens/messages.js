// Messages: what was sent and what became of it, newest first. Rows never jump; what is new is counted above them.
import { allowed } from "../lib/api.js";
import { Badge, count, dayOf, Empty, Head, html, laterDay, Sandboxed, startOf, t, Time, useCall, useMemo, useState } from "../lib/ui.js";
import { changeQuery, href } from "../lib/route.js";
import { Filters, isFiltered, List } from "../lib/table.js";
import { Later } from "../lib/later.js";
import { useFresh } from "../lib/fresh.js";
import { asCurl } from "../lib/show_as.js";
import { CHANNELS, channelName } from "../lib/channels.js";

const STATUSES = ["queued", "sending", "deferred", "sent", "delivered", "bounced", "complained", "failed", "suppressed", "cancelled"];
const MORE = ["template_id", "campaign_id", "automation_id", "contact_id", "since", "until"];
const FILTERS = ["q", "status", "channel", "to", "tag", ...MORE];

export default function Messages({ segments, query }) {
  const [id] = segments;
  return id ? html`<${Later} load=${() => import("./message.js")} id=${id} query=${query} />` : html`<${MessageList} query=${query} />`;
}

function MessageList({ query }) {
  const [rows, setRows] = useState();
  const [reloads, setReloads] = useState(0);
  const asked = useMemo(() => asks(query), [JSON.stringify(query)]);
  // Into an empty list nothing can jump, so what comes is shown at once.
  const { now, fresh, more } = useFresh({ id: "listMessages", query: asked, shown: rows, keyOf: (row) => row.message_id, active: !query.cursor });
  const show = () => {
    setReloads(reloads + 1);
    scrollTo(0, 0);
  };
  return html`
    <${Head} title=${t("Messages")}>
      ${allowed("sendMessage") && html`<a class="button primary" href=${href("send")}>${t("Send a message")}</a>`}
    </${Head}>
    <${Sandboxed} channel=${query.channel || "email"} />
    <${MessageFilters} query=${query} />
    ${!query.cursor && rows && (rows.length > 0 || fresh > 0) && html`<div class="news" role="status">${fresh > 0
      ? html`<button type="button" class="small" onClick=${show}>${more ? t("More than {fresh} new", { fresh }) : count(fresh, t("new"), t("new"))}</button>`
      : html`<span class="muted">${t("Newest first")}</span>`}</div>`}
    <${List} id="listMessages" args=${{ query: asked }} caption=${t("Messages")} reloads=${reloads + (rows?.length === 0 ? fresh : 0)} onRows=${setRows}
      rowKey=${(row) => row.message_id} rowHref=${(row) => href(`messages/${row.message_id}`)}
      columns=${columns(now)} filtered=${isFiltered(query, FILTERS)} empty=${html`<${NoMessages} />`} />`;
}

const DAY = /^\d{4}-\d\d-\d\d$/;

// Days of the workspace become times; everything else is asked for as it stands in the URL.
function asks(query) {
  const asked = Object.fromEntries(FILTERS.map((name) => [name, query[name] || undefined]));
  return { ...asked, since: dayTime(query.since, 0), until: dayTime(query.until, 1) };
}

function dayTime(text, days) {
  return DAY.test(text ?? "") ? startOf(laterDay(text, days)).toISOString() : text || undefined;
}

const columns = (now) => [
  { label: t("To"), cell: (row) => html`<span class="address" dir="auto">${row.to || t("no address")}</span>` },
  { label: t("Subject"), cell: (row) => (row.subject ? html`<span class="clipped"><bdi>${row.subject}</bdi></span>` : html`<span class="muted">–</span>`) },
  { label: t("Status"), cell: (row) => html`<${State} row=${now(row)} />` },
  { label: t("Channel"), cell: (row) => channelName(row.channel) },
  { label: t("Time"), cell: (row) => html`<${Time} at=${row.created_at} />` },
];

function State({ row }) {
  const { explanation, status } = row;
  const isPlain = ["delivered", "sent", "sending"].includes(status) || explanation.code === "queued" || explanation.code === "cancelled";
  return html`<div><${Badge} status=${status} />${!isPlain && html`<p class="reason muted">${explanation.text}</p>`}</div>`;
}

function NoMessages() {
  const body = { channel: "email", to: "ann@example.com", subject: "Hello", text: "It works" };
  return allowed("sendMessage")
    ? html`<${Empty} title=${t("No message was sent yet")} text=${t("Each one stands here with what became of it, and why.")}
        action=${t("Send a message")} href=${href("send")} example=${asCurl({ id: "sendMessage", body })} />`
    : html`<${Empty} title=${t("No message was sent yet")} text=${t("Each one stands here with what became of it, and why.")} />`;
}

// ---- filters ----

function MessageFilters({ query }) {
  const [open, setOpen] = useState(() => isFiltered(query, MORE));
  const set = FILTERS.filter((name) => query[name]);
  return html`<div>
    <${Filters} fields=${[
      { name: "q", label: t("Search") },
      { name: "status", label: t("Status"), options: STATUSES.map((word) => [word, t(word)]) },
      { name: "channel", label: t("Channel"), options: CHANNELS.map((word) => [word, channelName(word)]) },
      { name: "to", label: t("To") },
      { name: "tag", label: t("Tag") },
    ]}>
      <button type="button" class="quiet" aria-expanded=${open} onClick=${() => setOpen(!open)}>${open ? t("Fewer filters") : t("More filters")}</button>
      ${set.length > 0 && html`<a class="button" href=${href("messages")}>${t("Clear filters")}</a>`}
    </${Filters}>
    ${open && html`<${MoreFilters} query=${query} />`}
  </div>`;
}

function MoreFilters({ query }) {
  const templates = useCall(allowed("listTemplates") && "listTemplates", { query: { limit: 200 } }, { quiet: true });
  const campaigns = useCall(allowed("listCampaigns") && "listCampaigns", { query: { limit: 200 } }, { quiet: true });
  const automations = useCall(allowed("listAutomations") && "listAutomations", { query: { limit: 200 } }, { quiet: true });
  const named = (found, name, label) => {
    const options = (found.data?.data ?? []).map((one) => [one.id, one.name]);
    // What stands in the URL is offered even where its name is not known.
    if (query[name] && !options.some(([id]) => id === query[name])) options.push([query[name], query[name]]);
    return { name, label, options };
  };
  return html`<${Filters} label=${t("More filters")} fields=${[
    named(templates, "template_id", t("Template")),
    named(campaigns, "campaign_id", t("Campaign")),
    named(automations, "automation_id", t("Automation")),
    { name: "contact_id", label: t("Contact id") },
  ]}>
    <${Day} name="since" label=${t("Since")} query=${query} />
    <${Day} name="until" label=${t("Until")} query=${query} />
  </${Filters}>`;
}

function Day({ name, label, query }) {
  const value = query[name] ?? "";
  // A link may name a whole time; the day that it falls on is shown.
  const shown = DAY.test(value) || !value ? value : dayOf(value);
  return html`<label><span>${label}</span><input type="date" name=${name} value=${shown}
    onChange=${(event) => changeQuery({ [name]: event.target.value, cursor: null })} /></label>`;
}
