// The runs of an automation, and letting a contact in by hand.
import { allowed, call } from "../lib/api.js";
import { announce, Badge, Empty, html, t, Time, useEffect, useState } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { Filters, filtersOf, List } from "../lib/table.js";
import { changeQuery, go, href } from "../lib/route.js";
import { itemsOf } from "../lib/flow.js";
import { kindName, nodeText, reasonText } from "../lib/automation.js";
import { addressOf } from "../lib/contacts.js";
import { ContactField, ContactFilter, contactIdOf } from "../lib/contact_choice.js";
import { useFirstFocus } from "../lib/focus.js";

const STATUSES = ["active", "waiting", "completed", "exited", "failed"];
const FILTERS = ["status", "node_id", "contact_id"];

export default function Runs({ automation, draft, names, query, onChange }) {
  const [rows, setRows] = useState([]);
  const contacts = useContacts(rows);
  const [reloads, setReloads] = useState(0);
  const nodes = itemsOf(draft.flow).map(({ node }) => node);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const stepName = (id) => {
    const node = byId.get(id);
    return node ? `${kindName(node.kind)} ${nodeText(node, names)}` : id;
  };
  const { id } = automation;
  const path = `automations/${encodeURIComponent(id)}`;
  const isOpen = query.trigger && allowed("triggerAutomation");
  const canTrigger = automation.status === "active" && allowed("triggerAutomation");
  const columns = [
    { label: t("Contact"), cell: (row) => html`<span dir="auto">${contacts[row.contact_id] ?? row.contact_id}</span>` },
    { label: t("Status"), cell: (row) => html`<div><${Badge} status=${row.status} />${row.exit_reason && html` <span class="muted">${reasonText(row.exit_reason)}</span>`}</div>` },
    { label: t("Step"), cell: (row) => (row.node_id ? html`<span dir="auto">${stepName(row.node_id)}</span>` : "–") },
    { label: t("Entered"), cell: (row) => html`<${Time} at=${row.entered_at} />` },
    { label: t("Ended"), cell: (row) => html`<${Time} at=${row.ended_at} />` },
    { label: t("Version"), numeric: true, cell: (row) => row.version },
  ];
  return html`<section class="stack" aria-labelledby="runs"><div class="head-line"><h2 id="runs">${t("Runs")}</h2>
      ${canTrigger && !isOpen && html`<button type="button" onClick=${() => changeQuery({ trigger: 1 })}>${t("Let a contact in")}</button>`}</div>
    ${isOpen && html`<${Trigger} automation=${automation} onDone=${(run) => { onChange(); setReloads((n) => n + 1); go(`${path}/runs/${run.id}`); }} />`}
    <${Filters} fields=${[
      { name: "status", label: t("Status"), options: STATUSES.map((status) => [status, t(status)]) },
      { name: "node_id", label: t("Step"), options: nodes.map((node) => [node.id, stepName(node.id)]) },
      { name: "contact_id", label: t("Contact"), options: Object.entries(contacts),
        control: html`<${ContactFilter} label=${t("Contact")} id=${query.contact_id} onChange=${(one) => changeQuery({ contact_id: one, cursor: null })} />` },
    ]} />
    <${List} id="listAutomationRuns" reloads=${reloads} caption=${t("Runs")} columns=${columns} onRows=${setRows}
      args=${{ path: { id }, query: filtersOf(query, FILTERS) }} filters=${FILTERS}
      words=${["run", "runs"]} nameOf=${(row) => contacts[row.contact_id] ?? row.contact_id}
      rowHref=${(row) => href(`${path}/runs/${row.id}`)}
      empty=${html`<${NoRuns} automation=${automation} canTrigger=${canTrigger} />`} /></section>`;
}

function NoRuns({ automation, canTrigger }) {
  if (automation.status !== "active") {
    return html`<${Empty} title=${t("Nobody has entered yet")} text=${t("Contacts enter once the automation is active. What would happen you can try out before.")}
      action=${t("Try out")} href=${href(`automations/${automation.id}`, { tab: "try" })} />`;
  }
  return html`<${Empty} title=${t("Nobody has entered yet")} text=${t("Contacts enter when the trigger happens; one of them you can let in yourself.")}
    action=${canTrigger && t("Let a contact in")} onClick=${() => changeQuery({ trigger: 1 })}
    example=${`messaging automation trigger ${automation.id} --external-id u-42`} />`;
}

function Trigger({ automation, onDone }) {
  const done = (run) => {
    announce(t("The contact has entered"));
    onDone(run);
  };
  const part = useFirstFocus();
  return html`<section ref=${part} class="card" aria-labelledby="let-in"><h3 id="let-in">${t("Let a contact in")}</h3>
    <p class="muted">${t("It goes through the steps as if the trigger had happened: messages are really sent.")}</p>
    <${Form} id="triggerAutomation" path=${{ id: automation.id }} initial=${{}} body=${async ({ wanted, variables }) => ({ contact_id: await contactIdOf(wanted), variables })} onDone=${done} submit=${t("Let in")}
        extra=${html`<button type="button" onClick=${() => changeQuery({ trigger: null })}>${t("Cancel")}</button>`}>
      <${ContactField} name="wanted" label=${t("Contact")} />
      <${Field} name="variables" label=${t("Event data")} kind="json" help=${t("What the steps call event, as JSON; may stay empty.")} />
    </${Form}></section>`;
}

// Rows name contacts by id; their addresses are asked for one by one, once.
function useContacts(rows) {
  const [found, setFound] = useState({});
  useEffect(() => {
    if (!allowed("getContact")) return undefined;
    const abort = new AbortController();
    const wanted = [...new Set(rows.map((row) => row.contact_id))].filter((id) => !found[id]);
    const load = async () => {
      for (const id of wanted) {
        const contact = await call("getContact", { path: { id }, quiet: true, signal: abort.signal }).catch(() => null);
        if (abort.signal.aborted) return;
        if (contact) setFound((old) => ({ ...old, [id]: addressOf(contact) }));
      }
    };
    load();
    return () => abort.abort();
  }, [rows]);
  return found;
}
