// What people did in your product, as your programs told it.
import { urlOf } from "../lib/api.js";
import { Empty, html, Loaded, locale, number, t, useCall } from "../lib/ui.js";
import { changeQuery } from "../lib/route.js";
import { Chart } from "../lib/chart.js";
import { Table } from "../lib/table.js";

export default function AnalyticsEvents({ query, span }) {
  const found = useCall("getAnalyticsEvents", { query: { from: span.from, to: span.to, interval: span.interval } });
  return html`<${Loaded} of=${found} skeleton=${8}>${({ data }) => {
    if (!data.length) return html`<${NoEvents} />`;
    const rows = data.toSorted((one, other) => other.count - one.count);
    const shown = rows.find(({ name }) => name === query.name) ?? rows[0];
    return html`
      <${Chart} points=${shown.series} label=${html`<span dir="auto">${shown.name}</span>`} series=${[{ name: "count", label: t("Events") }]}
        dateStyle=${span.interval === "hour" ? { weekday: "short", hour: "numeric" } : undefined} />
      <${Table} caption=${t("Product events")} rows=${rows} rowKey=${(row) => row.name} columns=${[
        { label: t("Event"), cell: (row) => html`<button type="button" class="link" aria-pressed=${row === shown} onClick=${() => changeQuery({ name: row.name })}><span dir="auto">${row.name}</span></button>` },
        { label: t("Events"), numeric: true, cell: (row) => number(row.count) },
        { label: t("People"), numeric: true, cell: (row) => number(row.contacts) },
        { label: t("Each"), numeric: true, cell: (row) => new Intl.NumberFormat(locale(), { maximumFractionDigits: 1 }).format(row.count / row.contacts) },
      ]} />`;
  }}</${Loaded}>`;
}

function NoEvents() {
  const body = JSON.stringify({ name: "order_placed", contact: { email: "ann@example.com" }, properties: { total: 59.9 } });
  return html`<${Empty} title=${t("No product events in this time")}
    text=${t("Your program tells what people do: an order, a visit. Segments and automations use it.")}
    example=${`curl ${urlOf("sendEvent")} \\\n  -H "Authorization: Bearer $MESSAGING_API_KEY" \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`} />`;
}
