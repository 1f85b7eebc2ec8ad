// An editor for templates: a text area over a coloured copy of its text. The text area is the real control, so
// keyboards, screen readers, spell checkers and undo work as everywhere.
import { html, t, useId, useMemo, useRef, useState } from "./ui.js";

const HTML_PARTS = /(\{\{[\s\S]*?\}\}|\{%[\s\S]*?%\}|\{#[\s\S]*?#\})|(<!--[\s\S]*?-->)|(<\/?[a-zA-Z][\w:-]*)|("[^"\n]*")|(\/?>)/g;
const COLOURED = 200000;

/** The parts of a text: `[kind, text]`, where kind is template, comment, tag, string or nothing. */
export function parts(text) {
  const found = [];
  let end = 0;
  let inTag = false;
  for (const match of text.matchAll(HTML_PARTS)) {
    const [whole, template, comment, tag, string, close] = match;
    if (match.index > end) found.push(["", text.slice(end, match.index)]);
    end = match.index + whole.length;
    if (template) found.push(["template", whole]);
    else if (comment) found.push(["comment", whole]);
    else if (tag) {
      inTag = true;
      found.push(["tag", whole]);
    } else if (string) found.push([inTag ? "string" : "", whole]);
    else if (close) {
      found.push([inTag ? "tag" : "", whole]);
      inTag = false;
    }
  }
  if (end < text.length) found.push(["", text.slice(end)]);
  return found;
}

/**
 * `value`, `onInput(text)`, `label`. `variables` are names that Ctrl-Space offers inside of `{{ }}`. `faults` are
 * `[{ line, message }]`, shown below and marked at their line.
 */
export function Editor({ value = "", onInput, label, variables = [], faults = [], rows = 20, help, invalid }) {
  const area = useRef();
  const layer = useRef();
  const numbers = useRef();
  const id = useId();
  const [offered, setOffered] = useState(null);
  const coloured = useMemo(() => (value.length > COLOURED ? [["", value]] : parts(value)), [value]);
  const lines = value.split("\n").length;
  const wrong = new Set(faults.map(({ line }) => line));

  const scroll = () => {
    layer.current.scrollTop = area.current.scrollTop;
    layer.current.scrollLeft = area.current.scrollLeft;
    numbers.current.scrollTop = area.current.scrollTop;
  };
  const insert = (name) => {
    const { selectionStart: at, value: text } = area.current;
    const before = text.slice(0, at);
    const begun = /[\w.]*$/.exec(before)[0];
    const open = before.lastIndexOf("{{") > before.lastIndexOf("}}");
    const piece = open ? name : `{{ ${name} }}`;
    area.current.setRangeText(piece, at - (open ? begun.length : 0), at, "end");
    onInput(area.current.value);
    setOffered(null);
    area.current.focus();
  };
  const offer = () => {
    const begun = /[\w.]*$/.exec(area.current.value.slice(0, area.current.selectionStart))[0];
    const fitting = variables.filter((name) => name.startsWith(begun));
    setOffered({ at: 0, names: (fitting.length ? fitting : variables).slice(0, 12) });
  };
  const onKeyDown = (event) => {
    if (event.key === " " && event.ctrlKey && variables.length) {
      event.preventDefault();
      offer();
    } else if (offered) {
      const { at, names } = offered;
      if (event.key === "Escape") setOffered(null);
      else if (event.key === "ArrowDown") setOffered({ names, at: (at + 1) % names.length });
      else if (event.key === "ArrowUp") setOffered({ names, at: (at + names.length - 1) % names.length });
      else if (event.key === "Enter" || event.key === "Tab") insert(names[at]);
      else {
        setOffered(null);
        return;
      }
      event.preventDefault();
    }
  };
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <div class="editor" style=${{ "--rows": rows }}>
      <pre class="editor-lines" aria-hidden="true" ref=${numbers}>${Array.from({ length: lines }, (_, nth) => html`<span class=${wrong.has(nth + 1) ? "wrong" : ""}>${`${nth + 1}\n`}</span>`)}</pre>
      <div class="editor-body">
        <pre class="editor-layer" aria-hidden="true" ref=${layer}>${coloured.map(([kind, text]) => (kind ? html`<span class="code-${kind}">${text}</span>` : text))}${"\n"}</pre>
        <textarea ref=${area} id=${id} class="editor-text" spellcheck=${false} autocapitalize="off" wrap="off" value=${value}
          aria-describedby="${id}-help" aria-invalid=${invalid || faults.length ? "true" : undefined}
          onInput=${(event) => { setOffered(null); onInput(event.target.value); }} onScroll=${scroll} onKeyDown=${onKeyDown}
          onBlur=${() => setTimeout(() => setOffered(null), 200)}></textarea>
      </div>
    </div>
    ${offered && html`<ul class="offered" role="listbox" aria-label=${t("Variables")}>${offered.names.map((name, nth) => html`
      <li role="option" aria-selected=${nth === offered.at} onMouseDown=${(event) => { event.preventDefault(); insert(name); }}>${name}</li>`)}</ul>`}
    <p class="help" id="${id}-help">${help ?? (variables.length ? t("Ctrl-Space offers variables.") : "")}</p>
    ${faults.length > 0 && html`<ul class="fault-text">${faults.map(({ line, message }) => html`<li>${line ? t("Line {line}: {message}", { line, message }) : message}</li>`)}</ul>`}
  </div>`;
}
