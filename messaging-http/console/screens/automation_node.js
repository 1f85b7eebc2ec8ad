// The settings of a step, by its kind. What is missing or wrong the server says; see `checks` of the automation.
import { Field, Fields, useFaults, useForm } from "../lib/form.js";
import { href, useRoute } from "../lib/route.js";
import { html, t } from "../lib/ui.js";
import { MESSAGE_EVENTS, weekday } from "../lib/automation.js";
import { FilterField, WhereField } from "./automation_filter.js";

const TEXT = { type: "string" };
const NEEDED = { type: "string", required: true };

// Which settings a kind must have; others are marked optional.
const SCHEMA = {
  name: TEXT,
  "config.template_id": NEEDED, "config.list_id": NEEDED, "config.tag": NEEDED, "config.url": NEEDED, "config.filter": NEEDED,
  "config.channel": TEXT, "config.from_email": TEXT, "config.from_name": TEXT, "config.reply_to": TEXT, "config.subject_override": TEXT,
  "config.reason": TEXT, "config.until.weekdays": TEXT, "config.locale": TEXT, "config.timezone": TEXT, "config.body": TEXT, "config.headers": TEXT,
  "config.attributes": TEXT, "config.tags_add": TEXT, "config.tags_remove": TEXT, "config.variables": TEXT,
};

const UNITS = ["seconds", "minutes", "hours", "days", "weeks", "months"];

// What the server takes for a setting that is left out, so that no choice looks empty.
const DEFAULTS = { send: { category: "marketing" }, webhook: { method: "POST" } };

/** The controls of a step: `onChange(node, { without })` hears the changed node. `lists` are those of `useNames`. */
export function NodeForm({ node, onChange, errors, lists }) {
  const Kind = FORMS[node.kind];
  return html`<div class="form"><${Fields} values=${{ ...node, config: { ...DEFAULTS[node.kind], ...node.config } }} onChange=${(next) => onChange(next)} schema=${SCHEMA} errors=${errors}>
    ${Kind && html`<${Kind} lists=${lists} node=${node} onChange=${onChange} errors=${errors} />`}
    <${Field} name="name" label=${t("Note")} help=${t("Shown beside the step, for you and your colleagues.")} />
  </${Fields}></div>`;
}

/** A choice among things of the workspace; an id that is not among them stays. `from` is the screen where they are made. */
export function Choice({ name, label, rows, help, optional, from }) {
  const [values] = useForm();
  const { segments } = useRoute();
  const value = name.split(".").reduce((found, part) => found?.[part], values);
  const options = (rows ?? []).map((row) => [row.id, row.name]);
  if (value && !options.some(([id]) => id === value)) options.push([value, value]);
  return html`<${Field} name=${name} label=${label} kind="select" options=${options} optional=${optional}
    help=${from && rows ? html`${rows.length ? help : t("There is none yet.")} <a href=${href(from, { new: from === "templates" ? "gallery" : 1, for: segments.join("/") })}>${t("Create one")}</a> ${t("and come back: what you changed here is kept.")}` : help} />`;
}

/** A length of time: a number with its unit. */
export function Duration({ name, label }) {
  return html`<div class="row-of-fields">
    <${Field} name="${name}.value" label=${label} kind="number" min="1" />
    <${Field} name="${name}.unit" label=${t("Unit")} kind="select" options=${UNITS.map((unit) => [unit, t(unit)])} /></div>`;
}

const FORMS = {
  send: Send, wait: Wait, wait_event: WaitEvent, split: Split, update_contact: UpdateContact, webhook: Webhook,
  condition: () => html`<${FilterField} name="config.filter" label=${t("The contact fits if")} />`,
  add_to_list: ({ lists }) => html`<${Choice} name="config.list_id" label=${t("List")} rows=${lists.lists} from="lists" />`,
  remove_from_list: ({ lists }) => html`<${Choice} name="config.list_id" label=${t("List")} rows=${lists.lists} from="lists" />`,
  add_tag: () => html`<${Field} name="config.tag" label=${t("Tag")} />`,
  remove_tag: () => html`<${Field} name="config.tag" label=${t("Tag")} />`,
  exit: () => html`<${Field} name="config.reason" label=${t("Reason")} help=${t("Stands in the run, for instance bought.")} />`,
};

const CATEGORIES = [["marketing", "Marketing: only with consent, with an unsubscribe link"], ["transactional", "Transactional: the contact asked for it"]];

