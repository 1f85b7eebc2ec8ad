// Several of some rows, by check boxes; with many of them, a text finds some.
import { Failed, html, Loading, number, t, useId, useState } from "./ui.js";
import { useFaults, useForm } from "./form.js";

const FEW = 8;

/**
 * `name` is the member of the form that holds the ids, dotted for a nested one; `rows` are `{ id, name, size }`, undefined
 * while they are loaded; `none` stands where there are none.
 */
export function Choices({ name, label, rows, error, none, help }) {
  const id = useId();
  const [values, change] = useForm();
  const faults = useFaults(name);
  const [text, setText] = useState("");
  const chosen = name.split(".").reduce((value, part) => value?.[part], values) ?? [];
  if (error) return html`<${Failed} error=${error} />`;
  if (!rows) return html`<${Loading} lines=${3} />`;
  if (!rows.length) return html`<div><p class="label">${label}</p><p class="muted">${none}</p></div>`;
  // What was deleted since stays visible, so that it can be taken away.
  const known = new Set(rows.map((row) => row.id));
  const all = [...rows, ...chosen.filter((one) => !known.has(one)).map((one) => ({ id: one, name: t("{id} (deleted)", { id: one }), size: null }))];
  const shown = all.filter((row) => chosen.includes(row.id) || row.name.toLowerCase().includes(text.toLowerCase()));
  const toggle = (one) => change(name, chosen.includes(one) ? chosen.filter((other) => other !== one) : [...chosen, one]);
  return html`<div class="field" role="group" aria-labelledby=${id}>
    <span class="label" id=${id}>${label}</span>
    ${all.length > FEW && html`<input type="search" value=${text} placeholder=${t("Find by name")} aria-label=${t("Find by name")} onInput=${(event) => setText(event.target.value)} />`}
    <ul class="checklist">${shown.map((row) => html`<li key=${row.id}><label>
      <input type="checkbox" checked=${chosen.includes(row.id)} onChange=${() => toggle(row.id)} />
      <span dir="auto">${row.name}</span><span class="muted numeric">${row.size === null ? "" : number(row.size)}</span></label></li>`)}</ul>
    ${help && html`<p class="help">${help}</p>`}
    ${faults.map(({ message }) => html`<p class="fault-text">${message}</p>`)}
  </div>`;
}
