// A campaign over time, and its links.
import { html, Loaded, number, t, useCall, useMemo } from "../lib/ui.js";
import { Chart } from "../lib/chart.js";
import { Table } from "../lib/table.js";

const LOOK_MS = 15000;
const HOUR = 3600000;
const DAY = 24 * HOUR;
const BY_HOUR_DAYS = 3;
const LONGEST_DAYS = 60;

export function Activity({ campaign }) {
  const { id, status, started_at: started } = campaign;
  // By hours as long as the campaign is young, then by days.
  const span = useMemo(() => {
    const from = Math.floor(new Date(started).getTime() / HOUR) * HOUR;
    const to = Math.min(Math.ceil(Date.now() / HOUR) * HOUR, from + LONGEST_DAYS * DAY);
    return { from: new Date(from).toISOString(), to: new Date(to).toISOString(), interval: to - from <= BY_HOUR_DAYS * DAY ? "hour" : "day" };
  }, [started]);
  const found = useCall("getAnalyticsCampaign", { path: { id }, query: span }, { every: status === "sending" ? LOOK_MS : 0 });
  return html`<${Loaded} of=${found} skeleton=${6}>${({ series, links }) => html`
    <section class="stack" aria-labelledby="over-time"><h2 id="over-time">${t("Over time")}</h2>
      <${Chart} points=${series} label=${span.interval === "hour" ? t("By hour") : t("By day")}
        dateStyle=${span.interval === "hour" ? { weekday: "short", hour: "numeric" } : undefined}
        series=${[{ name: "delivered", label: t("Delivered") }, { name: "unique_opens", label: t("Opened") }, { name: "unique_clicks", label: t("Clicked") }]} /></section>
    ${campaign.channel === "email" && html`<section class="stack" aria-labelledby="links"><h2 id="links">${t("Links")}</h2>
      ${links.length
        ? html`<${Table} caption=${t("Links")} rows=${links} rowKey=${(row) => row.url} columns=${[
            { label: t("Link"), cell: (row) => html`<code dir="ltr">${row.url}</code>` },
            { label: t("People"), numeric: true, cell: (row) => number(row.unique_clicks) },
            { label: t("Clicks"), numeric: true, cell: (row) => number(row.clicks) },
          ]} />`
        : html`<p class="muted">${t("Nobody has clicked a link yet.")}</p>`}</section>`}`}</${Loaded}>`;
}
