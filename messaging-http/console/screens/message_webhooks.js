// Which webhooks were told of what happened to a message.
import { Badge, html, Loaded, t, Time, useCall, words } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { Table } from "../lib/table.js";

const PAGE = 200;
// So long deliveries are kept.
const KEPT_MS = 30 * 86400000;

export default function Told({ message }) {
  const { message_id: id, events, updated_at: at, created_at: created } = message;
  const found = useCall("listMessageDeliveries", { query: { message_id: id, limit: PAGE }, round: `${events.length}${at}` });
  const isTold = found.data?.data.length > 0;
  const webhooks = useCall(isTold && "listWebhooks", { query: { limit: PAGE } }, { quiet: true });
  const nameOf = ({ webhook_id: hook }) => webhooks.data?.data.find((one) => one.id === hook)?.url ?? (webhooks.data ? t("deleted") : "…");
  return html`<${Loaded} of=${found} skeleton=${2}>${({ data, next_cursor: next }) => {
    if (!data.length) {
      return html`<p class="muted">${Date.now() - Date.parse(created) > KEPT_MS
        ? t("Deliveries are kept for 30 days: what webhooks were told of this message is no longer known.")
        : t("No webhook was told of this message.")} <a href=${href("webhooks")}>${t("Webhooks")}</a></p>`;
    }
    return html`<${Table} rows=${data} columns=${columns(nameOf)} rowHref=${(row) => href(`webhooks/${row.webhook_id}`)} caption=${t("Webhooks that were told")} />
      ${next && html`<p class="muted">${t("These are the newest; the webhooks list all.")} <a href=${href("webhooks")}>${t("Webhooks")}</a></p>`}`;
  }}</${Loaded}>`;
}

const columns = (nameOf) => [
  { label: t("Webhook"), cell: (row) => html`<span dir="auto">${nameOf(row)}</span>` },
  { label: t("Event"), cell: (row) => words(row.event_type) },
  { label: t("Delivery"), cell: (row) => html`<${Badge} status=${row.status} /> <span class="muted">${answer(row)}</span>` },
  { label: t("Attempts"), numeric: true, cell: (row) => row.attempts },
  { label: t("Time"), cell: (row) => html`<${Time} at=${row.delivered_at ?? row.created_at} />` },
];

function answer({ response_status: status, error, next_attempt_at: next }) {
  const said = status ? t("answered {status}", { status }) : words(error ?? "");
  return html`${said}${next && html`${said && " · "}${t("next try")} <${Time} at=${next} />`}`;
}
