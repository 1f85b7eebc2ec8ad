// One contact's run through an automation: where it is, how it came there and why, what is next, and ending it.
import { allowed } from "../lib/api.js";
import { Action, Badge, confirm, Facts, Head, html, Loaded, t, Time, useCall } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { kindName, moment, nodeText, reasonText, useNames } from "../lib/automation.js";
import { Path } from "../lib/automation_path.js";
import { addressOf } from "../lib/contacts.js";

const AGAIN_MS = 10000;

export default function Run({ id, runId }) {
  const automation = useCall("getAutomation", { path: { id } });
  const found = useCall("getAutomationRun", { path: { id, run_id: runId } }, { every: AGAIN_MS });
  const { names } = useNames(["templates", "lists", "segments"]);
  const back = href(`automations/${encodeURIComponent(id)}`, { tab: "runs" });
  const run = found.data;
  const isOpen = run && !run.ended_at;
  const contact = useCall(run && allowed("getContact") && "getContact", { path: { id: run?.contact_id } });
  const who = contact.data ? addressOf(contact.data) : run?.contact_id;
  const before = () => confirm({
    title: t("End this run?"), action: t("End run"),
    text: t("{contact} leaves the automation where it is; the steps that are left do not happen. Whether it may enter again says the automation.", { contact: who }),
  });
  return html`
    <${Head} title=${t("Run")} back=${back} backText=${automation.data?.name ?? t("Automation")} text=${who} badge=${run && html`<${Badge} status=${run.status} />`}>
      ${isOpen && html`<${Action} id="exitAutomationRun" args=${{ path: { id, run_id: runId } }} before=${before} onDone=${found.reload} done=${t("The run has ended")}>${t("End run")}</${Action}>`}
    </${Head}>
    <${Loaded} of=${found}>${(shown) => html`
      <${Now} run=${shown} nodes=${automation.data?.graph.nodes} names=${names} isPaused=${automation.data?.status === "paused"} />
      <div class="columns">
        <section class="stack" aria-labelledby="path"><h2 id="path">${t("Path")}</h2>
          ${automation.data && shown.version !== automation.data.version && html`<p class="muted">${t("This run goes by version {version}; steps are named as version {now} has them.", { version: shown.version, now: automation.data.version })}</p>`}
          ${shown.history.length
            ? html`<${Path} steps=${shown.history} nodes=${automation.data?.graph.nodes} names=${names} messages />`
            : html`<p class="muted">${t("The path is kept for 30 days after the end.")}</p>`}</section>
        <section class="card" aria-labelledby="facts"><h2 id="facts">${t("Facts")}</h2>
          <${Facts} pairs=${[
            [t("Contact"), html`<a href=${href(`contacts/${shown.contact_id}`)} dir="auto">${who}</a>`],
            [t("Version"), shown.version],
            [t("Entered"), html`<${Time} at=${shown.entered_at} />`],
            [t("Ended"), shown.ended_at && html`<${Time} at=${shown.ended_at} />`],
            [t("Why"), reasonText(shown.exit_reason)],
            [t("Id"), html`<code>${shown.id}</code>`]]} />
          ${allowed("listMessages") && html`<p><a href=${href("messages", { contact_id: shown.contact_id })}>${t("Messages to this contact")}</a></p>`}</section>
      </div>`}</${Loaded}>`;
}

/** One sentence: where the run is and what is next. */
function Now({ run, nodes, names, isPaused }) {
  const node = nodes?.find(({ id }) => id === run.node_id);
  const where = node ? `${kindName(node.kind)} ${nodeText(node, names)}`.trim() : run.node_id ?? t("the start");
  const until = run.history.findLast(({ outcome }) => outcome === "waiting" || outcome === "continued");
  if (run.ended_at) {
    const status = { completed: run.exit_reason === "goal" ? t("Reached the goal") : t("Came to the end"), exited: t("Left the automation"), failed: run.ended_at === run.entered_at && !run.node_id ? t("Was not let in") : t("Failed") }[run.status];
    return html`<div class="notice ${run.status === "failed" ? "fault" : ""}"><p><strong>${status}</strong> <${Time} at=${run.ended_at} />${run.exit_reason && run.exit_reason !== "goal" && html`: <span dir="auto">${reasonText(run.exit_reason)}</span>`}.</p></div>`;
  }
  return html`<div class="notice ${isPaused ? "warning" : ""}"><p><strong dir="auto">${t("Is at: {step}.", { step: where })}</strong>${" "}
    ${until?.outcome === "waiting" && until.detail?.until && html`${t("Goes on by itself")} <${Time} at=${until.detail.until} /> <span class="muted">(${moment(until.detail.until)})</span>.`}
    ${isPaused && t("The automation is paused: nothing happens until it is activated.")}</p></div>`;
}
