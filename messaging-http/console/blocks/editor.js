// The blocks of an email: a list in which they are added, moved, opened and taken away. The blocks are the MJML: each
// change is one of the source, and nothing is kept beside it.
import { announce, html, t, useEffect, useMemo, useReducer, useRef, useState } from "../lib/ui.js";
import { parse, write } from "./mjml.js";
import * as tree from "./tree.js";
import { ADDED, beginning, defaultsOf, isWhole, kindOf, made, madeColumn, nameOf, summaryOf } from "./kinds.js";
import { BlockFields } from "./block_fields.js";
import { Drawing } from "./drawing.js";
import { History } from "./history.js";
import { useDrag } from "./drag.js";
import { useRoving } from "./roving.js";
import { useSheet } from "./sheet.js";

const keyOf = (place) => (place.length ? place.join("-") : "all");
const isSame = (one, two) => Boolean(one && two) && keyOf(one) === keyOf(two);

// The only column of a section is not shown by itself: its contents stand in the section.
const isHidden = (body, place) => {
  const parent = place.slice(0, -1);
  return tree.at(body, place).name === "mj-column" && tree.isSection(tree.at(body, parent)) && tree.placesIn(body, parent).length === 1;
};

const shownIn = (body, place) => tree.placesIn(body, place).flatMap((one) => (isHidden(body, one) ? tree.placesIn(body, one) : [one]));
const shown = (body) => [[], ...tree.places(body).filter((place) => !isHidden(body, place))];

