// System, for operators: whether messages leave, what waits and why, what the server's checks say.
import { Badge, bytes, Copy, count, duration, Facts, Figure, Head, html, Loaded, number, t, Time, useCall, words } from "../lib/ui.js";
import { Table } from "../lib/table.js";
import { channelName } from "../lib/channels.js";
import { Checks, Cure } from "./system_checks.js";
import { Queue } from "./system_queue.js";
import { Sources } from "./system_sources.js";

const AGAIN_MILLISECONDS = 10000;

export default function System() {
  const found = useCall("getSystem", {}, { every: AGAIN_MILLISECONDS });
  return html`
    <${Head} title=${t("System")} text=${t("This installation, all workspaces together. Shown to operators.")} />
    <${Loaded} of=${found} skeleton=${8}>${(system) => html`
      <${Fence} system=${system} />
      <${Overview} system=${system} />
      <${Queues} channels=${system.channels} />
      <${Lanes} lanes=${system.lanes} />
      <${Queue} suspended=${system.suspended} onChanged=${found.reload} />
      <${Sources} />
      <${Nodes} system=${system} />
      <${Checks} checks=${system.checks} />`}</${Loaded}>`;
}

function Fence({ system: { fenced, channels } }) {
  if (!fenced) return null;
  const waiting = count(waitingOf(channels), "message", "messages");
  const isHeld = fenced.cure.includes("admin resume");
  return html`<section class="notice fault" aria-labelledby="fence"><h2 id="fence">${t("Nothing is sent")}</h2>
    <p>${fenced.reason === "restored" ? t("This is a restored copy of an installation. Messages are accepted and kept; nothing leaves.") : words(fenced.reason)} ${t("Since")} <${Time} at=${fenced.since} />.</p>
    <p><${Cure} text=${fenced.cure} />.</p>
    ${isHeld && html`<${Facts} pairs=${["cancel", "send"].map((what) => {
      const command = `messaging admin resume --queued ${what}`;
      return [what === "cancel" ? t("Cancels {waiting}", { waiting }) : t("Sends {waiting}", { waiting }), html`<code>${command}</code> <${Copy} text=${command} label=${html`${t("Copy")}<span class="sr"> ${command}</span>`} />`];
    })} />`}</section>`;
}

const waitingOf = (channels) => channels.reduce((sum, { queued }) => sum + queued, 0);

function Overview({ system }) {
  const { disk, channels, checks, held, version, name, database, places, oldest_due_job: job, event_log_lag_ms: lag } = system;
  const waiting = waitingOf(channels);
  const faults = checks.filter(({ status }) => status === "fault").length;
  const [oldest] = channels.map(({ oldest_at: at }) => at).filter(Boolean).sort();
  return html`<div class="grid">
      <${Figure} name=${t("Messages waiting")} value=${waiting} note=${oldest ? html`${t("the oldest since")} <${Time} at=${oldest} />` : t("none is queued")} />
      ${held.map((one) => html`<${Figure} name=${t("Of these held: {reason}", { reason: t(HOLDS[one.reason] ?? words(one.reason)) })} value=${one.count} />`)}
      <${Figure} name=${t("Free disk space")} value=${disk.free_bytes === null ? "–" : bytes(disk.free_bytes)} />
      <${Figure} name=${t("Checks")} value=${checks.length ? (faults ? html`<button type="button" class="link" onClick=${toChecks}>${t("{number} wrong", { number: faults })}</button>` : t("none wrong")) : "–"} note=${checks.length ? t("of {number}", { number: checks.length }) : t("not looked at yet")} />
    </div>
    <${Facts} pairs=${[
      [t("Name"), name && html`<code>${name}</code>`],
      [t("Version"), version],
      [t("Database"), database && `${{ postgresql: "PostgreSQL" }[database.kind] ?? database.kind} ${database.version}, ${t("timeline {number}", { number: database.timeline })}`],
      [t("Work without a node"), places?.free ? t("{free} of {total} places", places) : undefined],
      [t("Longest due"), job && `${words(job.lane)}: ${duration(job.age_ms)}`],
      [t("Events behind"), lag ? duration(lag) : undefined],
    ]} />`;
}

