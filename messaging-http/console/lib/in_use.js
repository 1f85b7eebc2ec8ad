// Deleting what others may use: when the server refuses, it names them, and here they become links.
import { allowed, call } from "./api.js";
import { announce, confirm, dialog, html, t, useCall, useState } from "./ui.js";
import { href } from "./route.js";

const PLACES = {
  cmp: ["campaigns", "Campaign", "getCampaign"], aut: ["automations", "Automation", "getAutomation"],
  seg: ["segments", "Segment", "getSegment"], tpl: ["templates", "Template", "getTemplate"],
};

function User({ id, close }) {
  const [path, kind, operation] = PLACES[id.split("_")[0]] ?? [];
  const found = useCall(operation && allowed(operation) && operation, { path: { id } }, { quiet: true });
  if (!path) return html`<li>${id}</li>`;
  return html`<li>${t(kind)} <a href=${href(`${path}/${id}`)} onClick=${() => close()} dir="auto">${found.data?.name ?? id}</a></li>`;
}

function Users({ ids, close }) {
  return html`<p>${t("It is used here. Take it out there first:")}</p>
    <ul class="plain">${ids.map((id) => html`<${User} key=${id} id=${id} close=${close} />`)}</ul>
    <div class="actions"><button type="button" onClick=${() => close()}>${t("Close")}</button></div>`;
}

/** A button that deletes after a question; `ask` is what `confirm` takes, `onDone` hears that it is gone. */
export function Delete({ id, path, ask, onDone, className = "", children = t("Delete") }) {
  const [busy, setBusy] = useState(false);
  if (!allowed(id)) return null;
  const run = async () => {
    if (!(await confirm(ask))) return;
    setBusy(true);
    try {
      await call(id, { path });
      announce(t("Deleted"));
      onDone?.();
    } catch (error) {
      setBusy(false);
      if (error.code !== "in_use") announce(error.message, { fault: true });
      else await dialog((close) => html`<${Users} ids=${error.details.by ?? []} close=${close} />`, { title: t("Not deleted") });
    }
  };
  return html`<button type="button" class=${className} disabled=${busy} data-operation=${id} onClick=${run}>${children}</button>`;
}
