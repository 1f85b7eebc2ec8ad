// The events that a webhook may hear of: words for them, and their choice in a form.
import { html, t, useId } from "../lib/ui.js";
import { useFaults, useForm } from "../lib/form.js";

const EVENTS = [
  ["sent", "Handed to the recipient's server, or to the provider."],
  ["delivered", "Accepted there."],
  ["deferred", "Put off for a while; it is tried again."],
  ["bounce", "Refused, for good or for now."],
  ["complaint", "Called spam by the recipient."],
  ["open", "Opened."],
  ["click", "A link was clicked."],
  ["unsubscribe", "The recipient wants no more."],
  ["failed", "Not sent, because something went wrong here."],
  ["suppressed", "Not sent, because the recipient is suppressed."],
  ["cancelled", "Taken back before it was sent."],
  ["audit.recorded", "Somebody changed something in the workspace; for admins."],
  ["api_key.expiring", "An API key ends in 14 or 3 days; for admins."],
];

export const EVENT_NAMES = EVENTS.map(([name]) => name);

/** Which events, as checkboxes; all of them is `*`. */
export function EventsField() {
  const [{ events = [] }, change] = useForm();
  const faults = useFaults("events");
  const id = useId();
  const hasAll = events.includes("*");
  const toggle = (name, isOn) => change("events", isOn ? [...events, name] : events.filter((other) => other !== name));
  return html`<fieldset aria-describedby=${faults.length ? id : undefined}><legend>${t("Events")}</legend>
    <div class="field check"><label><input type="checkbox" checked=${hasAll} onChange=${(event) => change("events", event.target.checked ? ["*"] : [])} />
      <span>${t("All, also those that come later")}</span></label></div>
    ${!hasAll && html`<div class="row-of-fields">${EVENTS.map(([name, text]) => html`<div key=${name} class="field check">
      <label><input type="checkbox" name="events" value=${name} checked=${events.includes(name)} onChange=${(event) => toggle(name, event.target.checked)} /> <span>${t(name)}</span></label>
      <p class="help">${t(text)}</p></div>`)}</div>`}
    ${faults.length > 0 && html`<p class="fault-text" id=${id}>${t("Choose at least one event.")}</p>`}
  </fieldset>`;
}

/** The events of a webhook as tags. */
export function EventTags({ events }) {
  if (events.includes("*")) return t("all");
  return html`<span class="cell">${events.map((name) => html`<span key=${name} class="tag">${t(name)}</span>`)}</span>`;
}
