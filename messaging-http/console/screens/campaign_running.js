// A campaign under way or done: how far it is, what came of it, and who did not get it and why.
import { allowed } from "../lib/api.js";
import { absolute, count, duration, html, Loaded, number, percent, Progress, Sandboxed, t, Tabs, Time, useCall } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { Bars } from "../lib/chart.js";
import { Table } from "../lib/table.js";
import { done, paceWords, usePace } from "../lib/campaign.js";
import { Later } from "../lib/later.js";
import { Activity } from "./campaign_activity.js";

const LOOK_MS = 3000;
const CALM_MS = 15000;
const TIME = { dateStyle: "medium", timeStyle: "short" };

export default function CampaignRunning({ campaign, query, onDone }) {
  const { id, status, started_at: started } = campaign;
  const stats = useCall(started && "getCampaignStats", { path: { id } }, { every: status === "sending" ? LOOK_MS : CALM_MS });
  const pace = usePace()(campaign);
  const tab = query.tab === "recipients" ? "recipients" : "overview";
  return html`
    <${Notice} campaign=${campaign} />
    <${Sandboxed} channel=${campaign.channel} />
    ${started && html`<${Tabs} current=${tab} tabs=${[
      { id: "overview", label: t("Overview"), href: href(`campaigns/${id}`) },
      { id: "recipients", label: t("Recipients"), href: href(`campaigns/${id}`, { tab: "recipients" }) },
    ]} />`}
    ${tab === "recipients" && started
      ? html`<${Later} key="recipients" load=${() => import("./campaign_recipients.js")} campaign=${campaign} query=${query} />`
      : html`
        ${["sending", "paused"].includes(status) && html`<${Sending} campaign=${campaign} pace=${pace} />`}
        ${started && html`<${Loaded} of=${stats} skeleton=${8}>${(figures) => html`
          <div class="columns even">
            <${Funnel} id=${id} figures=${figures} />
            <${Losses} id=${id} figures=${figures} />
          </div>
          ${figures.variants.length > 0 && html`<${Later} load=${() => import("./campaign_variants.js")} campaign=${campaign} figures=${figures} onDone=${onDone} />`}
          <${NonSends} campaign=${campaign} figures=${figures} />`}</${Loaded}>
        ${allowed("getAnalyticsCampaign") && html`<${Activity} campaign=${campaign} />`}`}
        <div class=${started ? "" : "columns even"} key="facts">
          <${Later} load=${() => import("./campaign_facts.js")} campaign=${campaign} />
          ${!started && allowed("previewAudience") && html`<${Later} load=${estimate} campaign=${campaign} />`}
        </div>`}`;
}

const estimate = () => import("./campaign_audience.js").then(({ Estimate }) => ({ default: Estimate }));

// ---- what needs to be known first ----

const PAUSED = {
  user: "It is paused: nobody else gets it until you resume it. The audience stays as it was.",
  restored: "The database was restored from a copy. Look at what was sent already, then resume or cancel.",
  stale: "Its start was more than six hours overdue, so it waits for a person. Resume it if it should still be sent.",
};
const FAILED = {
  sender_domain_not_verified: ["The sender's domain is not verified any more.", "domains", "See the domain"],
  template_missing: ["Its template was deleted.", "templates", "See the templates"],
  channel_not_configured: ["The channel is not set up any more.", "channels", "Set it up"],
  internal: ["A fault of the server ended it; the log of the server says more.", null],
};

function Notice({ campaign: { status, pause_reason: paused, failure_reason: failed, scheduled_at: at, by_timezone: byZone, phase, settings, started_at: started } }) {
  // A resumed campaign is scheduled for a moment, too.
  if (status === "scheduled" && !started) {
    return html`<div class="notice"><p>${byZone
      ? t("Each recipient gets it at the scheduled hour of where they live: furthest east first, furthest west up to 26 hours later. Where it was scheduled, that is {time} by the clock of the workspace.", { time: absolute(at, TIME) })
      : Date.parse(at) <= Date.now() ? t("It starts now.") : t("Starts {time}.", { time: absolute(at) })} ${Date.parse(at) > Date.now() && html`<span class="muted">(<${Time} at=${at} />)</span>`}</p></div>`;
  }
  if (status === "scheduled") return html`<div class="notice"><p>${t("It goes on in a moment.")}</p></div>`;
  if (status === "paused") return html`<div class="notice warning"><p>${t(PAUSED[paused] ?? PAUSED.user)}</p></div>`;
  if (status === "failed") {
    const [text, path, cure] = FAILED[failed] ?? FAILED.internal;
    return html`<div class="notice fault"><p><strong>${t("It failed.")}</strong> ${t(text)} ${path && html`<a href=${href(path)}>${t(cure)}</a>`}</p></div>`;
  }
  if (phase === "waiting_winner") {
    const isManual = settings.ab_test?.winner_metric === "manual";
    return html`<div class="notice"><p>${isManual
      ? t("The test is out. Choose the winner below; everybody else gets it.")
      : t("The test is out. The winner is chosen by itself {time} after it, or below by you.", { time: duration((settings.ab_test?.wait_minutes ?? 0) * 60000) })}</p></div>`;
  }
  return null;
}