function Send({ lists, node }) {
  const [values, change] = useForm();
  const { quiet_hours: quiet, frequency_cap: cap } = node.config ?? {};
  const set = (name, on, initial) => change("config", { ...values.config, [name]: on ? initial : undefined });
  return html`
    <${Choice} name="config.template_id" label=${t("Template")} rows=${lists.templates} from="templates" />
    <${Field} name="config.category" label=${t("Category")} kind="select" options=${CATEGORIES.map(([id, text]) => [id, t(text)])} />
    <details open=${Boolean(node.config?.from_email || node.config?.subject_override || node.config?.channel)}><summary>${t("Sender, subject, channel")}</summary><div class="form">
      <div class="row-of-fields"><${Field} name="config.from_name" label=${t("From name")} /><${Field} name="config.from_email" label=${t("From email")} kind="email" /></div>
      <div class="row-of-fields"><${Field} name="config.reply_to" label=${t("Reply to")} kind="email" />
      <${Field} name="config.channel" label=${t("Channel")} kind="select" optional options=${["email", "sms", "push", "telegram", "whatsapp", "viber"].map((one) => [one, one])} help=${t("That of the template, if left out.")} /></div>
      <${Field} name="config.subject_override" label=${t("Subject")} help=${t("In place of the template's.")} />
      <${Field} name="config.variables" label=${t("Variables")} kind="json" help=${t("More values for the template, as JSON.")} /></div></details>
    <details open=${Boolean(quiet || cap)}><summary>${t("Quiet hours, frequency cap")}</summary><div class="form">
      <${Switch} label=${t("Not at night")} on=${quiet} onChange=${(on) => set("quiet_hours", on, { start: "22:00", end: "08:00" })} />
      ${quiet && html`<div class="row-of-fields"><${Field} name="config.quiet_hours.start" label=${t("From")} kind="time" /><${Field} name="config.quiet_hours.end" label=${t("Until")} kind="time" /></div>`}
      <${Switch} label=${t("Not too many messages to one contact")} on=${cap} onChange=${(on) => set("frequency_cap", on, { per_week: 3 })} />
      ${cap && html`<div class="row-of-fields"><${Field} name="config.frequency_cap.per_day" label=${t("At most a day")} kind="number" min="1" /><${Field} name="config.frequency_cap.per_week" label=${t("At most a week")} kind="number" min="1" />
        <${Field} name="config.frequency_cap.when_reached" label=${t("When reached")} kind="select" options=${[["suppress", t("do not send it")], ["defer", t("send it later")]]} optional />
        ${cap.when_reached === "defer" && html`<${Field} name="config.frequency_cap.defer_hours" label=${t("At most so many hours later")} kind="number" min="1" max="168" placeholder="24" />`}</div>`}
    </div></details>`;
}

/** A checkbox that puts settings there or takes them away. */
function Switch({ label, on, onChange }) {
  return html`<div class="field check"><label><input type="checkbox" checked=${Boolean(on)} onChange=${(event) => onChange(event.target.checked)} /> <span>${label}</span></label></div>`;
}

const WAITS = [["duration", "For a time"], ["until", "Until a time of day"], ["until_attribute", "Until a date of the contact"]];

function Wait({ node }) {
  const [values, change] = useForm();
  const form = WAITS.map(([id]) => id).find((id) => node.config?.[id]) ?? "duration";
  const initial = { duration: { value: 1, unit: "days" }, until: { time: "09:00", timezone: "contact" }, until_attribute: { key: "", direction: "before" } };
  const days = node.config?.until?.weekdays ?? [];
  const setDay = (day, on) => change("config.until.weekdays", on ? [...days, day].sort() : days.filter((other) => other !== day));
  return html`
    <label class="field"><strong>${t("Wait")}</strong><select name="form" value=${form} onChange=${(event) => change("config", { [event.target.value]: initial[event.target.value] })}>
      ${WAITS.map(([id, text]) => html`<option value=${id} selected=${id === form}>${t(text)}</option>`)}</select></label>
    ${form === "duration" && html`<${Duration} name="config.duration" label=${t("How long")} />`}
    ${form === "until" && html`<div class="row-of-fields"><${Field} name="config.until.time" label=${t("Time of day")} kind="time" />
      <${Field} name="config.until.timezone" label=${t("Time zone")} placeholder="contact" help=${t("contact for the contact's own, or a name like Europe/Berlin.")} /></div>
      <fieldset><legend>${t("Only on these days")}</legend><div class="actions">${[1, 2, 3, 4, 5, 6, 7].map((day) => html`<div class="field check"><label>
        <input type="checkbox" checked=${days.includes(day)} onChange=${(event) => setDay(day, event.target.checked)} /> ${weekday(day)}</label></div>`)}</div>
        <p class="help">${t("None ticked: on any day.")}</p></fieldset>`}
    ${form === "until_attribute" && html`<${Field} name="config.until_attribute.key" label=${t("Attribute")} help=${t("One that holds a date, for instance trial_ends_at. Without a date, or with one that has passed, the run goes on at once.")} />
      <${Duration} name="config.until_attribute.offset" label=${t("Time apart, if any")} />
      <${Field} name="config.until_attribute.direction" label=${t("Before or after the date")} kind="select" options=${[["before", t("before")], ["after", t("after")]]} />`}`;
}

