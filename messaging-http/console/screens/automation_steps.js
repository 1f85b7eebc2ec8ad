// The steps of an automation: an outline in which they are edited, the drawing beside it.
import { confirm, count, dialog, html, number, t, useEffect, useRef, useState, words } from "../lib/ui.js";
import { blockOf, canMove, change, insert, itemsOf, move, newId, numbersOf, remove, setThen } from "../lib/flow.js";
import { branchText, filterText, kindName, KINDS, nodeText, triggerText } from "../lib/automation.js";
import { Later } from "../lib/later.js";
import { newNode, NodeForm } from "./automation_node.js";
import { Ends, Start } from "./automation_start.js";

const domId = (id) => `step-${id}`;

export default function Steps({ automation, draft, onChange, faults, lists, stats, editable, graph }) {
  const [open, setOpen] = useState(editable && !draft.trigger.kind ? "start" : null);
  const focus = useRef(null);
  const isWide = useWide();
  useEffect(() => {
    if (!focus.current) return;
    const wanted = focus.current.map((selector) => document.querySelector(selector)).find((element) => element && !element.disabled);
    focus.current = null;
    wanted?.focus();
  });
  const setFlow = (flow) => onChange({ ...draft, flow });
  const numbers = numbersOf(draft.flow);
  const byId = new Map(itemsOf(draft.flow).map(({ node }) => [node.id, node]));
  const tools = {
    draft, lists, faults, editable, numbers, open, byId,
    counts: new Map((stats?.nodes ?? []).map((one) => [one.id, one])),
    show: (id) => setOpen(open === id ? null : id),
    named: (id) => `${numbers.get(id)}. ${kindName(byId.get(id)?.kind)}`,
    setNode: (id, node, options) => setFlow(change(draft.flow, id, node, options)),
    setThen: (place, then) => setFlow(setThen(draft.flow, place, then)),
    add: async (place, isLast) => {
      const kind = await chooseKind(isLast);
      if (!kind) return;
      const id = newId(draft.flow, kind);
      focus.current = [`#${CSS.escape(domId(id))} .form :is(select, input, textarea, button)`];
      setFlow(insert(draft.flow, place, newNode(kind, id)));
      setOpen(id);
    },
    move: (id, step) => {
      const mine = `#${CSS.escape(domId(id))} > .card`;
      focus.current = step < 0 ? [`${mine} .up`, `${mine} .down`] : [`${mine} .down`, `${mine} .up`];
      setFlow(move(draft.flow, id, step));
    },
    remove: async (id) => {
      const below = blockOf(draft.flow, id).length - 1;
      if (below && !(await confirm({ title: t("Remove step {step}?", { step: tools.named(id) }), text: t("{steps} below it are removed too.", { steps: count(below, "step", "steps") }), action: t("Remove") }))) return;
      focus.current = ["#steps"];
      setFlow(remove(draft.flow, id));
    },
  };
  return html`<div class=${isWide ? "columns" : ""}>
    <section class="stack" aria-labelledby="steps"><h2 id="steps" tabindex="-1">${t("Steps")}</h2>
      <${Checks} faults=${faults} tools=${tools} isActive=${automation.status === "active"} />
      <ol class="outline">
        <${Part} id="start" title=${t("Start")} text=${triggerText(draft.trigger, lists.names)} faults=${faults.start} tools=${tools}>
          <${Start} draft=${draft} onChange=${onChange} errors=${faults.start} lists=${lists} /></${Part}>
        <${Chain} chain=${draft.flow.chain} place=${{}} tools=${tools} />
        <${Part} id="ends" title=${t("Goal and exits")} text=${endsText(draft.ends, lists.names)} faults=${faults.ends} tools=${tools}>
          <${Ends} graph=${draft.ends} onChange=${(ends) => onChange({ ...draft, ends })} errors=${faults.ends} /></${Part}>
      </ol>
      ${draft.flow.loose.length > 0 && html`<h3>${t("Steps that nothing leads to")}</h3>
        <p class="muted">${t("Let a step go on with them, or remove them.")}</p>
        ${draft.flow.loose.map((chain, at) => html`<ol class="outline" key=${chain.items[0].node.id}><${Chain} chain=${chain} place=${{ loose: at }} tools=${tools} /></ol>`)}`}
    </section>
    ${isWide && graph.nodes?.length > 0 && html`<section class="stack sticky" aria-labelledby="drawing"><h2 id="drawing">${t("Drawing")}</h2>
      <${Later} load=${() => import("./automation_drawing.js")} graph=${graph} trigger=${triggerText(draft.trigger, lists.names)} names=${lists.names} counts=${tools.counts} numbers=${numbers} faults=${faults.nodes}
        onChoose=${(id) => document.getElementById(domId(id))?.scrollIntoView({ block: "center" })} /></section>`}
  </div>`;
}