function Sending({ campaign, pace }) {
  const state = done(campaign);
  if (!state) return html`<p class="muted">${t("The recipients are being counted.")}</p>`;
  const texts = [t("{value} of {of}", { value: number(state.value), of: number(state.of) }), paceWords(pace), t("{number} waiting", { number: number(campaign.waiting) })];
  return html`<section aria-label=${t("Progress")}><${Progress} value=${state.value} max=${state.of} label=${t("Progress")} />
    <p class="muted">${texts.filter(Boolean).join(" · ")}</p></section>`;
}

// ---- what came of it ----

function Funnel({ id, figures }) {
  const { recipients, sent, delivered, unique_opens: opened, unique_clicks: clicked, machine_opens: machines } = figures;
  const who = (outcome) => href(`campaigns/${id}`, { tab: "recipients", outcome });
  const of = (part, whole) => (whole ? percent(part / whole) : "");
  return html`<section class="card" aria-labelledby="funnel"><h2 id="funnel">${t("Funnel")}</h2>
    <${Bars} label=${t("Funnel")} rows=${[
      { label: t("Recipients"), value: recipients, href: who() },
      { label: t("Sent"), value: sent, note: of(sent, recipients) },
      { label: t("Delivered"), value: delivered, note: of(delivered, sent), tone: "good" },
      { label: t("Opened"), value: opened, note: of(opened, delivered), href: who("opened"), tone: "good" },
      { label: t("Clicked"), value: clicked, note: of(clicked, delivered), href: who("clicked"), tone: "good" },
    ]} />
    <p class="help">${t("Opened and clicked count people, as shares of what was delivered.")} ${machines > 0 && t("Machines opened {number} times; that counts nowhere.", { number: number(machines) })}</p>
  </section>`;
}

function Losses({ id, figures }) {
  const who = (outcome) => href(`campaigns/${id}`, { tab: "recipients", outcome });
  const { sent, delivered, deferred, bounces, complaints, unsubscribes } = figures;
  const of = (part, whole) => (whole && part ? percent(part / whole) : "");
  return html`<section class="card" aria-labelledby="losses"><h2 id="losses">${t("Problems")}</h2>
    <${Bars} label=${t("Problems")} whole=${sent} rows=${[
      { label: t("Bounced"), value: bounces, note: of(bounces, sent), href: who("bounced"), tone: "bad" },
      { label: t("Complained"), value: complaints, note: of(complaints, delivered), href: who("complained"), tone: "bad" },
      { label: t("Unsubscribed"), value: unsubscribes, note: of(unsubscribes, delivered), href: who("unsubscribed"), tone: "bad" },
      { label: t("Tried again"), value: deferred, href: who("waiting") },
    ]} />
    <p class="help">${t("Bounces are a share of what was sent, complaints and unsubscribes of what was delivered.")}</p></section>`;
}

// ---- who did not get it ----

// Reason, name, what it means, the outcome under which its people are listed, where it is put right.
const REASONS = [
  ["no_address", "No address", "The contact has no address for this channel.", "no_address"],
  ["suppressed", "Suppressed", "The address bounced, complained, unsubscribed, or was put on the list.", "suppressed", "suppressions", "Suppressions"],
  ["no_consent", "Not agreed", "The contact has not agreed to marketing.", "no_consent"],
  ["frequency_cap", "Enough messages", "The contact has had as many messages as the campaign allows.", "suppressed"],
  ["duplicates", "Same address", "Another contact with the same address got it.", "duplicate"],
  ["failed", "Failed", "It could not be made or handed over.", "failed"],
  ["cancelled", "Cancelled", "The campaign or the message was cancelled first.", "cancelled"],
];

function NonSends({ campaign, figures }) {
  const { id, audience } = campaign;
  const rows = REASONS.map(([name, label, text, outcome, path, where]) => ({ name, label, text, outcome, path, where, value: figures.skipped[name] ?? figures[name] ?? 0 }))
    .filter(({ value }) => value > 0);
  // The figures do not name them, so they are counted from their list, as far as one page goes.
  const excluded = useCall(audience.exclude_list_ids.length > 0 && "listCampaignRecipients", { path: { id }, query: { outcome: "excluded", limit: 200 } }, { quiet: true }).data;
  if (excluded?.data.length) {
    rows.unshift({ name: "excluded", label: "Left out", text: "A list that is left out names the contact.", outcome: "excluded", value: excluded.data.length, isMore: Boolean(excluded.next_cursor) });
  }
  const sum = rows.reduce((total, { value }) => total + value, 0);
  return html`<section class="stack" aria-labelledby="non-sends"><h2 id="non-sends">${t("Not sent")}</h2>
    ${rows.length
      ? html`<p class="muted">${count(sum, "contact did not get it. Follow the reason to the person.", "contacts did not get it. Follow a reason to the people.")}</p>
        <${Table} caption=${t("Not sent, by reason")} rows=${rows} rowKey=${(row) => row.name} rowHref=${(row) => href(`campaigns/${id}`, { tab: "recipients", outcome: row.outcome })} columns=${[
          { label: t("Reason"), cell: (row) => t(row.label) },
          { label: t("Contacts"), numeric: true, cell: (row) => `${number(row.value)}${row.isMore ? "+" : ""}` },
          { label: t("What it means"), wide: true, cell: (row) => html`<span>${t(row.text)} ${row.path && html`<a href=${href(row.path)}>${t(row.where)}</a>`}</span>` },
        ]} />`
      : html`<p class="muted">${t("Everybody in the audience was sent to, or will be.")}</p>`}</section>`;
}
