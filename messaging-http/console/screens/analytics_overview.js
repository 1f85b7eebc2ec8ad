// What was sent and what became of it, for all channels or one, beside the same time before.
import { allowed } from "../lib/api.js";
import { Empty, Failed, Figure, html, Loaded, number, percent, Sandboxed, t, useCall } from "../lib/ui.js";
import { Chart } from "../lib/chart.js";
import { Table } from "../lib/table.js";
import { changeQuery, href } from "../lib/route.js";
import { CHANNELS, channelName } from "../lib/channels.js";

// Member of the totals, its name, and the member of which it is a share.
const FIGURES = [
  ["sent", "Sent"], ["delivered", "Delivered", "sent"], ["unique_opens", "Opened", "delivered"], ["unique_clicks", "Clicked", "delivered"],
  ["bounces", "Bounced", "sent"], ["complaints", "Complained", "delivered"], ["unsubscribes", "Unsubscribed", "delivered"],
];

export default function AnalyticsOverview({ query, span }) {
  const { channel } = query;
  const asked = { channel, interval: span.interval };
  const now = useCall("getAnalyticsOverview", { query: { ...asked, from: span.from, to: span.to } });
  const before = useCall("getAnalyticsOverview", { query: { ...asked, from: span.before, to: span.from } });
  return html`
    <${Loaded} of=${now} skeleton=${10}>${({ totals, series }) => (hasNothing(totals) ? html`<${Nothing} query=${query} />` : html`
      <${Sandboxed} channel=${channel || "email"} />
      <p class="muted">${span.days === 1 ? t("Compared with the day before.") : t("Compared with the {days} days before.", { days: span.days })}</p>
      <div class="grid">${FIGURES.map(([name, label, whole]) => html`<${Figure} key=${name} name=${t(label)} value=${totals[name]}
        note=${note(totals, before.data?.totals, name, whole)} />`)}</div>
      <p class="help">${t("Opened and clicked count people, once for each message. Machines, such as scanners of links and programs that load pictures beforehand, are left out; each campaign tells them apart.")}</p>
      <${Chart} points=${series} label=${span.interval === "hour" ? t("Messages by hour") : t("Messages by day")}
        dateStyle=${span.interval === "hour" ? { weekday: "short", hour: "numeric" } : undefined}
        series=${[{ name: "sent", label: t("Sent") }, { name: "delivered", label: t("Delivered") }, { name: "unique_opens", label: t("Opened") }, { name: "unique_clicks", label: t("Clicked") }, { name: "bounces", label: t("Bounced") }]} />`)}
    </${Loaded}>
    ${!channel && html`<${ByChannel} span=${span} />`}`;
}

// Opens of earlier messages are worth showing also when nothing was sent.
const hasNothing = (totals) => FIGURES.every(([name]) => totals[name] === 0);

function Nothing({ query }) {
  const isYear = query.days === "365" && !query.channel;
  return html`<${Empty} title=${t("Nothing was sent in this time")} text=${t("What is sent stands here within seconds: how much arrived, was opened, clicked and came back.")}
    action=${allowed("sendMessage") && t("Send a message")} href=${href("send")}>
    ${!isYear && html`<button type="button" class="link" onClick=${() => changeQuery({ days: 365, from: null, to: null, channel: null })}>${t("Look at a whole year")}</button>`}</${Empty}>`;
}

function note(totals, earlier, name, whole) {
  const texts = [];
  if (whole && totals[whole]) texts.push(percent(totals[name] / totals[whole]));
  if (earlier) texts.push(change(totals[name], earlier[name]));
  return texts.filter(Boolean).join(" · ");
}

// How it differs from the same time before, as a share.
function change(now, before) {
  if (now === before) return now ? t("as before") : "";
  if (!before) return t("none before");
  const share = percent(Math.abs(now - before) / before);
  return now > before ? t("{share} more", { share }) : t("{share} less", { share });
}

function ByChannel({ span }) {
  const query = { interval: "day", from: span.from, to: span.to };
  // The channels are fixed, so the hooks always come in the same order.
  const found = CHANNELS.map((channel) => ({ channel, ...useCall("getAnalyticsOverview", { query: { ...query, channel } }) }));
  const failed = found.find(({ error }) => error);
  if (failed) return html`<${Failed} error=${failed.error} retry=${failed.reload} />`;
  const rows = found.filter(({ data }) => data?.totals.sent > 0).map(({ channel, data }) => ({ channel, ...data.totals }));
  if (!rows.length) return null;
  const share = (part, whole) => (row) => html`<span class="nowrap">${number(row[part])} ${row[whole] > 0 && html`<span class="muted">${percent(row[part] / row[whole])}</span>`}</span>`;
  return html`<section class="stack" aria-labelledby="by-channel"><h2 id="by-channel">${t("By channel")}</h2>
    <${Table} caption=${t("By channel")} rows=${rows} rowKey=${(row) => row.channel} columns=${[
      { label: t("Channel"), cell: (row) => html`<button type="button" class="link" onClick=${() => changeQuery({ channel: row.channel })}>${channelName(row.channel)}</button>` },
      { label: t("Sent"), numeric: true, cell: (row) => number(row.sent) },
      { label: t("Delivered"), numeric: true, cell: share("delivered", "sent") },
      { label: t("Opened"), numeric: true, cell: share("unique_opens", "delivered") },
      { label: t("Clicked"), numeric: true, cell: share("unique_clicks", "delivered") },
      { label: t("Bounced"), numeric: true, cell: share("bounces", "sent") },
      { label: t("Unsubscribed"), numeric: true, cell: share("unsubscribes", "delivered") },
    ]} /></section>`;
}
