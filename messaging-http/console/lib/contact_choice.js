// Choosing a contact: the newest are offered, any other one is found by its email, external id or id.
import { allowed, call } from "./api.js";
import { html, t, useCall, useEffect, useId, useState } from "./ui.js";
import { useFaults, useForm } from "./form.js";
import { addressOf } from "./contacts.js";

/** The id of the contact that somebody wrote as email, external id or id; what names nobody stays as it is. */
export async function contactIdOf(text = "") {
  const wanted = text.trim();
  if (!wanted || wanted.startsWith("con_") || !allowed("listContacts")) return wanted || undefined;
  const query = { [wanted.includes("@") ? "email" : "external_id"]: wanted, limit: 1 };
  const page = await call("listContacts", { query, quiet: true }).catch(() => ({ data: [] }));
  return page.data[0]?.id ?? wanted;
}

function ContactInput({ label, text, onInput, onChange, faults, help }) {
  const id = useId();
  const newest = useCall(allowed("listContacts") && "listContacts", { query: { limit: 20 } }, { quiet: true });
  return html`<div class="field"><label for=${id}>${label}</label>
    <input id=${id} list="${id}-known" value=${text} placeholder=${t("Email, external id or id")} autocomplete="off" dir="auto"
      aria-describedby="${help ? `${id}-help` : ""} ${faults.length ? `${id}-fault` : ""}" aria-invalid=${faults.length ? "true" : undefined}
      onInput=${(event) => onInput(event.target.value)} onChange=${(event) => onChange?.(event.target.value)} />
    <datalist id="${id}-known">${newest.data?.data.map((contact) => html`<option value=${addressOf(contact)}></option>`)}</datalist>
    ${help && html`<p class="help" id="${id}-help">${help}</p>`}
    ${faults.length > 0 && html`<p class="fault-text" id="${id}-fault">${faults.join(" ")}</p>`}</div>`;
}

/**
 * A control of a form: what is typed stands in `name`, and `body` of the form makes an id of it by `contactIdOf`; what the
 * server says about `contact_id` is shown here.
 */
export function ContactField({ name, label, help }) {
  const [values, change] = useForm();
  const faults = [...useFaults("contact_id"), ...useFaults(name)];
  return html`<${ContactInput} label=${label} help=${help} text=${values[name] ?? ""} faults=${faults.map(({ message }) => message)}
    onInput=${(text) => change(name, text)} />`;
}

/** A filter: `id` is the chosen contact, `onChange(id)` hears another one, undefined for none. */
export function ContactFilter({ label, id, onChange }) {
  const [text, setText] = useState(id ?? "");
  useEffect(() => {
    if (!id) setText("");
  }, [id]);
  return html`<${ContactInput} label=${label} text=${text} faults=${[]} onInput=${setText}
    onChange=${async (wanted) => onChange(await contactIdOf(wanted))} />`;
}
