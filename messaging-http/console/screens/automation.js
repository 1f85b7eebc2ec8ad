// One automation: its state, its steps as an outline beside a drawing, its runs, and trying it out.
import { Action, announce, Badge, confirm, count, dialog, Figure, Head, html, Loaded, number, t, Tabs, Time, useCall, useEffect, useMemo, useRef, useState } from "../lib/ui.js";
import { allowed, call } from "../lib/api.js";
import { Field, Form } from "../lib/form.js";
import { go, href } from "../lib/route.js";
import { flowOf, graphOf } from "../lib/flow.js";
import { triggerText, useNames } from "../lib/automation.js";
import { Later } from "../lib/later.js";

// What was edited and not saved outlives a look at another screen.
const drafts = new Map();

export default function Automation({ id, query }) {
  const found = useCall("getAutomation", { path: { id } });
  return html`${!found.data && html`<${Head} title=${t("Automation")} back=${href("automations")} backText=${t("Automations")} />`}
    <${Loaded} of=${found}>${(automation) => html`<${Shown} key=${id} loaded=${automation} query=${query} />`}</${Loaded}>`;
}

// An automation in the shape in which it is edited, without its name, which is changed by itself.
function draftOf({ trigger, re_entry: rule, re_entry_key: key, graph }) {
  const { entry: _entry, nodes: _nodes, edges: _edges, ...ends } = graph;
  return { trigger, re_entry: rule, re_entry_key: key ?? "", flow: flowOf(graph), ends };
}

// What the API takes of a draft.
function bodyOf({ trigger, re_entry: rule, re_entry_key: key, flow, ends }) {
  const tidyTrigger = trigger.kind ? { ...trigger, config: tidy(trigger.config ?? {}) } : trigger;
  const graph = graphOf(flow, ends);
  const nodes = graph.nodes?.map((node) => {
    const config = tidy(node.config ?? {});
    const { config: _before, name: note, ...rest } = node;
    return { ...rest, ...(note && { name: note }), ...((node.config || Object.keys(config).length > 0) && { config }) };
  });
  return { trigger: tidyTrigger, re_entry: rule, re_entry_key: key || null, graph: nodes ? { ...graph, nodes } : graph };
}

// Controls that were emptied are left out; filters stay as they are.
function tidy(config) {
  const isEmpty = (value) => value === "" || value === undefined || (Array.isArray(value) && !value.length);
  const pairs = Object.entries(config).map(([name, value]) => {
    const isSettings = value && typeof value === "object" && !Array.isArray(value) && !["filter", "attributes", "headers", "body", "variables"].includes(name);
    if (!isSettings) return [name, value];
    const inner = Object.fromEntries(Object.entries(value).filter(([, one]) => !isEmpty(one)).map(([key, one]) => [key, one?.unit && !one.value ? undefined : one]).filter(([, one]) => one !== undefined));
    return [name, Object.keys(inner).length ? inner : undefined];
  });
  return Object.fromEntries(pairs.filter(([, value]) => !isEmpty(value)));
}

