// Which webhooks were told of what happened to a message. Deliveries name events, and the stream of events names
// messages; both are read only as far as the message's own time.
import { call } from "../lib/api.js";
import { Badge, Failed, html, Loading, t, Time, useEffect, useState, words } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { Table } from "../lib/table.js";

const PAGE = 200;
const PAGES = 3;
const WEBHOOKS = 10;
const TIMES = 12;

export default function Told({ message }) {
  const [found, setFound] = useState({});
  const key = `${message.message_id}${message.events.length}${message.updated_at}`;
  useEffect(() => {
    const abort = new AbortController();
    toldOf(message, abort.signal).then(setFound, (error) => !abort.signal.aborted && setFound({ error }));
    return () => abort.abort();
  }, [key]);
  const { error, webhooks, rows, isCut } = found;
  if (error) return html`<${Failed} error=${error} />`;
  if (!rows) return html`<${Loading} lines=${2} />`;
  if (!webhooks.length) return html`<p class="muted">${t("There are no webhooks.")} <a href=${href("webhooks", { new: 1 })}>${t("New webhook")}</a></p>`;
  const cut = isCut && html`<p class="muted">${t("Older deliveries are at each webhook:")} ${webhooks.map((one) => html`<a dir="auto" href=${href(`webhooks/${one.id}`)}>${one.url}</a> `)}</p>`;
  if (!rows.length) return html`<p class="muted">${t("No webhook was told of this message.")}</p>${cut}`;
  return html`<${Table} rows=${rows} columns=${columns()} rowHref=${(row) => href(`webhooks/${row.webhook.id}`)} caption=${t("Webhooks that were told")} />${cut}`;
}

const columns = () => [
  { label: t("Webhook"), cell: (row) => html`<span dir="auto">${row.webhook.url}</span>` },
  { label: t("Event"), cell: (row) => words(row.event_type) },
  { label: t("Delivery"), cell: (row) => html`<${Badge} status=${row.status} /> <span class="muted">${answer(row)}</span>` },
  { label: t("Attempts"), numeric: true, cell: (row) => row.attempts },
  { label: t("Time"), cell: (row) => html`<${Time} at=${row.delivered_at ?? row.created_at} />` },
];

function answer({ response_status: status, error, next_attempt_at: next }) {
  const said = status ? t("answered {status}", { status }) : words(error ?? "");
  return html`${said}${next && html`${said && " · "}${t("next try")} <${Time} at=${next} />`}`;
}

async function toldOf(message, signal) {
  const quiet = { quiet: true, signal };
  const { data: webhooks } = await call("listWebhooks", { query: { limit: WEBHOOKS }, ...quiet });
  if (!webhooks.length) return { webhooks, rows: [] };
  const ids = await eventsOf(message, quiet);
  let isCut = false;
  const rows = (await Promise.all(webhooks.map(async (webhook) => {
    const [deliveries, cut] = await deliveriesSince(webhook.id, message.created_at, quiet);
    isCut ||= cut;
    return deliveries.filter((one) => ids.has(one.event_id)).map((one) => ({ ...one, webhook }));
  }))).flat();
  return { webhooks, isCut, rows: rows.sort((one, other) => other.created_at.localeCompare(one.created_at)) };
}

// The ids of the message's events: those of the stream that name it, at each of its times.
async function eventsOf(message, quiet) {
  const ids = new Set();
  let until = "";
  for (const at of [...new Set(message.events.slice(1).map((event) => event.at))].slice(0, TIMES)) {
    if (at > until) {
      const { data } = await call("listWebhookEvents", { query: { since: at, wait: 0, limit: 100 }, ...quiet });
      for (const event of data) if (event.data.message_id === message.message_id) ids.add(event.id);
      until = data.at(-1)?.timestamp ?? at;
    }
  }
  return ids;
}

// Deliveries, newest first, down to a time.
async function deliveriesSince(id, since, quiet) {
  const found = [];
  let cursor;
  for (let page = 0; page < PAGES; page += 1) {
    const { data, next_cursor: next } = await call("listDeliveries", { path: { id }, query: { limit: PAGE, cursor }, ...quiet });
    found.push(...data);
    if (!next || data.at(-1).created_at < since) return [found, false];
    cursor = next;
  }
  return [found, true];
}
