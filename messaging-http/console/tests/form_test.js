import { Field, Form, withoutEmpty } from "../lib/form.js";
import { html, render } from "../lib/ui.js";
import { drawn, equal, holds } from "./check.js";

export function empty_members_are_not_sent() {
  equal(withoutEmpty({ to: "a", subject: "", tags: [], options: { ttl: undefined, silent: false }, none: {} }), { to: "a", options: { silent: false } });
}

export function null_clears_and_is_sent() {
  equal(withoutEmpty({ subject: null, count: 0 }), { subject: null, count: 0 });
}

export async function every_control_has_its_label() {
  const kinds = ["text", "textarea", "select", "checkbox", "number", "datetime", "list", "json", "email"];
  const { place, end } = await drawn(render, html`<${Form} id="sendMessage">
    ${kinds.map((kind) => html`<${Field} name=${kind} label=${`A ${kind}`} kind=${kind} help="Help" />`)}</${Form}>`);
  for (const kind of kinds) {
    const control = place.querySelector(`[name=${kind}]`);
    holds(control?.labels?.[0]?.textContent.trim().startsWith(`A ${kind}`), `${kind} has no label`);
    holds(place.querySelector(`[id="${control.getAttribute("aria-describedby").split(" ")[0]}"]`)?.textContent.startsWith("Help"), `${kind} is not described`);
  }
  end();
}

export async function what_is_typed_is_told_by_its_dotted_name() {
  let told;
  const { place, end } = await drawn(render, html`<${Form} id="sendMessage" initial=${{ options: { silent: true } }} onChange=${(values) => { told = values; }}>
    <${Field} name="options.ttl" label="Time" kind="number" /></${Form}>`);
  const control = place.querySelector("input");
  control.value = "60";
  control.dispatchEvent(new Event("input", { bubbles: true }));
  equal(told, { options: { silent: true, ttl: 60 } });
  end();
}
