// What begins and ends the runs of an automation: trigger, entry condition, re-entry, goal, exit conditions.
import { Field, Fields, useFaults, useForm } from "../lib/form.js";
import { Code, html, t, useId } from "../lib/ui.js";
import { asCurl } from "../lib/show_as.js";
import { MESSAGE_EVENTS, TRIGGERS } from "../lib/automation.js";
import { Choice } from "./automation_node.js";
import { FilterField, WhereField } from "./automation_filter.js";

const RE_ENTRIES = [["never", "Never: once in a lifetime"], ["after_exit", "Again when the earlier run has ended"], ["always", "Always, also several at a time"]];

const OPTIONAL = { type: "string" };
const SCHEMA = { "trigger.config.campaign_id": OPTIONAL, "trigger.config.template_id": OPTIONAL, re_entry_key: OPTIONAL };

// What the server takes for a setting that is left out, so that no choice looks empty.
const DEFAULTS = { date: { offset_days: 0, time: "09:00", repeat: "yearly" } };

/** The start. `draft` is the automation as it is edited, `errors` those about trigger and re-entry. */
export function Start({ draft, onChange, errors, lists }) {
  const { trigger } = draft;
  const values = { ...draft, trigger: { ...trigger, ...(DEFAULTS[trigger.kind] && { config: { ...DEFAULTS[trigger.kind], ...trigger.config } }) } };
  return html`<div class="form"><${Fields} values=${values} onChange=${onChange} errors=${errors} schema=${SCHEMA}>
    <${Trigger} lists=${lists} />
    <${ReEntry} />
  </${Fields}></div>`;
}

function Trigger({ lists }) {
  const [{ trigger = {}, re_entry_key: key = "" }, change] = useForm();
  const config = trigger.config ?? {};
  const faults = useFaults("trigger.kind");
  const id = useId();
  const initial = { event: { name: "" }, date: { attribute: "", ...DEFAULTS.date }, message_event: { event: "open" } };
  return html`
    <div class="field"><label for=${id}>${t("A contact enters when")}</label><select id=${id} name="trigger.kind" aria-invalid=${faults.length ? "true" : undefined} value=${trigger.kind ?? ""}
        onChange=${(event) => change("trigger", event.target.value ? { kind: event.target.value, config: initial[event.target.value] ?? {} } : {})}>
      <option value="" selected=${!trigger.kind}>${t("Choose")}</option>
      ${TRIGGERS.map(([id, text]) => html`<option value=${id} selected=${id === trigger.kind}>${t(text)}</option>`)}</select>
      ${faults.length > 0 && html`<p class="fault-text">${trigger.kind ? faults.map(({ message }) => message).join(" ") : t("Choose what begins a run.")}</p>`}</div>
    ${trigger.kind === "event" && html`<${Field} name="trigger.config.name" label=${t("Event")} help=${t("The name under which your program sends it, for instance cart_updated.")} /><${WhereField} name="trigger.config.where" />
      <details><summary>${t("How your program sends it")}</summary><${Code} text=${asCurl({ id: "sendEvent", body: exampleOf(config.name, key) })} label=${t("curl command")} /></details>`}
    ${trigger.kind === "list_added" && html`<${Choice} name="trigger.config.list_id" label=${t("List")} rows=${lists.lists} from="lists" />`}
    ${trigger.kind?.startsWith("segment_") && html`<${Choice} name="trigger.config.segment_id" label=${t("Segment")} rows=${lists.segments} from="segments" />`}
    ${trigger.kind === "segment_enter" && html`<${Field} name="trigger.config.include_existing" label=${t("Also those who are in it when the automation is activated")} kind="checkbox" />`}
    ${trigger.kind === "date" && html`<${DateTrigger} />`}
    ${trigger.kind === "message_event" && html`<div class="row-of-fields"><${Field} name="trigger.config.event" label=${t("The message")} kind="select" options=${MESSAGE_EVENTS.map(([id, text]) => [id, t(text)])} />
      <${Choice} name="trigger.config.template_id" label=${t("Of the template")} rows=${lists.templates} optional /><${Choice} name="trigger.config.campaign_id" label=${t("Of the campaign")} rows=${lists.campaigns} optional /></div>`}
    ${trigger.kind && html`<details open=${Boolean(config.filter)}><summary>${t("Only contacts that fit a condition")}</summary>
      <${FilterField} name="trigger.config.filter" label=${t("The contact enters only if")} /></details>`}`;
}

// An event that lets a contact in, with what tells its runs apart.
function exampleOf(name, key) {
  const property = /^event\.(\w+)$/.exec(key)?.[1];
  return { name: name || "cart_updated", contact: { email: "ann@example.com" }, ...(property && { properties: { [property]: "17" } }) };
}

function DateTrigger() {
  return html`<div class="row-of-fields">
    <${Field} name="trigger.config.attribute" label=${t("Attribute")} help=${t("One that holds a date, for instance birthday.")} />
    <${Field} name="trigger.config.offset_days" label=${t("Days after it")} kind="number" min="-365" max="365" help=${t("Negative: before it.")} />
    <${Field} name="trigger.config.time" label=${t("Time of day")} kind="time" help=${t("In the contact's time zone.")} />
    <${Field} name="trigger.config.repeat" label=${t("How often")} kind="select" options=${[["yearly", t("every year")], ["once", t("once")]]} /></div>`;
}

function ReEntry() {
  const [{ trigger = {}, re_entry: rule }] = useForm();
  const isEvent = trigger.kind === "event" || trigger.kind === "manual";
  return html`<${Field} name="re_entry" label=${t("May a contact enter again?")} kind="select" options=${RE_ENTRIES.map(([id, text]) => [id, t(text)])} />
    ${isEvent && rule !== "always" && html`<${Field} name="re_entry_key" label=${t("Separately for each")} placeholder="event.cart_id" help=${t("A path in the event: each value has a run of its own, for instance one for each cart.")} />`}`;
}

const EVENT = { type: "event", name: "" };

/** Goal and exit conditions, which are looked at all the time. */
export function Ends({ graph, onChange, errors }) {
  const exits = graph.exit_conditions ?? [];
  const own = errors.map((one) => ({ ...one, pointer: one.pointer.replace(/^\/graph/, "") }));
  const set = (next) => {
    const { goal, exit_conditions: conditions } = next;
    onChange({ ...(goal && { goal }), ...(conditions?.some(Boolean) && { exit_conditions: conditions.filter(Boolean) }) });
  };
  return html`<div class="form"><${Fields} values=${{ ...graph, exit_conditions: Object.fromEntries(exits.map((one, at) => [at, one])) }} errors=${own}
      onChange=${(next) => set({ ...next, exit_conditions: Object.values(next.exit_conditions) })}>
    <${FilterField} name="goal" label=${t("Goal")} help=${t("Whoever meets it leaves as completed, wherever they are. For instance: an order.")} add=${t("Set a goal")} begin=${EVENT} />
    ${exits.map((_, at) => html`<${FilterField} key=${at} name="exit_conditions.${at}" label=${t("Exit condition {number}", { number: at + 1 })} />`)}
    <${FilterField} key=${exits.length} name="exit_conditions.${exits.length}" add=${t("Add an exit condition")} begin=${EVENT} label=${exits.length ? t("Another exit condition") : t("Exit condition")} help=${t("Whoever meets it leaves as exited.")} />
  </${Fields}></div>`;
}
