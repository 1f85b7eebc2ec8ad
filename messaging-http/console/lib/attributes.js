// Attributes of contacts as controls of a form: those declared as custom fields by their type, others by what is in them.
import { html, t, useState } from "./ui.js";
import { Field, useForm } from "./form.js";

const KINDS = [["string", "Text"], ["number", "Number"], ["boolean", "Yes or no"], ["date", "Date"], ["string_array", "List of texts"], ["json", "JSON"]];

/** The kind of control for a value of no declared field. */
function kindOf(value) {
  if (typeof value === "number") return "number";
  if (typeof value === "boolean") return "boolean";
  if (Array.isArray(value)) return value.every((item) => typeof item === "string") ? "string_array" : "json";
  return value !== null && typeof value === "object" ? "json" : "string";
}

/** The kinds of all attributes that a form shows: `{ key: kind }`. */
export function kindsOf(attributes, fields) {
  const declared = fields.map(({ key, type }) => [key, type]);
  const others = Object.entries(attributes).map(([key, value]) => [key, kindOf(value)]);
  return Object.fromEntries([...others, ...declared]);
}

/** Attributes as values of a form. */
export function toForm(attributes, kinds) {
  const pairs = Object.entries(attributes).map(([key, value]) => [key, kinds[key] === "boolean" && value !== null ? String(value) : value]);
  return Object.fromEntries(pairs);
}

/** Values of a form as attributes: what was emptied is null when it was there before, and left out otherwise. */
export function fromForm(values, kinds, before = {}) {
  const found = {};
  for (const [key, value] of Object.entries(values)) {
    const isEmpty = value === "" || value === undefined || value === null;
    if (isEmpty && before[key] !== undefined && before[key] !== null) found[key] = null;
    if (isEmpty) continue;
    found[key] = kinds[key] === "boolean" ? value === "true" : value;
  }
  return found;
}

/** A value of an attribute, for reading. */
export function shown(value) {
  if (value === true) return t("Yes");
  if (value === false) return t("No");
  if (Array.isArray(value) && value.every((item) => item === null || typeof item !== "object")) return value.join(", ");
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value ?? "–");
}

/** The control of one attribute. */
function AttributeField({ name, label, kind }) {
  const place = `attributes.${name}`;
  switch (kind) {
    case "boolean":
      return html`<${Field} name=${place} label=${label} kind="select" optional options=${[["true", t("Yes")], ["false", t("No")]]} />`;
    case "string_array":
      return html`<${Field} name=${place} label=${label} kind="list" rows=${1} help=${t("Separated by commas")} />`;
    case "number": case "date": case "datetime": case "json":
      return html`<${Field} name=${place} label=${label} kind=${kind} />`;
    default:
      return html`<${Field} name=${place} label=${label} dir="auto" />`;
  }
}

/** All attributes, and a row that adds one of another key. `kinds` is changed by `onKind(key, kind)`. */
export function AttributeFields({ kinds, fields, onKind }) {
  const labels = Object.fromEntries(fields.map(({ key, label }) => [key, label]));
  const keys = Object.keys(kinds);
  return html`<fieldset><legend>${t("Attributes")}</legend>
    ${keys.length > 0 && html`<div class="row-of-fields">${keys.map((key) => html`<${AttributeField} key=${key} name=${key} label=${labels[key] || key} kind=${kinds[key]} />`)}</div>`}
    <${AddAttribute} onAdd=${onKind} taken=${keys} /></fieldset>`;
}

function AddAttribute({ onAdd, taken }) {
  const [key, setKey] = useState("");
  const [kind, setKind] = useState("string");
  const [, change] = useForm();
  // Dots and spaces cannot stand in a key.
  const clean = key.trim().replace(/[^A-Za-z0-9_-]+/g, "_");
  const add = () => {
    if (!clean || taken.includes(clean)) return;
    onAdd(clean, kind);
    change(`attributes.${clean}`, undefined);
    setKey("");
  };
  return html`<div class="actions">
    <input aria-label=${t("Name of a new attribute")} placeholder=${t("Another attribute")} value=${key} onInput=${(event) => setKey(event.target.value)}
      onKeyDown=${(event) => { if (event.key === "Enter") { event.preventDefault(); add(); } }} />
    <select aria-label=${t("Type of the new attribute")} value=${kind} onChange=${(event) => setKind(event.target.value)}>
      ${KINDS.map(([value, text]) => html`<option value=${value} selected=${value === kind}>${t(text)}</option>`)}</select>
    <button type="button" onClick=${add} disabled=${!clean || taken.includes(clean)}>${t("Add")}</button>
    ${taken.includes(clean) && html`<span class="muted">${t("{key} is there already.", { key: clean })}</span>`}
  </div>`;
}
