// Values that a text can show: fields of the contact, properties of an event, names of the workspace; each with words for
// when there is none.
import { allowed } from "../lib/api.js";
import { html, t, useCall, useEffect, useId, useRef, useState } from "../lib/ui.js";

const KNOWN = [
  ["contact.attributes.first_name", "First name"], ["contact.email", "Email of the contact"], ["contact.phone", "Phone of the contact"],
  ["contact.external_id", "External id"], ["contact.locale", "Language of the contact"], ["workspace.name", "Name of the workspace"],
  ["campaign.name", "Name of the campaign"], ["unsubscribe_url", "Link to unsubscribe"],
  ["preferences_url", "Link to the preferences"], ["archive_url", "Link to read it in the browser"],
];

/** A tag of the template for a path, with words for when it has no value. */
export function expressionOf(path, fallback) {
  const words = fallback.trim();
  return words ? `{{ ${path} | default("${words.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}") }}` : `{{ ${path} }}`;
}

// A path of names; what else is typed cannot stand in a tag.
const clean = (name) => name.trim().replace(/[^\w.]+/g, "_").replace(/^[.\d]+|\.+$/g, "");

/** `onChoose(tag)` hears what was put together. */
export function ValuePicker({ onChoose, onClose }) {
  const id = useId();
  const first = useRef();
  const found = useCall(allowed("listCustomFields") && "listCustomFields", { query: { limit: 200 } }, { quiet: true });
  const [path, setPath] = useState(KNOWN[0][0]);
  const [own, setOwn] = useState("");
  const [fallback, setFallback] = useState("");
  useEffect(() => first.current.focus(), []);
  const fields = (found.data?.data ?? []).filter(({ key }) => /^\w+$/.test(key) && key !== "first_name")
    .map(({ key, label }) => [`contact.attributes.${key}`, label || key]);
  const isOwn = path === "event." || path === "";
  const whole = isOwn ? clean(own) && `${path}${clean(own)}` : path;
  const take = () => whole && onChoose(expressionOf(whole, fallback));
  const onKeyDown = (event) => {
    if (event.key === "Enter" && event.target.localName === "input") take();
    else if (event.key === "Escape") onClose();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div class="rich-form" role="group" aria-label=${t("Insert a value")} onKeyDown=${onKeyDown}>
    <label for="${id}-value">${t("Value")}</label>
    <select id="${id}-value" ref=${first} value=${path} onChange=${(event) => setPath(event.target.value)}>
      <optgroup label=${t("Contact and workspace")}>${KNOWN.map(([value, text]) => html`<option value=${value} selected=${value === path}>${t(text)}</option>`)}</optgroup>
      ${fields.length > 0 && html`<optgroup label=${t("Fields of contacts")}>${fields.map(([value, text]) => html`<option value=${value} selected=${value === path}>${text}</option>`)}</optgroup>`}
      <optgroup label=${t("Other")}>
        <option value="event." selected=${path === "event."}>${t("Property of the event")}</option>
        <option value="" selected=${path === ""}>${t("Variable of the request")}</option></optgroup>
    </select>
    ${isOwn && html`<label for="${id}-own">${path ? t("Name of the property") : t("Name of the variable")}</label>
      <input id="${id}-own" class="mono" value=${own} placeholder=${path ? "cart_id" : "order.id"} autocomplete="off" onInput=${(event) => setOwn(event.target.value)} />`}
    <label for="${id}-else">${t("Words for when there is no value")} <span class="muted">${t("optional")}</span></label>
    <input id="${id}-else" value=${fallback} dir="auto" placeholder=${t("there")} autocomplete="off" onInput=${(event) => setFallback(event.target.value)} />
    <p class="help">${t("Inserts")} <code>${whole ? expressionOf(whole, fallback) : "…"}</code></p>
    <div class="actions"><button type="button" class="small primary" disabled=${!whole} onClick=${take}>${t("Insert")}</button>
      <button type="button" class="small" onClick=${onClose}>${t("Cancel")}</button></div>
  </div>`;
}
