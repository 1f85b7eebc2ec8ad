// Messages: what was sent and what became of it, newest first. Rows never jump; what is new is counted above them.
import { allowed } from "../lib/api.js";
import { Badge, Empty, Head, html, Sandboxed, t, Time, useCall, useMemo, useState } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { Filters, filtersOf, List } from "../lib/table.js";
import { Later } from "../lib/later.js";
import { News, useFresh } from "../lib/fresh.js";
import { asCurl } from "../lib/show_as.js";
import { CHANNELS, channelName } from "../lib/channels.js";

const STATUSES = ["queued", "sending", "deferred", "sent", "delivered", "bounced", "complained", "failed", "suppressed", "cancelled"];
const FILTERS = ["q", "status", "channel", "to", "tag", "template_id", "campaign_id", "automation_id", "contact_id", "since", "until"];

export default function Messages({ segments, query }) {
  const [id] = segments;
  return id ? html`<${Later} load=${() => import("./message.js")} id=${id} query=${query} />` : html`<${MessageList} query=${query} />`;
}

function MessageList({ query }) {
  const [rows, setRows] = useState();
  const [reloads, setReloads] = useState(0);
  const asked = useMemo(() => filtersOf(query, FILTERS), [JSON.stringify(query)]);
  // Into an empty list nothing can jump, so what comes is shown at once.
  const { now, fresh, more } = useFresh({ id: "listMessages", query: asked, shown: rows, keyOf: (row) => row.message_id, active: !query.cursor });
  return html`
    <${Head} title=${t("Messages")}>
      ${allowed("sendMessage") && html`<a class="button primary" href=${href("send")}>${t("Send a message")}</a>`}
    </${Head}>
    <${Sandboxed} channel=${query.channel || "email"} />
    <${MessageFilters} />
    ${!query.cursor && rows && (rows.length > 0 || fresh > 0) && html`<${News} fresh=${fresh} more=${more} onShow=${() => setReloads(reloads + 1)} />`}
    <${List} id="listMessages" args=${{ query: asked }} caption=${t("Messages")} reloads=${reloads + (rows?.length === 0 ? fresh : 0)} onRows=${setRows}
      rowKey=${(row) => row.message_id} rowHref=${(row) => href(`messages/${row.message_id}`)}
      columns=${columns(now)} filters=${FILTERS} words=${["message", "messages"]}
      nameOf=${(row) => [row.to, row.subject].filter(Boolean).join(", ") || row.message_id} empty=${html`<${NoMessages} />`} />`;
}

const columns = (now) => [
  { label: t("To"), cell: (row) => html`<span class="address" dir="auto">${row.to || t("no address")}</span>` },
  { label: t("Subject"), cell: (row) => row.subject && html`<span class="clipped"><bdi>${row.subject}</bdi></span>` },
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

function MessageFilters() {
  const [isOpen, setIsOpen] = useState(false);
  const named = (id) => (useCall(isOpen && allowed(id) && id, { query: { limit: 200 } }, { quiet: true }).data?.data ?? []).map((one) => [one.id, one.name]);
  return html`<${Filters} fields=${[
    { name: "q", label: t("Search") },
    { name: "status", label: t("Status"), options: STATUSES.map((word) => [word, t(word)]) },
    { name: "channel", label: t("Channel"), options: CHANNELS.map((word) => [word, channelName(word)]) },
    { name: "to", label: t("To") },
    { name: "tag", label: t("Tag") },
  ]} more=${[
    { name: "template_id", label: t("Template"), options: named("listTemplates") },
    { name: "campaign_id", label: t("Campaign"), options: named("listCampaigns") },
    { name: "automation_id", label: t("Automation"), options: named("listAutomations") },
    { name: "contact_id", label: t("Contact id") },
    { name: "since", label: t("Since"), type: "date" },
    { name: "until", label: t("Until"), type: "date" },
  ]} onMore=${setIsOpen} />`;
}
