// The addresses that mail leaves from, for operators: how far each has warmed up, its paths to mailbox providers with their
// brakes, and what can be done about them.
import { allowed } from "../lib/api.js";
import { Table } from "../lib/table.js";
import { Action, Badge, confirm, html, Loaded, number, t, Time, useCall, words } from "../lib/ui.js";
import { SourceState } from "./deliverability.js";

// Those beyond it are seen by `messaging source list`; the pages of the queue have the cursor in the URL.
const MOST = 200;

export function Sources() {
  const found = useCall(allowed("listSources") && "listSources", { query: { limit: MOST } });
  if (!allowed("listSources")) return null;
  return html`<section class="stack" aria-labelledby="sources"><h2 id="sources">${t("Addresses that mail leaves from")}</h2>
    <p class="muted">${t("A new address sends little more each day. Where a mailbox provider complains, it slows down or rests by itself; what is blocked waits for you.")}</p>
    <${Loaded} of=${found} skeleton=${3}>${({ data }) => (data.length === 0
      ? html`<p>${t("No server that works has an address. Start it with --source to name some.")}</p>`
      : html`<${Table} caption=${t("Addresses that mail leaves from")} rows=${data} rowKey=${(row) => `${row.node} ${row.ip}`} columns=${[
        { label: t("Address"), cell: (row) => html`<code>${row.ip}</code>` },
        { label: t("Greets as"), cell: (row) => (row.name ? html`<code>${row.name}</code>` : "–") },
        { label: t("State"), cell: (row) => html`<${SourceState} status=${row.status} />` },
        { label: t("Warm-up level"), numeric: true, cell: (row) => (row.status === "warming" ? number(row.level) : "–") },
        { label: t("Last used"), cell: (row) => html`<${Time} at=${row.last_used_at} />` },
      ]} actions=${(row) => html`<${SourceActions} source=${row} onChanged=${found.reload} />`} />
      ${data.map((source) => html`<${Paths} key=${`${source.node} ${source.ip}`} source=${source} onChanged=${found.reload} />`)}`)}</${Loaded}>
    <${Pools} /></section>`;
}

function SourceActions({ source: { ip, status }, onChanged }) {
  const name = html`<span class="sr"> ${ip}</span>`;
  const set = (to) => ({ path: { ip }, body: { status: to } });
  const stop = () => confirm({ title: t("Stop everything from {ip}?", { ip }), text: t("Nothing more leaves from this address, whatever the workspace, until you let it go on. Mail that has another address uses that."), action: t("Stop it") });
  const known = () => confirm({ title: t("Do mailbox providers know {ip} already?", { ip }), text: t("Its warm-up ends, and nothing but what each provider takes bounds it. For an address that has sent for you before."), action: t("It is warm") });
  return html`
    ${status === "stopped" && html`<${Action} id="updateSource" className="small" args=${set("warming")} done=${t("Mail leaves from it again")} onDone=${onChanged}>${t("Let go on")}${name}</${Action}>`}
    ${status === "warming" && html`<${Action} id="updateSource" className="small" args=${set("warm")} before=${known} done=${t("Its warm-up has ended")} onDone=${onChanged}>${t("It is warm")}${name}</${Action}>`}
    ${status !== "stopped" && html`<${Action} id="updateSource" className="small" args=${set("stopped")} before=${stop} done=${t("Nothing leaves from it")} onDone=${onChanged}>${t("Stop")}${name}</${Action}>`}`;
}

const STATES = { ok: ["ok", "at full pace"], slowed: ["warning", "slowed down"], resting: ["paused", "resting"], stopped: ["failed", "stopped"] };

const REASONS = {
  rate: "too much or too fast", reputation: "the provider thinks little of the address", blocked_ip: "the address is on a block list",
  blocked_domain: "a domain of the messages is on a block list", bounces: "too many addresses do not exist", complaints: "too many readers complain",
};

function Paths({ source: { ip, paths }, onChanged }) {
  if (!paths.length) return null;
  const braked = paths.filter(({ status }) => status !== "ok").length;
  return html`<details open=${braked > 0 || undefined}><summary>${t("Paths of {ip}", { ip })}: ${braked ? t("{braked} of {all} braked", { braked, all: paths.length }) : t("{all}, all open", { all: paths.length })}</summary>
    <${Table} caption=${t("Paths of {ip}", { ip })} rows=${paths} rowKey=${(row) => row.site} columns=${[
      { label: t("Provider"), cell: (row) => html`<bdi>${row.site}</bdi>` },
      { label: t("State"), cell: (row) => html`<${PathState} path=${row} />` },
      { label: t("A minute"), numeric: true, cell: (row) => (row.rate_per_minute === null ? "–" : number(row.rate_per_minute)) },
      { label: t("Sent today"), numeric: true, cell: (row) => number(row.sent_today) },
      { label: t("Allowed today"), numeric: true, cell: (row) => (row.allowed_today === null ? "–" : number(row.allowed_today)) },
      { label: t("What was said"), wide: true, cell: (row) => row.evidence && html`<bdi>${row.evidence}</bdi>` },
    ]} actions=${(row) => html`<${PathActions} ip=${ip} path=${row} onChanged=${onChanged} />`} /></details>`;
}

function PathState({ path: { status, reason, until } }) {
  const [sign, text] = STATES[status] ?? ["skipped", status];
  return html`<span><${Badge} status=${sign}>${t(text)}</${Badge}>${reason && html` ${t(REASONS[reason] ?? words(reason))}`}${until && html`, ${t("until")} <${Time} at=${until} />`}</span>`;
}

function PathActions({ ip, path: { site, status }, onChanged }) {
  const name = html`<span class="sr"> ${site}</span>`;
  const set = (to) => ({ path: { ip, site }, body: { status: to } });
  return html`
    ${status !== "ok" && html`<${Action} id="updateSourcePath" className="small" args=${set("ok")} done=${t("Mail leaves over it again")} onDone=${onChanged}>${t("Release")}${name}</${Action}>`}
    ${status !== "stopped" && html`<${Action} id="updateSourcePath" className="small" args=${set("stopped")} done=${t("Nothing leaves over it")} onDone=${onChanged}
      before=${() => confirm({ title: t("Stop what leaves from {ip} to {site}?", { ip, site }), text: t("What is meant for it waits, or uses another address, until you release the path."), action: t("Stop it") })}>${t("Stop")}${name}</${Action}>`}`;
}

// Pools of this workspace and those that all share.
function Pools() {
  const found = useCall(allowed("listIpPools") && "listIpPools", { query: { limit: MOST } });
  if (!allowed("listIpPools")) return null;
  return html`<h3>${t("IP pools of this workspace")}</h3>
    <${Loaded} of=${found}>${({ data }) => (data.length === 0
      ? html`<p class="muted">${t("None: mail leaves from whatever address is free for all.")}</p>`
      : html`<${Table} caption=${t("IP pools of this workspace")} rows=${data} columns=${[
        { label: t("Name"), cell: (row) => html`<bdi>${row.name}</bdi>` },
        { label: t("Shared"), cell: (row) => (row.shared ? t("with all workspaces") : t("no")) },
        { label: t("Addresses"), wide: true, cell: (row) => row.sources.map(({ ip, status }) => html`<span class="nowrap" key=${ip}><code>${ip}</code> <${SourceState} status=${status} /> </span>`) },
      ]} />`)}</${Loaded}>`;
}
