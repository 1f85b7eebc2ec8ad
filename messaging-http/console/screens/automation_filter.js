// Conditions inside of automations: a filter as rows, and the conditions on the properties of an event.
import { useFaults, useForm } from "../lib/form.js";
import { FilterEditor } from "../lib/filter_editor.js";
import { dialog, html, t, useState } from "../lib/ui.js";

const read = (values, name) => name.split(".").reduce((found, part) => found?.[part], values);

const isEmpty = (filter) => !filter || !Object.keys(filter).length;

/** A filter at `name`; `begin` is the condition with which a new one begins, `add` the text of the button for it. */
export function FilterField({ name, label, help, add, begin = { type: "attribute", key: "", op: "eq", value: "" } }) {
  const [values, change] = useForm();
  const faults = useFaults(name);
  const value = read(values, name);
  const set = (filter) => change(name, isEmpty(filter) ? undefined : filter);
  return html`<div class="form" role="group" aria-label=${label}>
    <div><p><strong>${label}</strong></p>${help && html`<p class="help">${help}</p>`}</div>
    ${isEmpty(value)
      ? html`<div><button type="button" class="small" onClick=${() => set({ and: [begin] })}>${add ?? t("Add condition")}</button></div>`
      : html`<${FilterEditor} value=${value} onChange=${set} isAutomation />
          <div class="actions"><button type="button" class="small" onClick=${() => editJson(label, value).then((next) => next && set(next))}>${t("Edit as JSON")}</button>
            <button type="button" class="small" onClick=${() => set(undefined)}>${t("Remove all conditions")}</button></div>`}
    ${faults.length > 0 && html`<p class="fault-text">${faults.map(({ message }) => message).join(" ")}</p>`}
  </div>`;
}

// Some things only JSON says, for instance that a value comes from the event (`value_from`).
function editJson(label, value) {
  return dialog((close) => html`<${Json} value=${value} close=${close} />`, { title: label, wide: true });
}

function Json({ value, close }) {
  const [text, setText] = useState(JSON.stringify(value, null, 2));
  const [fault, setFault] = useState(null);
  const run = (event) => {
    event.preventDefault();
    try {
      close(JSON.parse(text));
    } catch (error) {
      setFault(t("Not JSON yet: {message}", { message: error.message }));
    }
  };
  return html`<form onSubmit=${run}><textarea class="mono" rows="14" spellcheck=${false} aria-label=${t("Condition as JSON")} aria-invalid=${fault ? "true" : undefined}
      value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
    ${fault && html`<p class="fault-text" role="alert">${fault}</p>`}
    <div class="actions"><button type="submit" class="primary">${t("Take over")}</button><button type="button" onClick=${() => close()}>${t("Cancel")}</button></div></form>`;
}

const OPERATORS = [["eq", "is"], ["neq", "is not"], ["gt", "is over"], ["gte", "is at least"], ["lt", "is under"], ["lte", "is at most"], ["contains", "contains"], ["starts_with", "starts with"], ["exists", "is there"], ["not_exists", "is not there"]];

// Numbers and truth are compared by their kind, so what reads as one is one.
function valueOf(text) {
  if (/^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  return { true: true, false: false }[text] ?? text;
}

/** Conditions on the properties of an event, all of which must hold. */
export function WhereField({ name }) {
  const [values, change] = useForm();
  const rows = read(values, name) ?? [];
  const set = (next) => change(name, next.length ? next : undefined);
  const edit = (at, members) => set(rows.map((row, nth) => (nth === at ? { ...row, ...members } : row)));
  return html`<fieldset><legend>${t("Only if")}</legend>
    ${rows.map((row, at) => html`<div class="actions" key=${at}>
      <input aria-label=${t("Property {number}", { number: at + 1 })} placeholder="total" value=${row.property} onInput=${(event) => edit(at, { property: event.target.value })} />
      <select aria-label=${t("Comparison {number}", { number: at + 1 })} value=${row.op} onChange=${(event) => edit(at, { op: event.target.value, value: event.target.value.includes("exists") ? undefined : row.value })}>
        ${OPERATORS.some(([op]) => op === row.op) ? null : html`<option value=${row.op} selected>${row.op}</option>`}
        ${OPERATORS.map(([op, text]) => html`<option value=${op} selected=${op === row.op}>${t(text)}</option>`)}</select>
      ${!row.op.includes("exists") && (row.value_from !== undefined
        ? html`<code>${row.value_from}</code>`
        : html`<input aria-label=${t("Value {number}", { number: at + 1 })} value=${typeof row.value === "string" || row.value === undefined ? row.value ?? "" : JSON.stringify(row.value)} onChange=${(event) => edit(at, { value: valueOf(event.target.value.trim()) })} />`)}
      <button type="button" class="small" onClick=${() => set(rows.filter((_, nth) => nth !== at))}>${t("Remove")}<span class="sr"> ${t("condition {number}", { number: at + 1 })}</span></button></div>`)}
    <div><button type="button" class="small" onClick=${() => set([...rows, { property: "", op: "eq", value: "" }])}>${t("Add a condition on its properties")}</button></div>
  </fieldset>`;
}
