// Rich text within a block: a toolbar over what is written. The document is made of the HTML of the block and written back
// to it with each change; nothing that is pasted or dropped becomes a part of the page.
import {
  baseKeymap, chainCommands, EditorState, EditorView, keymap, liftListItem, setBlockType, sinkListItem, Slice, Fragment, splitListItem,
  TextSelection, toggleMark, wrapInList,
} from "../vendor/prosemirror.js";
import { html, t, useEffect, useId, useReducer, useRef, useState } from "../lib/ui.js";
import { ALIGNMENTS, schema, toDocument, toHtml } from "./schema.js";
import { pieces } from "./language.js";
import { ColorInput } from "./fields.js";
import { ValuePicker } from "./picker.js";
import { useRoving } from "./roving.js";

const { nodes, marks } = schema;

/**
 * `value` is the HTML of the text, `onChange(html)` hears another one; `label` names it. `outside` is another number whenever
 * the value did not come from here: what was typed since the last drawing must not be taken back by an older value.
 */
export function RichText({ value, onChange, label, outside }) {
  const place = useRef();
  const view = useRef();
  const written = useRef(value);
  const [, again] = useReducer((n) => n + 1, 0);
  const [asked, setAsked] = useState(null);
  const id = useId();
  const tell = useRef();
  tell.current = onChange;

  useEffect(() => {
    view.current = new EditorView(place.current, {
      state: stateOf(toDocument(value)),
      attributes: { role: "textbox", "aria-multiline": "true", "aria-label": label, dir: "auto", "aria-describedby": `${id}-help` },
      dispatchTransaction(transaction) {
        const state = this.state.apply(transaction);
        this.updateState(state);
        if (transaction.docChanged && !transaction.getMeta("outside")) {
          written.current = toHtml(state.doc);
          tell.current(written.current);
        }
        again();
      },
      handleDOMEvents: { paste: pasted, drop: (_, event) => { event.preventDefault(); return true; } },
      handleKeyDown: (_, event) => {
        if (event.key !== "k" || !(event.ctrlKey || event.metaKey)) return false;
        event.preventDefault();
        event.stopPropagation();
        setAsked("link");
        return true;
      },
    });
    again();
    return () => view.current.destroy();
  }, []);
  // Another text came from elsewhere, say by undoing.
  useEffect(() => {
    if (value === written.current || !view.current) return;
    written.current = value;
    const doc = toDocument(value);
    if (!doc) return;
    const { state } = view.current;
    const at = Math.min(state.selection.from, doc.content.size);
    const change = state.tr.replaceWith(0, state.doc.content.size, doc.content).setMeta("outside", true);
    view.current.dispatch(change.setSelection(TextSelection.near(change.doc.resolve(at))));
  }, [outside]);

  const run = (command) => {
    command(view.current.state, view.current.dispatch, view.current);
    view.current.focus();
  };
  const state = view.current?.state;
  const insert = (expression) => {
    setAsked(null);
    run((current, dispatch) => {
      dispatch(current.tr.replaceSelectionWith(nodes.expression.create({ source: expression }), true));
      return true;
    });
  };
  return html`<div class="rich">
    <${Toolbar} state=${state} run=${run} asked=${asked} onAsk=${setAsked} name=${label} />
    ${asked === "link" && html`<${LinkForm} state=${state} run=${run} onClose=${() => { setAsked(null); view.current.focus(); }} />`}
    ${asked === "color" && html`<${ColorForm} state=${state} run=${run} onClose=${() => { setAsked(null); view.current.focus(); }} />`}
    ${asked === "value" && html`<${ValuePicker} onChoose=${insert} onClose=${() => { setAsked(null); view.current.focus(); }} />`}
    <div class="rich-text" ref=${place}></div>
    <p class="help" id="${id}-help">${t("Ctrl-B bold, Ctrl-I italic, Ctrl-K link. Tags such as {tag} stay as they are.", { tag: "{{ … }}" })}</p>
  </div>`;
}

/** Whether a text can be written here. */
export function isRich(value) {
  return toDocument(value) !== null;
}

const isIn = (state, type) => {
  const { $from } = state.selection;
  for (let depth = $from.depth; depth > 0; depth -= 1) if ($from.node(depth).type === type) return true;
  return false;
};