// A link to them would be a route.
function toChecks() {
  const heading = document.getElementById("checks");
  heading.scrollIntoView();
  heading.focus();
}

const HOLDS = {
  scheduled: "until their time", by_timezone: "until their hour where the recipient lives", quiet_hours: "until quiet hours end", frequency_cap: "frequency cap",
  domain_pace: "pace of campaign or destination", paused: "suspended by an operator", held: "restored copy",
  warming_up: "a new address warms up", braked: "a mailbox provider complains, so sending slows down", no_source: "no server has an address for them",
};

function Queues({ channels }) {
  return html`<section class="stack" aria-labelledby="queues"><h2 id="queues">${t("Waiting by channel")}</h2>
    <${Table} caption=${t("Waiting by channel")} rows=${channels} rowKey=${(row) => row.channel} columns=${[
      { label: t("Channel"), cell: (row) => channelName(row.channel) },
      { label: t("Waiting"), numeric: true, cell: (row) => number(row.queued) },
      { label: t("Oldest accepted"), cell: (row) => html`<${Time} at=${row.oldest_at} />` },
    ]} /></section>`;
}

function Lanes({ lanes }) {
  const nameOf = ({ lane }) => (lane.startsWith("email:") ? lane.slice(6) : channelName(lane));
  return html`<section class="stack" aria-labelledby="lanes"><h2 id="lanes">${t("Waiting by destination")}</h2>
    <p class="muted">${t("Where the most waits. What a destination refuses for now rests until the time shown, then goes on by itself.")}</p>
    ${lanes.length
      ? html`<${Table} caption=${t("Waiting by destination")} rows=${lanes} rowKey=${(row) => row.lane} columns=${[
        { label: t("Destination"), cell: (row) => html`<bdi>${nameOf(row)}</bdi>` },
        { label: t("Waiting"), numeric: true, cell: (row) => number(row.queued) },
        { label: t("Pace"), numeric: true, cell: (row) => (row.pace === null ? html`<span class="muted">–</span>` : t("{number} a minute", { number: number(Math.round(row.pace)) })) },
        { label: t("Rests until"), cell: (row) => html`<${Time} at=${row.until} />` },
        { label: t("Last refusal"), wide: true, cell: (row) => row.last_refusal && html`<bdi>${row.last_refusal}</bdi>` },
      ]} />`
      : html`<p>${t("No message waits. What a campaign or an automation has not released yet is not counted.")}</p>`}</section>`;
}

function Nodes({ system: { nodes } }) {
  const isCluster = nodes.some(({ state }) => state);
  return html`<section class="stack" aria-labelledby="nodes"><h2 id="nodes">${t("Servers")}</h2>
    <${Table} caption=${t("Servers")} rows=${nodes} rowKey=${(row) => row.hostname + row.term} columns=${[
      { label: t("Name"), cell: (row) => html`<code>${row.hostname}</code>` },
      { label: t("Version"), cell: (row) => row.version },
      ...(isCluster ? [
        { label: t("State"), cell: (row) => html`<${Badge} status=${{ working: "active", idle: "ready", draining: "paused", fenced: "failed", clock: "failed" }[row.state]}>${t(STATES[row.state] ?? words(row.state))}</${Badge}>` },
        { label: t("Share of the work"), numeric: true, cell: (row) => number(row.places) },
        { label: t("Heard of"), cell: (row) => html`<${Time} at=${row.seen_at} />` },
        { label: t("Clock off by"), numeric: true, cell: (row) => (row.clock_offset_ms === undefined || row.clock_offset_ms === null ? "–" : duration(Math.abs(row.clock_offset_ms))) },
      ] : []),
    ]} /></section>`;
}

const STATES = { working: "working", idle: "answers requests only", draining: "stopping", fenced: "not heard of; others took its work", clock: "wrong clock; does no work" };