function Shown({ loaded, query }) {
  const [automation, setAutomation] = useState(loaded);
  const { id } = automation;
  const [draft, setDraft] = useState(() => drafts.get(id) ?? draftOf(loaded));
  const [refusal, setRefusal] = useState(null);
  const [failure, setFailure] = useState(null);
  const [busy, setBusy] = useState(false);
  // Controls that keep what was typed begin anew after discarding.
  const [revision, setRevision] = useState(0);
  const stats = useCall("getAutomationStats", { path: { id } }, { every: automation.status === "active" ? 15000 : undefined });
  const lists = useNames();
  const body = useMemo(() => bodyOf(draft), [draft]);
  const isDirty = useMemo(() => JSON.stringify(body) !== JSON.stringify(bodyOf(draftOf(automation))), [body, automation]);
  const checked = useChecks(id, body);
  const faults = faultsOf(refusal ?? checked, body);
  const editable = allowed("updateAutomation");

  useEffect(() => {
    if (isDirty) drafts.set(id, draft);
    else drafts.delete(id);
    const warn = (event) => { if (isDirty) event.preventDefault(); };
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isDirty, draft]);

  const edit = (next) => {
    setRefusal(null);
    setFailure(null);
    setDraft(next);
  };
  const took = (answer) => {
    setAutomation(answer);
    stats.reload();
  };
  const save = async () => {
    setBusy(true);
    setFailure(null);
    try {
      const answer = await call("updateAutomation", { path: { id }, body });
      setAutomation(answer);
      setDraft(draftOf(answer));
      setRefusal(null);
      announce(answer.version === automation.version ? t("Saved") : t("Saved as version {version}", { version: answer.version }));
      return true;
    } catch (error) {
      if (error.violations.length) setRefusal(error.violations);
      else setFailure(error);
      announce(error.message, { fault: true });
      return false;
    } finally {
      setBusy(false);
    }
  };
  const discard = () => {
    edit(draftOf(automation));
    setRevision(revision + 1);
  };
  const under = stats.data?.active;
  const tab = ["runs", "try"].includes(query.tab) ? query.tab : "steps";
  const path = `automations/${encodeURIComponent(id)}`;
  return html`
    <${Head} title=${automation.name} back=${href("automations")} backText=${t("Automations")} badge=${html`<${Badge} status=${automation.status} />`} text=${html`<${About} automation=${automation} names=${lists.names} />`}>
      <${Buttons} automation=${automation} under=${under} entered=${stats.data?.entered} faults=${faults} isDirty=${isDirty} save=${save} onDone=${took} trigger=${draft.trigger} names=${lists.names} />
    </${Head}>
    ${isDirty && editable && html`<${Unsaved} automation=${automation} under=${under} busy=${busy} failure=${failure} save=${save} discard=${discard} />`}
    ${stats.data?.entered > 0 && html`<${Counts} stats=${stats.data} path=${path} />`}
    <${Tabs} current=${tab} tabs=${[
      { id: "steps", label: t("Steps"), href: href(path) }, { id: "runs", label: t("Runs"), href: href(path, { tab: "runs" }) },
      { id: "try", label: t("Try out"), href: href(path, { tab: "try" }) }]} />
    ${tab === "steps" && html`<${Later} key=${`steps-${revision}`} load=${() => import("./automation_steps.js")} draft=${draft} onChange=${edit} faults=${faults} lists=${lists} stats=${stats.data} editable=${editable} graph=${body.graph} automation=${automation} />`}
    ${tab === "runs" && html`<${Later} key="runs" load=${() => import("./automation_runs.js")} automation=${automation} draft=${draft} names=${lists.names} query=${query} onChange=${stats.reload} />`}
    ${tab === "try" && html`<${Later} key="try" load=${() => import("./automation_try.js")} id=${id} body=${body} isDirty=${isDirty} faults=${faults} draft=${draft} names=${lists.names} />`}`;
}

function About({ automation, names }) {
  return html`${triggerText(automation.trigger, names)} · ${t("version {version}", { version: automation.version })} ·${" "}
    ${automation.activated_at ? html`${t("activated")} <${Time} at=${automation.activated_at} />` : t("never active yet")}`;
}

function Counts({ stats, path }) {
  const link = (status) => href(path, { tab: "runs", status });
  return html`<div class="grid" style=${{ gridTemplateColumns: "repeat(auto-fit, minmax(min(8rem, 100%), 1fr))" }}>
    <${Figure} name=${t("Entered")} value=${stats.entered} href=${href(path, { tab: "runs" })} />
    <${Figure} name=${t("Under way")} value=${stats.active} href=${link("waiting")} />
    <${Figure} name=${t("Completed")} value=${stats.completed} href=${link("completed")} />
    <${Figure} name=${t("Exited")} value=${stats.exited} href=${link("exited")} />
    <${Figure} name=${t("Failed")} value=${stats.failed} href=${link("failed")} /></div>`;
}

function Unsaved({ automation, under, busy, failure, save, discard }) {
  const people = under === undefined ? t("contacts") : count(under, "contact", "contacts");
  const note = automation.status === "active" ? t("Saving makes a new version for all who enter from then on; {people} under way stay on theirs.", { people }) : "";
  return html`<div class="notice warning save-bar" role="status"><p><strong>${t("Not saved yet.")}</strong> <span class="note">${note}</span></p>
    ${failure && html`<p class="fault-text" role="alert">${failure.message} <span><code>${failure.code}</code>${failure.requestId && html` · ${t("request")} <code>${failure.requestId}</code>`}</span></p>`}
    <div class="actions"><button type="button" class="primary" data-operation="updateAutomation" disabled=${busy} onClick=${save}>${busy ? t("One moment") : t("Save")}</button>
      <button type="button" onClick=${discard}>${t("Discard changes")}</button></div></div>`;
}

// ---- activate, pause, delete ----

function Rename({ automation, onDone }) {
  if (!allowed("updateAutomation")) return null;
  const open = () => dialog((close) => html`<${Form} id="updateAutomation" path=${{ id: automation.id }} initial=${{ name: automation.name }} body=${({ name }) => ({ name })}
    done=${t("The name is changed")} onDone=${(answer) => { close(); onDone(answer); }}><${Field} name="name" label=${t("Name")} /></${Form}>`, { title: t("Rename the automation") });
  return html`<button type="button" onClick=${open}>${t("Rename")}</button>`;
}