function stateOf(doc) {
  const { list_item: item } = nodes;
  const keys = {
    "Mod-b": toggleMark(marks.strong), "Mod-i": toggleMark(marks.em), "Mod-u": toggleMark(marks.underline),
    "Mod-a": selectText,
    Enter: chainCommands(splitListItem(item), plainAfterHeading),
    "Shift-Enter": (state, dispatch) => {
      dispatch?.(state.tr.replaceSelectionWith(nodes.hard_break.create()).scrollIntoView());
      return true;
    },
    "Alt-ArrowRight": sinkListItem(item), "Alt-ArrowLeft": liftListItem(item),
  };
  return EditorState.create({ doc, plugins: [keymap(keys), keymap(baseKeymap)] });
}

// All of the text, not of the document: what is typed in its place keeps the look of the first paragraph.
function selectText(state, dispatch) {
  const { doc, tr } = state;
  dispatch?.(tr.setSelection(TextSelection.between(doc.resolve(0), doc.resolve(doc.content.size))));
  return true;
}

// After a heading one goes on with a plain paragraph; a new paragraph keeps the look of the one before.
function plainAfterHeading(state, dispatch) {
  const { $from, $to, empty } = state.selection;
  if (!empty || $from.parent !== $to.parent || !$from.parent.isTextblock) return false;
  const { parent } = $from;
  const isHeading = parent.type === nodes.heading && $from.parentOffset === parent.content.size;
  const attrs = isHeading ? {} : { ...parent.attrs };
  dispatch?.(state.tr.split($from.pos, 1, [{ type: isHeading ? nodes.paragraph : parent.type, attrs }]).scrollIntoView());
  return true;
}

// What is pasted comes as a text: lines become paragraphs, tags of the template what they are.
function pasted(view, event) {
  event.preventDefault();
  const text = event.clipboardData?.getData("text/plain") ?? "";
  if (!text) return true;
  const active = view.state.storedMarks ?? view.state.selection.$from.marks();
  const inline = (line) => Fragment.fromArray(pieces(line).map((piece) => (piece.tag ? nodes.expression.create({ source: piece.text }, null, active) : schema.text(piece.text, active))));
  const lines = text.replace(/\r\n?/g, "\n").split(/\n+/);
  const slice = lines.length === 1
    ? new Slice(inline(lines[0]), 0, 0)
    : new Slice(Fragment.fromArray(lines.map((line) => nodes.paragraph.create(null, line ? inline(line) : null))), 1, 1);
  view.dispatch(view.state.tr.replaceSelection(slice).scrollIntoView());
  return true;
}

const BUTTONS = 12;

function Toolbar({ state, run, asked, onAsk, name }) {
  const roving = useRoving(BUTTONS);
  if (!state) return html`<div class="rich-bar"></div>`;
  const { $from, from, to, empty } = state.selection;
  const has = (type) => (empty ? Boolean(type.isInSet(state.storedMarks ?? $from.marks())) : state.doc.rangeHasMark(from, to, type));
  const level = isIn(state, nodes.heading) ? $from.parent.attrs.level ?? 0 : 0;
  const align = $from.parent.attrs.align ?? "";
  const style = (wanted) => run(wanted ? setBlockType(nodes.heading, { ...pick($from.parent), level: wanted }) : setBlockType(nodes.paragraph, pick($from.parent)));
  const toList = (type) => run(isIn(state, type) ? liftListItem(nodes.list_item) : wrapInList(type));
  const ask = (what) => onAsk(asked === what ? null : what);
  const buttons = [
    ["B", t("Bold"), has(marks.strong), () => run(toggleMark(marks.strong)), "rich-b"],
    ["I", t("Italic"), has(marks.em), () => run(toggleMark(marks.em)), "rich-i"],
    ["U", t("Underlined"), has(marks.underline), () => run(toggleMark(marks.underline)), "rich-u"],
    ["H", t("Heading"), level > 0, () => style(level ? 0 : 2)],
    ["•", t("List"), isIn(state, nodes.bullet_list), () => toList(nodes.bullet_list)],
    ["", t("Numbered list"), isIn(state, nodes.ordered_list), () => toList(nodes.ordered_list), "rich-ol"],
    ...[["⇤", t("Left")], ["↔", t("Centre")], ["⇥", t("Right")]].map(([sign, text], nth) => [sign, text, align === ALIGNMENTS[nth], () => run(aligned(align === ALIGNMENTS[nth] ? "" : ALIGNMENTS[nth]))]),
    [t("Link"), t("Link"), has(marks.link), () => ask("link")],
    ["A", t("Colour"), has(marks.color), () => ask("color"), "rich-a"],
    ["{ }", t("Insert a value"), asked === "value", () => ask("value")],
  ];
  return html`<div class="rich-bar" aria-label=${t("Format of {name}", { name })} ...${roving.row}>
    ${buttons.map(([sign, text, isOn, act, look], nth) => html`<button type="button" key=${text} class="small ${look ?? ""}" title=${text} aria-label=${text} aria-pressed=${isOn}
      ...${roving.button(nth)} onMouseDown=${(event) => event.preventDefault()} onClick=${act}><span aria-hidden="true">${sign}</span></button>`)}</div>`;
}

