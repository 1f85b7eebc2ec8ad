// Campaigns by the day on which they are sent: a month as a table, on narrow pages the days that have some.
import { channelName } from "../lib/channels.js";
import { State } from "../lib/campaign.js";
import { readAll } from "../lib/export.js";
import { href } from "../lib/route.js";
import { absolute, count, dayOf, html, laterDay, Loaded, locale, number, t, useEffect, useReducer, useState } from "../lib/ui.js";

/** Campaigns that are read, the newest first. */
const MOST = 1000;

const MONTH = /^\d{4}-(0[1-9]|1[0-2])$/;

/** So many months after a month, `2026-01`. */
export function laterMonth(month, months) {
  const [year, nth] = month.split("-").map(Number);
  return new Date(Date.UTC(year, nth - 1 + months)).toISOString().slice(0, 7);
}

/** The days of a month by weeks, with those of other months around it; a week begins with `first`, 1 for Monday to 7. */
export function weeksOf(month, first) {
  const begin = `${month}-01`;
  const end = laterDay(`${laterMonth(month, 1)}-01`, -1);
  const before = (new Date(begin).getUTCDay() - first + 7) % 7;
  const weeks = [];
  for (let day = laterDay(begin, -before); day <= end; day = laterDay(day, 7)) {
    weeks.push(Array.from({ length: 7 }, (_, nth) => laterDay(day, nth)));
  }
  return weeks;
}

/** When a campaign is sent or was; undefined for drafts. */
export const timeOf = ({ status, started_at: began, scheduled_at: planned }) => (status === "draft" ? undefined : began ?? planned ?? undefined);

// A day without a time has no zone.
const written = (day, options) => new Intl.DateTimeFormat(locale(), { timeZone: "UTC", ...options }).format(new Date(day));

function useCampaigns(status) {
  const [state, setState] = useState({ loading: true });
  const [round, reload] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    const abort = new AbortController();
    const rows = [];
    setState({ loading: true });
    readAll("listCampaigns", { query: { status } }, { most: MOST, signal: abort.signal, hear: (page) => rows.push(...page) }).then(
      (more) => setState({ data: { rows, more } }),
      (error) => !abort.signal.aborted && setState({ error }),
    );
    return () => abort.abort();
  }, [status, round]);
  return { ...state, reload };
}

export default function Calendar({ query }) {
  const today = dayOf(Date.now());
  const month = MONTH.test(query.month ?? "") ? query.month : today.slice(0, 7);
  const to = (other) => href("campaigns", { ...query, month: other, cursor: null });
  const title = written(`${month}-01`, { month: "long", year: "numeric" });
  return html`<section class="stack" aria-labelledby="month">
    <div class="head-line"><h2 id="month">${title}</h2><nav class="actions" aria-label=${t("Months")}>
      <a class="button" rel="prev" href=${to(laterMonth(month, -1))}>${t("Earlier month")}</a>
      <a class="button" href=${to(null)}>${t("Today")}</a>
      <a class="button" rel="next" href=${to(laterMonth(month, 1))}>${t("Later month")}</a></nav></div>
    <${Loaded} of=${useCampaigns(query.status)} skeleton=${8}>${({ rows, more }) => html`<${Month} month=${month} today=${today} title=${title} rows=${rows} />
      ${more && html`<p class="notice warning">${t("Only the newest {number} campaigns are shown.", { number: number(MOST) })}</p>`}`}</${Loaded}></section>`;
}

function Month({ month, today, title, rows }) {
  const timed = rows.filter(timeOf).toSorted((one, other) => timeOf(one).localeCompare(timeOf(other)));
  const days = Map.groupBy(timed, (row) => dayOf(timeOf(row)));
  const shown = timed.filter((row) => dayOf(timeOf(row)).startsWith(month)).length;
  const weeks = weeksOf(month, new Intl.Locale(locale() ?? navigator.language).getWeekInfo?.().firstDay ?? 1);
  return html`<p class="muted" role="status">${shown ? count(shown, "campaign in this month", "campaigns in this month") : t("No campaign in this month.")}</p>
    <table class="calendar"><caption class="sr">${title}</caption>
      <thead><tr>${weeks[0].map((day) => html`<th scope="col" key=${day}><abbr title=${written(day, { weekday: "long" })}>${written(day, { weekday: "short" })}</abbr></th>`)}</tr></thead>
      <tbody>${weeks.map((week) => html`<tr key=${week[0]}>${week.map((day) => html`<td key=${day} class=${day.startsWith(month) ? "" : "other"} aria-current=${day === today ? "date" : undefined}>
        <time datetime=${day}><span class="short">${Number(day.slice(8))}</span><span class="long">${written(day, { weekday: "long", day: "numeric", month: "long" })}</span></time>
        ${days.has(day) && html`<ul class="plain">${days.get(day).map((row) => html`<li key=${row.id}><a href=${href(`campaigns/${row.id}`)} dir="auto">${row.name}</a>
          <span class="muted">${absolute(timeOf(row), { timeStyle: "short" })} · ${channelName(row.channel)}</span> <${State} campaign=${row} /></li>`)}</ul>`}</td>`)}</tr>`)}</tbody></table>`;
}