function Buttons({ automation, trigger, under, entered, faults, isDirty, save, onDone, names }) {
  const args = { path: { id: automation.id } };
  if (automation.status === "active") {
    return html`<${Rename} automation=${automation} onDone=${onDone} /><${Action} id="pauseAutomation" args=${args} onDone=${onDone}
      done=${under ? t("Paused: nobody enters, and {people} wait until you activate it again", { people: count(under, "contact", "contacts") }) : t("Paused: nobody enters until you activate it again")}>${t("Pause")}</${Action}>`;
  }
  const activate = async () => {
    if (isDirty && !(await save())) return false;
    const waiting = under ? t("{people} under way go on where they are.", { people: count(under, "contact", "contacts") }) : "";
    return confirm({ title: t("Activate {name}?", { name: automation.name }), text: `${triggerText(trigger, names)}: ${t("from now on each such contact goes through the steps.")} ${trigger.config?.include_existing ? t("Everybody who is in the segment now enters at once.") : ""} ${waiting}`, action: t("Activate") });
  };
  const remove = () => confirm({
    title: t("Delete {name}?", { name: automation.name }),
    text: `${under ? t("{people} under way stop where they are.", { people: count(under, "contact", "contacts") }) : under === undefined ? t("Whoever is under way stops where they are.") : t("Nobody is under way.")} ${entered === undefined ? t("The automation, its versions and the history of its runs are gone; messages that were sent stay.") : t("The automation, its versions and the history of its {number} runs are gone; messages that were sent stay.", { number: number(entered) })}`,
    action: t("Delete"), name: entered === 0 ? undefined : automation.name,
  });
  return html`
    <${Rename} automation=${automation} onDone=${onDone} />
    <${Action} id="deleteAutomation" args=${args} before=${remove} done=${t("Deleted")} onDone=${() => { drafts.delete(automation.id); go("automations"); }}>${t("Delete")}</${Action}>
    ${faults.all.length
      ? allowed("activateAutomation") && html`<a class="button" href=${href(`automations/${automation.id}`)} onClick=${(event) => { event.preventDefault(); document.getElementById("checks")?.focus(); }}>${count(faults.all.length, "thing to do before activating", "things to do before activating")}</a>`
      : html`<${Action} id="activateAutomation" className="primary" args=${args} before=${activate} onDone=${onDone} done=${t("Active")}>${isDirty ? t("Save and activate") : t("Activate")}</${Action}>`}`;
}

// ---- checks ----

const CHECK_AFTER_MS = 600;
const MINUTE = 60000;

// What the server would refuse at activation: a simulation of a minute checks the same and changes nothing.
function useChecks(id, body) {
  const [errors, setErrors] = useState([]);
  const text = JSON.stringify(body);
  const isFirst = useRef(true);
  useEffect(() => {
    const abort = new AbortController();
    const check = () => call("simulateAutomation", {
      path: { id }, quiet: true, signal: abort.signal,
      body: { ...body, contact: { external_id: "check" }, until: new Date(Date.now() + MINUTE).toISOString() },
    }).then(() => setErrors([]), (error) => {
      if (!abort.signal.aborted && error.status === 422) setErrors(error.violations.filter(({ pointer }) => /^\/(graph|trigger|re_entry)/.test(pointer ?? "")));
    });
    const timer = setTimeout(check, isFirst.current ? 0 : CHECK_AFTER_MS);
    isFirst.current = false;
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  return errors;
}

/** Violations by what they are about: `nodes` by id with pointers below the node, `start`, `ends`, `other`, and `all`. */
function faultsOf(errors, body) {
  const found = { nodes: {}, start: [], ends: [], other: [], all: errors };
  for (const one of errors) {
    const [, member, at, rest = ""] = /^\/graph\/(nodes|edges)\/(\d+)(\/.*)?$/.exec(one.pointer) ?? [];
    const node = member === "nodes" ? body.graph.nodes?.[at]?.id : body.graph.edges?.[at]?.from;
    if (member && node) (found.nodes[node] ??= []).push({ ...one, pointer: member === "nodes" ? rest : "", original: one.pointer });
    else if (/^\/(trigger|re_entry)/.test(one.pointer)) found.start.push(one);
    else if (/^\/graph\/(goal|exit_conditions)/.test(one.pointer)) found.ends.push(one);
    else found.other.push(one);
  }
  return found;
}