const pick = ({ attrs }) => ({ align: attrs.align ?? "", rest: "" });

// The alignment of every paragraph and heading that the selection touches.
function aligned(align) {
  return (state, dispatch) => {
    const { tr } = state;
    const { from, to } = state.selection;
    state.doc.nodesBetween(from, to, (node, at) => {
      if (node.type === nodes.paragraph || node.type === nodes.heading) tr.setNodeMarkup(at, null, { ...node.attrs, align });
    });
    dispatch?.(tr);
    return true;
  };
}

// The piece of text around the cursor that has a mark, or the selection.
function reach(state, type) {
  const { $from, from, to, empty } = state.selection;
  const own = type.isInSet($from.marks()) ?? ($from.nodeAfter && type.isInSet($from.nodeAfter.marks));
  if (!empty || !own) return { from, to, own: own ?? null };
  let [first, last] = [$from.pos, $from.pos];
  $from.parent.forEach((child, offset) => {
    const begin = $from.start() + offset;
    if (own.isInSet(child.marks) && begin <= $from.pos && begin + child.nodeSize >= $from.pos) {
      first = Math.min(first, begin);
      last = Math.max(last, begin + child.nodeSize);
    }
  });
  return { from: first, to: last, own };
}

function set(type, attrs, text) {
  return (state, dispatch) => {
    const { from, to, own } = reach(state, type);
    const { tr } = state;
    if (from === to && attrs) tr.insert(from, schema.text(text, [type.create({ ...own?.attrs, ...attrs })]));
    else if (attrs) tr.removeMark(from, to, type).addMark(from, to, type.create({ ...own?.attrs, ...attrs }));
    else tr.removeMark(from, to, type);
    dispatch(tr);
    return true;
  };
}

// Enter in a control of a small form takes it, Escape closes it; neither is a key of the form around.
const keys = (take, close) => (event) => {
  if (event.key === "Enter") take();
  else if (event.key === "Escape") close();
  else return;
  event.preventDefault();
  event.stopPropagation();
};

function LinkForm({ state, run, onClose }) {
  const id = useId();
  const field = useRef();
  const { own } = reach(state, marks.link);
  const [href, setHref] = useState(own?.attrs.href ?? "https://");
  useEffect(() => field.current.focus(), []);
  const take = () => {
    if (href.trim() && href.trim() !== "https://") run(set(marks.link, { href: href.trim() }, href.trim()));
    onClose();
  };
  return html`<div class="rich-form" role="group" aria-label=${t("Link")} onKeyDown=${keys(take, onClose)}>
    <label for=${id}>${t("Address of the link")}</label>
    <input id=${id} ref=${field} class="mono" value=${href} autocomplete="off" onInput=${(event) => setHref(event.target.value)} />
    <div class="actions"><button type="button" class="small primary" onClick=${take}>${t("Set the link")}</button>
      ${own && html`<button type="button" class="small" onClick=${() => { run(set(marks.link, null)); onClose(); }}>${t("No link")}</button>`}
      <button type="button" class="small" onClick=${onClose}>${t("Cancel")}</button></div>
  </div>`;
}

function ColorForm({ state, run, onClose }) {
  const { own } = reach(state, marks.color);
  const [value, setValue] = useState(own?.attrs.color ?? "#b3261e");
  const take = () => {
    if (value && !state.selection.empty) run(set(marks.color, { color: value }));
    else if (value) run((current, dispatch) => { dispatch(current.tr.addStoredMark(marks.color.create({ color: value }))); return true; });
    onClose();
  };
  return html`<div class="rich-form" role="group" aria-label=${t("Colour")} onKeyDown=${keys(take, onClose)}>
    <${ColorInput} label=${t("Colour of the text")} value=${value} onChange=${setValue} focused />
    <div class="actions"><button type="button" class="small primary" onClick=${take}>${t("Set the colour")}</button>
      ${own && html`<button type="button" class="small" onClick=${() => { run(set(marks.color, null)); onClose(); }}>${t("No colour")}</button>`}
      <button type="button" class="small" onClick=${onClose}>${t("Cancel")}</button></div>
  </div>`;
}
