// Campaigns: where each stands, how fast it sends, and how it does; pause in one click.
import { allowed } from "../lib/api.js";
import { count, Empty, Failed, Head, html, number, percent, Progress, Sandboxed, t, Tabs, Time, useCall, useEffect, useState } from "../lib/ui.js";
import { changeQuery, go, href } from "../lib/route.js";
import { Filters, List } from "../lib/table.js";
import { Field, Form, useForm } from "../lib/form.js";
import { CHANNELS, channelName } from "../lib/channels.js";
import { done, PauseOrResume, paceWords, State, usePace } from "../lib/campaign.js";
import { Later } from "../lib/later.js";

const STATUSES = ["draft", "scheduled", "sending", "paused", "sent", "failed", "cancelled"];
const LOOK_MS = 3000;
const CALM_MS = 15000;

export default function Campaigns({ segments, query }) {
  const [id] = segments;
  return id
    ? html`<${Later} load=${() => import("./campaign.js")} id=${id} query=${query} />`
    : html`<${CampaignList} query=${query} />`;
}

function CampaignList({ query }) {
  const [rows, setRows] = useState(null);
  const [round, setRound] = useState(0);
  const again = () => setRound((n) => n + 1);
  const figures = useCall(allowed("listAnalyticsCampaigns") && "listAnalyticsCampaigns", { query: { limit: 200 } });
  const pace = usePace();
  const isCalendar = query.view === "calendar";
  const isNew = query.new && allowed("createCampaign");
  const moving = rows?.filter(({ status }) => status === "sending") ?? [];
  const every = moving.some(({ phase }) => phase !== "waiting_winner") ? LOOK_MS : moving.length ? CALM_MS : 0;
  const isEmpty = rows?.length === 0 && !query.status && !query.cursor;
  useEffect(() => {
    if (!every) return undefined;
    const timer = setInterval(() => document.visibilityState === "visible" && again(), every);
    return () => clearInterval(timer);
  }, [every]);
  const stats = new Map((figures.data?.data ?? []).map((one) => [one.campaign_id, one]));
  const rate = (name) => (row) => {
    const one = stats.get(row.id);
    return one && one.delivered > 0 ? percent(one[name]) : html`<span class="muted">–</span>`;
  };
  return html`
    <${Head} title=${t("Campaigns")}>
      ${allowed("createCampaign") && !isNew && !isEmpty && html`<a class="button primary" href=${href("campaigns", { ...query, new: 1 })}>${t("New campaign")}</a>`}
    </${Head}>
    <${Sandboxed} />
    ${isNew && html`<${NewCampaign} query=${query} />`}
    ${!isEmpty && html`<${Filters} fields=${[{ name: "status", label: t("Status"), options: STATUSES.map((status) => [status, t(status)]) }]} />`}
    ${!isEmpty && html`<${Tabs} current=${isCalendar ? "calendar" : "list"} tabs=${[
      { id: "list", label: t("List"), href: href("campaigns", { status: query.status }) },
      { id: "calendar", label: t("Calendar"), href: href("campaigns", { status: query.status, view: "calendar" }) },
    ]} />`}
    ${isCalendar ? html`<${Later} load=${() => import("./campaign_calendar.js")} query=${query} />` : html`<${List} id="listCampaigns" caption=${t("Campaigns")} args=${{ query: { status: query.status } }} reloads=${round} onRows=${setRows}
      rowHref=${(row) => href(`campaigns/${row.id}`)} filters=${["status"]} words=${["campaign", "campaigns"]} nameOf=${(row) => row.name}
      columns=${[
        { label: t("Name"), cell: (row) => html`<span dir="auto">${row.name}</span>` },
        { label: t("Channel"), cell: (row) => channelName(row.channel) },
        { label: t("Status"), cell: (row) => html`<${State} campaign=${row} />` },
        { label: t("Progress"), wide: true, cell: (row) => html`<${Sent} row=${row} pace=${pace(row)} stats=${stats.get(row.id)} />` },
        ...(figures.data ? [
          { label: t("Opened"), numeric: true, cell: rate("open_rate") },
          { label: t("Clicked"), numeric: true, cell: rate("click_rate") },
        ] : []),
      ]}
      actions=${allowed("pauseCampaign") && ((row) => html`<${PauseOrResume} isNamed campaign=${row} className="small" onDone=${again} />`)}
      empty=${!isNew && html`<${Empty} title=${t("No campaigns yet")}
        text=${t("A campaign sends one template to everybody in your lists and segments, now or at a time, and shows what became of it.")}
        action=${allowed("createCampaign") && t("New campaign")} href=${href("campaigns", { new: 1 })}
        example=${`messaging campaign create --json-body - <<'JSON'\n${JSON.stringify({ name: "Spring", channel: "email", template_id: "tpl_…", audience: { list_ids: ["lst_…"] } }, null, 2)}\nJSON`} />`} />`}`;
}

function Sent({ row, pace, stats }) {
  const state = done(row);
  if (row.status === "scheduled") return html`<span>${t("starts")} <${Time} at=${row.scheduled_at} /></span>`;
  if (!state) return html`<span class="muted">–</span>`;
  if (row.status === "cancelled" || row.status === "failed") {
    return stats ? t("{sent} of {of} sent", { sent: number(stats.sent), of: number(state.of) }) : count(state.of, "recipient", "recipients");
  }
  if (row.status === "sent") return html`<span>${count(state.of, "recipient", "recipients")} · <${Time} at=${row.completed_at} /></span>`;
  return html`<div><${Progress} value=${state.value} max=${state.of} label=${t("Progress of {name}", { name: row.name })} />
    <span class="muted">${[t("{value} of {of}", { value: number(state.value), of: number(state.of) }), paceWords(pace)].filter(Boolean).join(" · ")}</span></div>`;
}

// ---- a new one ----

function NewCampaign({ query }) {
  return html`<section class="card" aria-labelledby="new-campaign">
    <h2 id="new-campaign">${t("New campaign")}</h2>
    <p class="muted">${t("It begins as a draft: nothing is sent before you say so.")}</p>
    <${Form} id="createCampaign" submit=${t("Create draft")} initial=${{ channel: query.channel ?? "email", template_id: query.template_id ?? "" }}
      extra=${html`<button type="button" onClick=${() => changeQuery({ new: null, channel: null, template_id: null })}>${t("Cancel")}</button>`}
      body=${({ name = "", channel, template_id: template }) => ({ name, channel, template_id: template, audience: { list_ids: [], segment_ids: [], exclude_list_ids: [] } })}
      onDone=${({ id }) => go(`campaigns/${id}`)}><${NewFields} /></${Form}>
  </section>`;
}

function NewFields() {
  const [{ channel }] = useForm();
  const templates = useCall("listTemplates", { query: { channel, limit: 200 } });
  const rows = templates.data?.data ?? [];
  return html`
    <${Field} name="name" label=${t("Name")} help=${t("For you and your colleagues; recipients never see it.")} autofocus dir="auto" />
    <${Field} name="channel" label=${t("Channel")} kind="select" options=${CHANNELS.map((word) => [word, channelName(word)])} />
    ${templates.error && html`<${Failed} error=${templates.error} retry=${templates.reload} />`}
    ${templates.data && !rows.length
      ? html`<p>${t("There is no template for {channel} yet.", { channel: channelName(channel) })} <a href=${href("templates", { new: channel === "email" ? "gallery" : 1 })}>${t("Write one")}</a></p>`
      : html`<${Field} name="template_id" label=${t("Template")} kind="select" options=${rows.map(({ id, name }) => [id, name])} />`}`;
}