// The drawing repeats the outline, so small screens do without.
function useWide() {
  const [wide, setWide] = useState(() => matchMedia("(min-width: 641px)").matches);
  useEffect(() => {
    const query = matchMedia("(min-width: 641px)");
    const changed = () => setWide(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return wide;
}

function endsText({ goal, exit_conditions: exits = [] }, names) {
  const parts = [goal && t("goal: {what}", { what: filterText(goal, names) }), exits.length > 0 && count(exits.length, "exit condition", "exit conditions")].filter(Boolean);
  return parts.length ? parts.join(", ") : t("none; contacts go through to the end");
}

/** What is wrong, all of it, with links to the steps. */
function Checks({ faults, tools, isActive }) {
  if (!faults.all.length) return null;
  const toStep = (id) => (event) => {
    event.preventDefault();
    tools.show(id);
    document.getElementById(domId(id))?.scrollIntoView({ block: "center" });
  };
  const lines = [
    ...[["start", t("Start"), faults.start], ["ends", t("Goal and exits"), faults.ends]].flatMap(([id, name, list]) => list.map((one) => [id, name, one])),
    ...Object.entries(faults.nodes).flatMap(([id, list]) => list.map((one) => [id, tools.named(id), one])),
    ...faults.other.map((one) => [null, "", one]),
  ];
  return html`<div class="notice warning" id="checks" tabindex="-1" aria-labelledby="checks-title"><h3 id="checks-title">${isActive ? t("To do before it can be saved") : t("To do before it can be activated")}</h3>
    <ul>${lines.map(([id, name, one]) => html`<li>${id ? html`<a href=${`#${domId(id)}`} onClick=${tools.open === id ? (event) => event.preventDefault() : toStep(id)}>${name}</a>: ` : ""}${faultText(one)}</li>`)}</ul></div>`;
}

const PLAIN = { "/trigger/kind": "choose when a contact enters", "/graph/nodes": "add a first step" };

// The last names of the pointer say which setting it is.
function faultText({ pointer, message }) {
  if (PLAIN[pointer]) return t(PLAIN[pointer]);
  const parts = pointer.split("/").filter((part) => part && !/^\d+$/.test(part) && !["config", "graph", "trigger", "nodes", "edges"].includes(part)).slice(0, 2);
  const setting = words(parts.join(" ").replace(/_id\b/, "") || (pointer.startsWith("/trigger") ? "trigger" : ""));
  return `${setting} ${message}`.trim();
}

/** A part of the outline with a form that opens: the start, the ends. */
function Part({ id, title, text, faults, tools, children }) {
  const isOpen = tools.open === id;
  return html`<li id=${domId(id)}><div class="card">
    <div class="step-line"><div><h3>${title}</h3> <span class="muted" dir="auto">${text}</span></div>
      <div class="actions"><${Toggle} id=${id} name=${title} tools=${tools} /></div></div>
    ${!isOpen && faults.length > 0 && html`<ul class="fault-text">${faults.map((one) => html`<li>${faultText(one)}</li>`)}</ul>`}
    ${isOpen && html`<fieldset class="bare" id="${domId(id)}-form" disabled=${!tools.editable}>${children}</fieldset>`}</div></li>`;
}

function Toggle({ id, name, tools }) {
  const isOpen = tools.open === id;
  return html`<button type="button" class="small" aria-expanded=${isOpen} onClick=${() => tools.show(id)}>
    ${isOpen ? t("Close") : tools.editable ? t("Edit") : t("Show")}<span class="sr"> ${name}</span></button>`;
}

// ---- chains ----

function Chain({ chain, place, after, tools }) {
  const { items } = chain;
  const ends = items.at(-1)?.node.kind === "exit";
  const isOutermost = place.owner === undefined && place.loose === undefined;
  return html`${isOutermost && items.length > 0 && tools.editable && html`<li key="first"><${Add} text=${t("Add a step at the beginning")} onClick=${() => tools.add({ ...place, at: 0 })} /></li>`}
    ${items.map((item, at) => html`<${Step} key=${item.node.id} item=${item} place=${{ ...place, at: at + 1 }} tools=${tools} isLast=${at === items.length - 1}
      after=${items[at + 1]?.node.id ?? (chain.then === null ? after : chain.then === "end" ? undefined : chain.then)} />`)}
    ${!ends && html`<${End} key="end" chain=${chain} place=${place} after=${after} tools=${tools} />`}`;
}

function Step({ item, place, after, isLast, tools }) {
  const { node, branches } = item;
  const { id } = node;
  const isOpen = tools.open === id;
  const faults = tools.faults.nodes[id] ?? [];
  const counts = tools.counts.get(id);
  const name = tools.named(id);
  const icon = (label, sign, className, run, disabled) => html`<button type="button" class="quiet small ${className}" disabled=${disabled} onClick=${run} title=${label}><span aria-hidden="true">${sign}</span><span class="sr">${label}: ${name}</span></button>`;
  return html`<li id=${domId(id)}>
    <div class="card">
      <div class="step-line"><div><h3>${name}</h3> <span dir="auto">${nodeText(node, tools.lists.names)}</span>
          ${node.name && html` <span class="muted" dir="auto">${node.name}</span>`}</div>
        <div class="actions">
          ${tools.editable && html`${icon(t("Move up"), "↑", "up", () => tools.move(id, -1), !canMove(tools.draft.flow, id, -1))}
            ${icon(t("Move down"), "↓", "down", () => tools.move(id, 1), !canMove(tools.draft.flow, id, 1))}
            ${icon(t("Remove"), "✕", "remove", () => tools.remove(id))}`}
          <${Toggle} id=${id} name=${name} tools=${tools} /></div></div>
      ${counts?.entered > 0 && html`<p class="help">${t("{number} came here", { number: number(counts.entered) })}${counts.waiting > 0 && html` · <strong>${t("{number} wait here now", { number: number(counts.waiting) })}</strong>`}</p>`}
      ${!isOpen && faults.length > 0 && html`<ul class="fault-text">${faults.map((one) => html`<li>${faultText(one)}</li>`)}</ul>`}
      ${isOpen && html`<fieldset class="bare" disabled=${!tools.editable}><${NodeForm} node=${node} lists=${tools.lists} errors=${faults} onChange=${(next, options) => tools.setNode(id, next, options)} /></fieldset>`}
    </div>
    ${branches.map(({ name: branch, chain }, nth) => html`<div class="branch" key=${nth}>
      <div class="head-line"><p><strong dir="auto">${branchText(node, branch)}</strong>${counts?.branches[branch] > 0 && html` <span class="muted">${t("{number} went here", { number: number(counts.branches[branch]) })}</span>`}</p>
        ${tools.editable && chain.items.length > 0 && html`<${Add} text=${t("Add a step at the beginning of {branch}", { branch: branchText(node, branch) })} onClick=${() => tools.add({ owner: id, branch: nth, at: 0 })} />`}</div>
      <ol class="outline"><${Chain} chain=${chain} place=${{ owner: id, branch: nth }} after=${after} tools=${tools} /></ol></div>`)}
    ${tools.editable && !isLast && html`<${Add} text=${branches.length ? t("Add a step after these ways") : t("Add a step after {step}", { step: name })} onClick=${() => tools.add(place)} />`}
  </li>`;
}

function Add({ text, onClick }) {
  return html`<button type="button" class="quiet small add" title=${text} onClick=${onClick}><span aria-hidden="true">+</span><span class="sr">${text}</span></button>`;
}

/** Where a chain ends: what is next, and adding a step there. All steps are offered only when somebody asks for them. */
function End({ chain, place, after, tools }) {
  const [isChanging, setChanging] = useState(false);
  const part = useRef();
  const was = useRef(false);
  useEffect(() => {
    const isLost = document.activeElement === document.body;
    if (isChanging || (was.current && isLost)) part.current?.querySelector("select, .change")?.focus();
    was.current = isChanging;
  }, [isChanging]);
  if (!tools.byId.size) {
    return tools.editable && html`<li><button type="button" class="primary" onClick=${() => tools.add({ ...place, at: 0 }, true)}>${t("Add the first step")}</button></li>`;
  }
  const next = after === undefined ? t("the run ends") : t("goes on with {step}", { step: tools.named(after) });
  const shown = chain.then === null ? next : chain.then === "end" ? t("the run ends") : t("goes to {step}", { step: tools.named(chain.then) });
  const first = chain.items.at(-1)?.branches.length ? t("After these ways") : t("Then");
  return html`<li ref=${part}><div class="actions"><span class="muted">${first} ${!isChanging && shown}</span>
    ${isChanging && html`<${Next} chain=${chain} place=${place} after=${after} next=${next} tools=${tools} onDone=${() => setChanging(false)} />`}
    ${tools.editable && html`${!isChanging && html`<button type="button" class="link change" onClick=${() => setChanging(true)}>${t("Change")}<span class="sr">: ${shown}</span></button>`}
      <button type="button" class="small" onClick=${() => tools.add({ ...place, at: chain.items.length }, true)}>${t("Add a step")}</button>`}</div></li>`;
}

function Next({ chain, place, after, next, tools, onDone }) {
  // A webhook that fails goes on as if it had not, unless a step says otherwise.
  const isSilent = tools.byId.get(place.owner)?.kind === "webhook" && !chain.items.length;
  const options = [["", next], ...(after !== undefined && !isSilent ? [["end", t("the run ends")]] : []),
    ...[...tools.byId.keys()].filter((id) => id !== after).map((id) => [id, t("goes to {step}", { step: tools.named(id) })])];
  const value = chain.then ?? "";
  // Arrow keys change it step by step, so it stays until it is left.
  return html`<select aria-label=${t("Then")} value=${value} onChange=${(event) => tools.setThen(place, event.target.value || null)}
      onBlur=${onDone} onKeyDown=${(event) => ["Escape", "Enter"].includes(event.key) && onDone()}>
    ${options.map(([id, text]) => html`<option value=${id} selected=${id === value}>${text}</option>`)}</select>`;
}

/** Asks for the kind of a new step. */
function chooseKind(isLast) {
  const kinds = KINDS.filter(([kind]) => isLast || kind !== "exit");
  const groups = [...new Set(kinds.map(([, , , group]) => group))];
  return dialog((close) => html`<div class="stack">${groups.map((group) => html`<section key=${group}><h3>${t(group)}</h3>
    <ul class="choices">${kinds.filter(([, , , one]) => one === group).map(([kind, name, text]) => html`<li key=${kind}><button type="button" class="quiet" autofocus=${kind === KINDS[0][0]} onClick=${() => close(kind)}>
      <strong>${t(name)}</strong> ${text && html`<span class="muted">${t(text)}</span>`}</button></li>`)}</ul></section>`)}</div>`, { title: t("Add a step") });
}
