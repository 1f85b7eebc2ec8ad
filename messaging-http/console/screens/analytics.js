// Analytics: messages by channel with the time before beside them, campaigns, and product events.
import { allowed } from "../lib/api.js";
import { Head, html, t, Tabs } from "../lib/ui.js";
import { changeQuery, href } from "../lib/route.js";
import { CHANNELS, channelName } from "../lib/channels.js";
import { Later } from "../lib/later.js";
import { spanOf, SPANS } from "../lib/span.js";

const TABS = [["overview", "Overview"], ["campaigns", "Campaigns"], ["events", "Product events"]];

const PARTS = {
  overview: () => import("./analytics_overview.js"),
  campaigns: () => import("./analytics_campaigns.js"),
  events: () => import("./analytics_events.js"),
};

export default function Analytics({ query }) {
  const tab = PARTS[query.tab] ? query.tab : "overview";
  const { days, from, to } = query;
  const span = spanOf(query);
  return html`
    <${Head} title=${t("Analytics")} />
    <${Tabs} current=${tab} tabs=${TABS.map(([id, label]) => ({ id, label: t(label), href: href("analytics", { tab: id === "overview" ? null : id, days, from, to }) }))} />
    ${tab !== "campaigns" && html`<${Span} query=${query} withChannel=${tab === "overview"} />`}
    ${span.fault && tab !== "campaigns"
      ? html`<p class="fault-text" role="alert">${span.fault}</p>`
      : allowed("getAnalyticsOverview") && html`<${Later} key=${tab} load=${PARTS[tab]} query=${query} span=${span} />`}`;
}

// Whole days of the workspace: the last so many, or from one to another.
function Span({ query, withChannel }) {
  const shown = query.from || query.to ? "own" : query.days ?? SPANS[1][0];
  const choose = (event) => {
    const { value } = event.target;
    const { first, last } = spanOf(query);
    if (value === "own") changeQuery({ days: null, from: first, to: last });
    else changeQuery({ days: value, from: null, to: null });
  };
  return html`<form class="filters" onSubmit=${(event) => event.preventDefault()}>
    <label><span>${t("Time")}</span><select value=${shown} onChange=${choose}>
      ${SPANS.map(([days, label]) => html`<option value=${days} selected=${days === shown}>${t(label)}</option>`)}
      <option value="own" selected=${shown === "own"}>${t("From … to …")}</option></select></label>
    ${shown === "own" && html`
      <label><span>${t("From")}</span><input type="date" value=${query.from ?? ""} onChange=${(event) => changeQuery({ from: event.target.value })} /></label>
      <label><span>${t("Until")}</span><input type="date" value=${query.to ?? ""} onChange=${(event) => changeQuery({ to: event.target.value })} /></label>`}
    ${withChannel && html`<label><span>${t("Channel")}</span><select value=${query.channel ?? ""} onChange=${(event) => changeQuery({ channel: event.target.value })}>
      <option value="">${t("All")}</option>
      ${CHANNELS.map((channel) => html`<option value=${channel} selected=${channel === query.channel}>${channelName(channel)}</option>`)}</select></label>`}
  </form>`;
}
