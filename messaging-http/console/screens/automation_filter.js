// Conditions inside of automations: a filter as the API writes it with what it means below, and the conditions on the
// properties of an event as rows.
import { Field, useForm } from "../lib/form.js";
import { html, t } from "../lib/ui.js";
import { filterText } from "../lib/automation.js";

const read = (values, name) => name.split(".").reduce((found, part) => found?.[part], values);

const STARTS = [
  ["An attribute", { type: "attribute", key: "plan", op: "eq", value: "pro" }],
  ["A tag", { type: "tag", op: "has_any", values: ["vip"] }],
  ["An event since the start", { type: "event", name: "order_placed", within: { since_entry: true } }],
  ["A message opened since the start", { type: "message", event: "open", within: { since_entry: true } }],
];

/** A filter at `name`. */
export function FilterField({ name, label, help }) {
  const [values, change] = useForm();
  const value = read(values, name);
  return html`<div class="stack">
    ${value === undefined
      ? html`<p><strong>${label}</strong></p><div class="actions">${STARTS.map(([text, filter]) => html`<button type="button" class="small" onClick=${() => change(name, filter)}>${t(text)}</button>`)}</div>
        ${help && html`<p class="help">${help}</p>`}`
      : html`<${Field} name=${name} label=${label} kind="json" rows=${6} help=${help} /><p class="help">${t("Means: {text}", { text: filterText(value) })}</p>
        <button type="button" class="small" onClick=${() => change(name, undefined)}>${t("Remove the condition")}</button>`}
  </div>`;
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
