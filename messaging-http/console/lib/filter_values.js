// Controls for the values of a test: texts, numbers, dates, spans of time.
import { html, t, useState } from "./ui.js";
import { emptyValue, KINDS, OPS, kindOf, withOp } from "./filter.js";

const UNITS = ["minutes", "hours", "days", "weeks", "months"];

export function Choice({ label, value, options, onChange, empty }) {
  return html`<select aria-label=${label} value=${String(value ?? "")} onChange=${(event) => onChange(event.target.value)}>
    ${empty !== undefined && html`<option value="" selected=${!value}>${empty}</option>`}
    ${options.map(([one, text]) => html`<option key=${one} value=${String(one)} selected=${String(one) === String(value)}>${text}</option>`)}</select>`;
}

export function Text({ label, value, onChange, ...rest }) {
  return html`<input aria-label=${label} dir="auto" value=${value ?? ""} autocomplete="off" onInput=${(event) => onChange(event.target.value)} ...${rest} />`;
}

export function NumberInput({ label, value, onChange, min }) {
  return html`<input type="number" class="short" aria-label=${label} value=${value ?? ""} min=${min} step="any"
    onInput=${(event) => onChange(event.target.value === "" ? null : Number(event.target.value))} />`;
}

// What is typed stays as it is; its items go into the filter.
export function Texts({ label, value, onChange }) {
  const [text, setText] = useState((value ?? []).join(", "));
  const typed = (event) => {
    setText(event.target.value);
    onChange(event.target.value.split(",").map((item) => item.trim()).filter(Boolean));
  };
  return html`<input aria-label=${label} dir="auto" value=${text} placeholder=${t("one, another")} autocomplete="off" onInput=${typed} />`;
}

export function Duration({ value = {}, onChange, label }) {
  return html`<${NumberInput} label=${label} min="1" value=${value.value} onChange=${(number) => onChange({ ...value, value: number })} />
    <${Choice} label=${t("Unit")} value=${value.unit} options=${UNITS.map((unit) => [unit, t(unit)])} onChange=${(unit) => onChange({ ...value, unit })} />`;
}

export function DateInput({ label, value, onChange }) {
  const day = typeof value === "string" ? value.slice(0, 10) : "";
  return html`<input type="date" aria-label=${label} value=${day} onInput=${(event) => onChange(event.target.value)} />`;
}

function Two({ value = [], onChange, label, of: Control }) {
  return html`<${Control} label=${`${label}, ${t("from")}`} value=${value[0]} onChange=${(one) => onChange([one, value[1]])} />
    <span>${t("and")}</span><${Control} label=${`${label}, ${t("to")}`} value=${value[1]} onChange=${(one) => onChange([value[0], one])} />`;
}

function Value({ shape, value, onChange, label }) {
  switch (shape) {
    case "text": return html`<${Text} label=${label} value=${value} onChange=${onChange} />`;
    case "texts": return html`<${Texts} label=${label} value=${value} onChange=${onChange} />`;
    case "number": return html`<${NumberInput} label=${label} value=${value} onChange=${onChange} />`;
    case "numbers": return html`<${Two} of=${NumberInput} label=${label} value=${value} onChange=${onChange} />`;
    case "boolean":
      return html`<${Choice} label=${label} value=${value} options=${[[true, t("yes")], [false, t("no")]]} onChange=${(text) => onChange(text === "true")} />`;
    case "date": return html`<${DateInput} label=${label} value=${value} onChange=${onChange} />`;
    case "dates": return html`<${Two} of=${DateInput} label=${label} value=${value} onChange=${onChange} />`;
    case "duration": return html`<${Duration} label=${label} value=${value} onChange=${onChange} />`;
    case "offset": {
      const days = value?.offset_days ?? 0;
      const change = (number, isAfter) => onChange({ offset_days: isAfter ? number : -number });
      return html`<${NumberInput} label=${t("Days")} min="0" value=${Math.abs(days)} onChange=${(number) => change(number ?? 0, days >= 0)} />
        <${Choice} label=${t("Before or after")} value=${days < 0 ? "before" : "after"} options=${[["after", t("days ago")], ["before", t("days from now")]]}
          onChange=${(word) => change(Math.abs(days), word === "after")} />`;
    }
    default: return null;
  }
}

/** Operator and value of a test; `declared` is the type of the custom field, `fixed` a kind that cannot be another. */
export function Test({ test, onChange, declared, fixed, label }) {
  const [chosen, setChosen] = useState(null);
  const kind = fixed ?? (declared ? kindOf(test, declared) : chosen ?? kindOf(test));
  const ops = OPS[kind];
  // An operator that the kind does not offer stays to be seen.
  const options = ops.some(([op]) => op === test.op) ? ops : [...ops, [test.op, test.op]];
  const shape = ops.find(([op]) => op === test.op)?.[2];
  const changeKind = (next) => {
    setChosen(next);
    const [op] = OPS[next][0];
    onChange({ ...test, op, value: emptyValue(next, op) });
  };
  return html`${!fixed && !declared && html`<${Choice} label=${t("Type")} value=${kind} options=${KINDS.map(([one, text]) => [one, t(text)])} onChange=${changeKind} />`}
    <${Choice} label=${t("Comparison")} value=${test.op} options=${options.map(([op, text]) => [op, t(text)])} onChange=${(op) => onChange(withOp(test, kind, op))} />
    ${test.value_from !== undefined
      ? html`<code>${test.value_from}</code>`
      : html`<${Value} key=${shape} shape=${shape} value=${test.value} label=${label ?? t("Value")} onChange=${(value) => onChange({ ...test, value })} />`}`;
}