/** `value` is MJML, `onChange(mjml)` hears another one; `onCode()` asks for the code when there is no other way. */
export default function BlockEditor({ value, onChange, onCode }) {
  useSheet();
  const doc = useMemo(() => parse(value), [value]);
  const [, again] = useReducer((n) => n + 1, 0);
  const [outside, fromOutside] = useReducer((n) => n + 1, 0);
  const [chosen, setChosen] = useState(null);
  const [isOpen, setOpen] = useState(false);
  const history = useRef(new History());
  const own = useRef(value);
  const sent = useRef([]);
  const wanted = useRef(null);
  const area = useRef();
  const drop = useRef();
  const drag = useDrag(area, (from, where) => drop.current(from, where));

  // What was typed as code is undone like everything else.
  useEffect(() => {
    // What was sent from here comes back a moment later, when perhaps more was typed.
    const echo = sent.current.lastIndexOf(value);
    sent.current = echo < 0 ? [] : sent.current.slice(echo + 1);
    if (echo >= 0 || value === own.current) return;
    history.current.note({ source: own.current, chosen: null }, "code", performance.now());
    own.current = value;
    fromOutside();
  }, [value]);
  useEffect(() => {
    // A block that was just added is there only once the page shows what was sent last.
    if (!wanted.current || own.current !== value) return;
    const { place, inside } = wanted.current;
    wanted.current = null;
    const name = area.current?.querySelector(`[data-place="${keyOf(place)}"]`);
    const field = inside && name?.closest(".block")?.querySelector(".block-fields :is([contenteditable=true], input:not([type=color]), textarea, select, button)");
    (field || name)?.focus();
    if (!inside) name?.scrollIntoView({ block: "nearest" });
  });

  if (doc.fault) return html`<${Unreadable} value=${value} fault=${doc.fault} onChange=${onChange} onCode=${onCode} />`;
  const { body } = doc;
  const defaults = defaultsOf(doc.before);

  const send = (source) => {
    own.current = source;
    sent.current = [...sent.current, source].slice(-100);
    onChange(source);
  };
  const put = (source, place, { key = null, focus } = {}) => {
    history.current.note({ source: value, chosen }, key, performance.now());
    send(source);
    setChosen(place);
    if (focus) wanted.current = { place };
    again();
  };
  // Spaces that meet become one when the source is read again, so a place is known by its number among the blocks.
  const change = (next, place, options = {}) => {
    const source = write({ ...doc, body: next });
    const nth = place?.length ? tree.places(next).findIndex((one) => isSame(one, place)) : -1;
    const read = nth < 0 ? null : parse(source);
    put(source, read?.body ? tree.places(read.body)[nth] ?? null : place, options);
  };
  const order = shown(body);
  const say = (text, place, among = order.length) => announce(t("{text}, block {number} of {all}", { text, number: order.findIndex((one) => isSame(one, place)), all: among - 1 }), { unseen: true });

  const ed = {
    body, defaults, chosen, isOpen, outside,
    is: (place) => isSame(chosen, place),
    choose: (place, { open = true, inside = false } = {}) => {
      setChosen(place);
      setOpen(open);
      wanted.current = { place, inside };
      again();
    },
    set: (place, node) => change(tree.replaced(body, place, node), place, { key: `set ${keyOf(place)}` }),
    setNodes: (place, nodes) => change(tree.spliced(body, place, nodes), place, { key: `set ${keyOf(place)}` }),
    setColumns: (place, number) => change(tree.withColumns(body, place, number, madeColumn), place),
    move: (place, step) => {
      const next = tree.moved(body, place, step);
      if (!next) return announce(step < 0 ? t("It is the first already.") : t("It is the last already."), { unseen: true });
      change(next.body, next.place, { focus: true });
      return announce(step < 0 ? t("{name} moved up", { name: nameOf(tree.at(body, place)) }) : t("{name} moved down", { name: nameOf(tree.at(body, place)) }), { unseen: true });
    },
    moveTo: (place, where) => {
      // Content that is let go on a section goes into it.
      const within = tree.spot(body, where.before ?? where.after ?? where.end, false);
      const next = tree.movedTo(body, place, where) ?? (within && tree.movedTo(body, place, within));
      if (next) change(next.body, next.place, { focus: true });
      announce(next ? t("{name} moved", { name: nameOf(tree.at(body, place)) }) : t("It cannot stand there."), { unseen: true });
    },
    copy: (place) => {
      const node = tree.at(body, place);
      const next = tree.insertedAfter(body, place, () => ({ ...node }));
      change(next.body, next.place, { focus: true });
      announce(t("{name} copied", { name: nameOf(node) }), { unseen: true });
    },
    wrap: (place, tags) => {
      const next = tree.wrapped(body, place, tags);
      setOpen(true);
      change(next.body, next.place, { focus: true });
      announce(t("{name} stands between {first} and {last} now", { name: nameOf(tree.at(body, place)), first: tags[0], last: tags[1] }), { unseen: true });
    },
    remove: (place) => {
      const node = tree.at(body, place);
      const target = isHiddenTarget(body, tree.neighbour(body, place));
      setOpen(false);
      change(tree.removed(body, place), target ?? [], { focus: true });
      announce(t("{name} deleted. Ctrl-Z brings it back.", { name: nameOf(node) }), { unseen: true });
    },
    add: (kind) => {
      const whole = isWhole(kind);
      const where = tree.spot(body, chosen, whole);
      // Without a column to stand in, it gets a section of its own after the one that is chosen, or at the end.
      const put1 = where ?? (chosen?.length ? { after: chosen.slice(0, 1) } : { end: [] });
      const make = (space) => made(kind, space, !where);
      const next = put1.after ? tree.insertedAfter(body, put1.after, make) : tree.appended(body, put1.end, make);
      const place = where || whole ? next.place : tree.places(next.body, next.place).at(-1);
      setOpen(true);
      change(next.body, place, { focus: true });
      const all = shown(next.body);
      announce(t("{name} added, block {number} of {all}", { name: nameOf(tree.at(next.body, place)), number: all.findIndex((one) => isSame(one, place)), all: all.length - 1 }), { unseen: true });
    },
  };

  const step = (which) => {
    const found = history.current[which]({ source: value, chosen });
    if (!found) return announce(which === "undo" ? t("Nothing to undo.") : t("Nothing to do again."), { unseen: true });
    send(found.source);
    setChosen(found.chosen);
    fromOutside();
    // The focus stays where it is as long as that is there.
    if (!area.current.contains(document.activeElement)) wanted.current = { place: found.chosen ?? [] };
    return announce(which === "undo" ? t("Undone") : t("Done again"), { unseen: true });
  };

  const onKeyDown = (event) => {
    const { key, target } = event;
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && !event.altKey && ["z", "y", "Z"].includes(key)) {
      event.preventDefault();
      step(key === "y" || event.shiftKey ? "redo" : "undo");
      return;
    }
    // Enter in a control is no wish to save the whole template.
    if (key === "Enter" && target.localName === "input") event.preventDefault();
    if (key === "Escape" && chosen && isOpen) {
      event.preventDefault();
      ed.choose(chosen, { open: false });
      return;
    }
    const name = target.closest?.(".block-name");
    if (!name) return;
    const nth = order.findIndex((place) => keyOf(place) === name.dataset.place);
    const place = order[nth];
    const arrow = { ArrowUp: -1, ArrowDown: 1 }[key];
    if (arrow && event.altKey && place.length) ed.move(place, arrow);
    else if (arrow && !isCommand && !event.altKey) wanted.current = { place: order[Math.max(0, Math.min(order.length - 1, nth + arrow))] };
    else if (key === "Home" || key === "End") wanted.current = { place: key === "Home" ? order[0] : order.at(-1) };
    else if (key === "Delete" && place.length) ed.remove(place);
    else if (key === "d" && isCommand && place.length) ed.copy(place);
    else return;
    event.preventDefault();
    again();
  };
  drop.current = ed.moveTo;

  return html`<div class="blocks" ref=${area} onKeyDown=${onKeyDown}>
    <${Palette} onAdd=${ed.add} />
    <div class="actions">
      <button type="button" class="small" aria-disabled=${!history.current.canUndo || undefined} onClick=${() => step("undo")}>${t("Undo")}</button>
      <button type="button" class="small" aria-disabled=${!history.current.canRedo || undefined} onClick=${() => step("redo")}>${t("Redo")}</button>
      <details class="more block-keys"><summary>${t("Keys")}</summary><dl class="facts">${KEYS.map(([keys, text]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${t(text)}</dd></div>`)}</dl></details>
    </div>
    <ol class="block-list" aria-label=${t("Blocks")}>
      <${Block} ed=${ed} place=${[]} drag=${drag} />
      ${shownIn(body, []).map((place) => html`<${Block} key=${keyOf(place)} ed=${ed} place=${place} drag=${drag} />`)}
    </ol>
  </div>`;
}

const KEYS = [
  ["↑ ↓", "the block before, after"], ["Enter", "open it, and into its fields"], ["Esc", "back to the block"], ["Alt ↑ ↓", "move it"], ["Delete", "delete it"],
  ["Ctrl D", "copy it"], ["Ctrl Z", "undo"], ["Ctrl Shift Z", "redo"],
];

// A column that is not shown gets no focus; its section does.
function isHiddenTarget(body, place) {
  if (!place?.length) return place;
  const node = tree.at(body, place);
  return node?.name === "mj-column" && isHidden(body, place) ? place.slice(0, -1) : place;
}

// Reads the source with what to add, as a row of buttons.
function Palette({ onAdd }) {
  const roving = useRoving(ADDED.length);
  return html`<div class="palette-bar" aria-label=${t("Add a block")} ...${roving.row}>
    <span class="muted" aria-hidden="true">${t("Add")}</span>
    ${ADDED.map(([kind, name], nth) => html`<button type="button" key=${kind} class="small" aria-label=${t("Add {name}", { name: t(name) })} ...${roving.button(nth)} onClick=${() => onAdd(kind)}>${t(name)}</button>`)}
  </div>`;
}

function Block({ ed, place, drag }) {
  const node = tree.at(ed.body, place);
  const kind = kindOf(node);
  const name = nameOf(node);
  const summary = summaryOf(node);
  const isChosen = ed.is(place);
  const isOpen = isChosen && ed.isOpen;
  const isAll = !place.length;
  const inner = isAll || !tree.isHolder(node) ? [] : shownIn(ed.body, place);
  const columns = tree.isSection(node) ? tree.columnsOf(ed.body, place).length : 0;
  const areColumns = columns > 1;
  // While its text is open, the text itself is seen.
  const isDrawn = !isAll && !tree.isHolder(node) && kind !== "spacer" && !(isOpen && ["text", "heading"].includes(kind));
  const toggle = (event) => (isOpen ? ed.choose(place, { open: false }) : ed.choose(place, { inside: event.detail === 0 }));
  const handle = isAll ? null : html`<span class="block-handle" aria-hidden="true" title=${t("Drag to another place")} ...${drag.handle(place)}>⠿</span>`;
  return html`<li class="block block-${kind} ${isChosen ? "chosen" : ""}" ...${isAll ? {} : drag.target(place, node)}>
    <div class="block-bar">${handle}
      <button type="button" class="block-name quiet" data-place=${keyOf(place)} aria-expanded=${isOpen} onClick=${toggle}>
        <span>${name}</span>${summary && html` <span class=${isDrawn ? "sr" : "muted block-summary"} dir="auto">${summary}</span>`}</button>
      ${isChosen && !isAll && html`<div class="block-actions">
        <button type="button" class="small" aria-label=${t("Move {name} up", { name })} title=${t("Up")} onClick=${() => ed.move(place, -1)}>↑</button>
        <button type="button" class="small" aria-label=${t("Move {name} down", { name })} title=${t("Down")} onClick=${() => ed.move(place, 1)}>↓</button>
        <button type="button" class="small" aria-label=${t("Copy {name}", { name })} title=${t("Copy")} onClick=${() => ed.copy(place)}>${t("Copy")}</button>
        <button type="button" class="small" aria-label=${t("Delete {name}", { name })} title=${t("Delete")} onClick=${() => ed.remove(place)}>✕</button></div>`}
    </div>
    ${isOpen && html`<${BlockFields} onWrap=${isAll || kind === "column" ? null : (tags) => ed.wrap(place, tags)} key=${keyOf(place)} node=${node} name=${name} onChange=${(next) => ed.set(place, next)} onNodes=${isAll ? null : (nodes) => ed.setNodes(place, nodes)}
      columns=${columns} onColumns=${(number) => ed.setColumns(place, number)} outside=${ed.outside} defaults=${ed.defaults} />`}
    ${isDrawn && html`<div class="block-drawing" aria-hidden="true" onClick=${() => !isOpen && ed.choose(place)}><${Drawing} node=${node} defaults=${ed.defaults} /></div>`}
    ${inner.length > 0 && html`<ol class="block-list ${areColumns ? "side-by-side" : ""}" aria-label=${t("In {name}", { name })}>
      ${inner.map((one) => html`<${Block} key=${keyOf(one)} ed=${ed} place=${one} drag=${drag} />`)}</ol>`}
  </li>`;
}

function Unreadable({ value, fault, onChange, onCode }) {
  const isEmpty = !value.trim();
  return html`<div class="notice ${isEmpty ? "" : "warning"}" role="status">
    <p>${isEmpty ? t("Nothing is written in MJML yet.") : html`<strong>${t("This cannot be shown as blocks.")}</strong> ${t("Line {line}: {message}", fault)}`}</p>
    <p class="actions">${isEmpty
      ? html`<button type="button" class="primary" onClick=${() => onChange(beginning())}>${t("Begin with a text")}</button>`
      : html`<button type="button" onClick=${onCode}>${t("Go to the code")}</button>`}</p></div>`;
}