/** An event or something that happens to a message, at `name`. */
function Happening({ name, value, lists }) {
  const [, change] = useForm();
  const isMessage = value?.type === "message";
  return html`
    <label class="field"><strong>${t("What")}</strong><select name="what" value=${isMessage ? "message" : "event"}
        onChange=${(event) => change(name, event.target.value === "message" ? { type: "message", event: "open" } : { type: "event", name: "" })}>
      <option value="event" selected=${!isMessage}>${t("A product event")}</option><option value="message" selected=${isMessage}>${t("Something happens to a message")}</option></select></label>
    ${isMessage
      ? html`<div class="row-of-fields"><${Field} name="${name}.event" label=${t("The message")} kind="select" options=${MESSAGE_EVENTS.map(([id, text]) => [id, t(text)])} />
          <${Choice} name="${name}.template_id" label=${t("Of the template")} rows=${lists.templates} optional help=${t("Any, if left out.")} /></div>
          ${value.event === "click" && html`<${Field} name="${name}.url_contains" label=${t("Only links that contain")} />`}`
      : html`<${Field} name="${name}.name" label=${t("Event")} help=${t("The name under which your program sends it, for instance order_placed.")} />
          <${WhereField} name="${name}.where" />`}`;
}

function WaitEvent({ lists, node }) {
  return html`<${Happening} name="config.on" value=${node.config?.on} lists=${lists} />
    <${Duration} name="config.timeout" label=${t("At most")} />`;
}

function Split({ node, onChange, errors }) {
  useFaults("config.branches");
  const faults = errors.filter(({ pointer }) => pointer.startsWith("/config/branches"));
  const ways = node.config?.branches ?? [];
  const set = (branches, options) => onChange({ ...node, config: { ...node.config, branches } }, options);
  const change = (at, member, value) => set(ways.map((way, nth) => (nth === at ? { ...way, [member]: value } : way)));
  return html`<fieldset><legend>${t("Ways")}</legend>
    ${ways.map((way, at) => html`<div class="actions" key=${at}>
      <input aria-label=${t("Name of way {number}", { number: at + 1 })} value=${way.name} onChange=${(event) => change(at, "name", event.target.value)} />
      <input type="number" min="0" step="any" class="short" aria-label=${t("Weight of way {number}", { number: at + 1 })} value=${way.weight} onInput=${(event) => change(at, "weight", Number(event.target.value))} />
      ${ways.length > 2 && html`<button type="button" class="small" onClick=${() => set(ways.filter((_, nth) => nth !== at), { without: at })}>${t("Remove")}<span class="sr"> ${way.name}</span></button>`}
    </div>`)}
    <p class="help">${t("Name and weight: 1 and 1 are halves, 9 and 1 are 90 % and 10 %. A contact always takes the same way.")}</p>
    ${ways.length < 10 && html`<div><button type="button" class="small" onClick=${() => set([...ways, { name: String.fromCharCode(65 + ways.length), weight: 1 }])}>${t("Add a way")}</button></div>`}
    ${faults.length > 0 && html`<p class="fault-text">${faults.map(({ message }) => message).join(" ")}</p>`}
  </fieldset>`;
}

function UpdateContact() {
  return html`<${Field} name="config.attributes" label=${t("Attributes")} kind="json" help=${t("As JSON, for instance {example}. Texts may hold template values.", { example: "{\"stage\": \"trial\"}" })} />
    <div class="row-of-fields"><${Field} name="config.tags_add" label=${t("Add tags")} kind="list" help=${t("Separated by commas.")} /><${Field} name="config.tags_remove" label=${t("Remove tags")} kind="list" /></div>
    <div class="row-of-fields"><${Field} name="config.locale" label=${t("Language")} placeholder="en-US" /><${Field} name="config.timezone" label=${t("Time zone")} placeholder="Europe/Berlin" /></div>`;
}

function Webhook() {
  return html`<div class="row-of-fields"><${Field} name="config.url" label=${t("URL")} kind="url" /><${Field} name="config.method" label=${t("Method")} kind="select" options=${[["POST", "POST"], ["PUT", "PUT"]]} /></div>
    <${Field} name="config.headers" label=${t("Headers")} kind="json" help=${t("As JSON: name and value.")} />
    <${Field} name="config.body" label=${t("Body")} kind="json" help=${t("As JSON; texts may hold template values. Without one: run, automation, contact and event.")} />
    <p class="help">${t("Tried three times within 30 seconds. If all fail, the way below is taken.")}</p>`;
}

/** A new node of a kind, with settings that make sense at the start. */
export function newNode(kind, id) {
  const configs = {
    send: { category: "marketing" }, wait: { duration: { value: 1, unit: "days" } }, wait_event: { on: { type: "event", name: "" }, timeout: { value: 1, unit: "days" } },
    split: { branches: [{ name: "A", weight: 1 }, { name: "B", weight: 1 }] }, webhook: { method: "POST" },
  };
  return { id, kind, config: configs[kind] ?? {} };
}

