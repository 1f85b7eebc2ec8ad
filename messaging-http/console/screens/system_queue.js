// The queue by hand: what waits for each destination, what an operator holds back, and what can be done about it.
import { allowed } from "../lib/api.js";
import { channelName } from "../lib/channels.js";
import { List, Table } from "../lib/table.js";
import { Action, confirm, count, html, number, t, Time, useState } from "../lib/ui.js";

export function Queue({ suspended, onChanged }) {
  const [changes, setChanges] = useState(0);
  if (!allowed("listQueue")) return null;
  const changed = () => {
    setChanges((n) => n + 1);
    onChanged();
  };
  return html`<section class="stack" aria-labelledby="queue"><h2 id="queue">${t("The queue by hand")}</h2>
    <p class="muted">${t("All workspaces together. What is suspended waits, also what comes later, until you resume it.")}</p>
    <${Suspended} suspended=${suspended} onChanged=${changed} />
    <${List} id="listQueue" reloads=${changes} caption=${t("The queue by hand")} rowKey=${nameOf} columns=${[
      { label: t("Destination"), cell: (row) => html`<bdi>${nameOf(row)}</bdi>` },
      { label: t("Waiting"), numeric: true, cell: (row) => number(row.queued) },
      { label: t("Put off"), numeric: true, cell: (row) => number(row.deferred) },
      { label: t("Oldest accepted"), cell: (row) => html`<${Time} at=${row.oldest_at} />` },
      { label: t("Next attempt"), cell: (row) => (row.suspended ? t("suspended") : html`<${Time} at=${row.next_attempt_at} />`) },
    ]}
      actions=${(row) => row.domain && html`<${Actions} row=${row} suspended=${suspended.some((one) => isWhole(one, row.domain))} onChanged=${changed} />`}
      empty=${html`<p>${t("No message waits.")}</p>`} />
  </section>`;
}

const nameOf = ({ domain, channel }) => domain ?? channelName(channel);

// Whether a suspension is of a domain alone, whatever workspaces and campaigns send to it.
const isWhole = (suspension, domain) => suspension.domain === domain && !suspension.workspace_id && !suspension.campaign_id;

function Actions({ row: { domain, queued, deferred }, suspended, onChanged }) {
  const args = { body: { domain } };
  const name = html`<span class="sr"> ${domain}</span>`;
  const waiting = count(queued + deferred, "message", "messages");
  return html`
    ${deferred > 0 && html`<${Action} id="retryQueue" className="small" args=${args} done=${t("They are tried now")} onDone=${onChanged}>${t("Try now")}${name}</${Action}>`}
    ${!suspended && html`<${Action} id="suspendQueue" className="small" args=${args} done=${t("Nothing more is sent there")} onDone=${onChanged}>${t("Suspend")}${name}</${Action}>`}
    <${Action} id="cancelQueue" className="small" args=${args} done=${t("They are being cancelled")} onDone=${onChanged}
      before=${() => confirm({ title: t("Cancel what waits for {domain}?", { domain }), text: t("{waiting} will never be sent, of whatever workspace.", { waiting }), action: t("Cancel them"), back: t("Back") })}>
      ${t("Cancel")}${name}</${Action}>`;
}

function Suspended({ suspended, onChanged }) {
  if (!suspended.length) return null;
  return html`<${Table} caption=${t("Suspended")} rows=${suspended} rowKey=${(row) => [row.domain, row.workspace_id, row.campaign_id].join(" ")} columns=${[
    { label: t("Suspended"), cell: (row) => html`<bdi>${[row.domain, row.workspace_id, row.campaign_id].filter(Boolean).join(", ")}</bdi>` },
    { label: t("Since"), cell: (row) => html`<${Time} at=${row.since} />` },
  ]} actions=${({ domain, workspace_id, campaign_id }) => html`<${Action} id="resumeQueue" className="small" done=${t("It is sent again")} onDone=${onChanged}
      args=${{ body: Object.fromEntries(Object.entries({ domain, workspace_id, campaign_id }).filter(([, value]) => value !== null)) }}>
      ${t("Resume")}<span class="sr"> ${domain ?? workspace_id ?? campaign_id}</span></${Action}>`} />`;
}
