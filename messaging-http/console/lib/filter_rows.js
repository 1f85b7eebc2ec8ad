// The controls of each kind of condition.
import { allowed, call, workspace } from "./api.js";
import { CONTACT_FIELDS } from "./contact_fields.js";
import { CHANNELS } from "./contacts.js";
import { Choice, DateInput, Duration, NumberInput, Test, Text, Texts } from "./filter_values.js";
import { withKey } from "./filter.js";
import { html, t, useEffect, useId, useState } from "./ui.js";

const FIELDS = [...CONTACT_FIELDS, ["created_at", "Added"], ["updated_at", "Changed"]];
const EVENTS = [
  ["sent", "was sent"], ["delivered", "was delivered"], ["open", "was opened"], ["click", "was clicked"],
  ["bounce", "bounced"], ["complaint", "was reported as spam"], ["unsubscribe", "led to an unsubscribe"],
];
const COUNTS = [["gte", "at least"], ["lte", "at most"], ["eq", "exactly"]];
const said = (pairs) => pairs.map(([value, text]) => [value, t(text)]);

const FRESH = 30000;
const kept = new Map();

// Many rows ask for the same names; they are fetched once.
function listed(id) {
  const key = `${workspace()?.workspace_id} ${id}`;
  const found = kept.get(key);
  if (found && Date.now() - found.at < FRESH) return found.promise;
  const promise = call(id, { query: { limit: id.startsWith("list") ? 200 : undefined }, quiet: true }).then(({ data }) => data);
  promise.catch(() => kept.delete(key));
  kept.set(key, { at: Date.now(), promise });
  return promise;
}

function useListed(id) {
  const [rows, setRows] = useState([]);
  useEffect(() => {
    let isGone = false;
    // Without the names an id can still be seen, and a text be typed.
    if (allowed(id)) listed(id).then((found) => !isGone && setRows(found), () => {});
    return () => { isGone = true; };
  }, [id]);
  return rows;
}

// What an operation lists, as choices; an id that is not among them stays to be seen.
function useNamed(id, chosen) {
  const named = useListed(id).map((one) => [one.id, one.name]);
  return chosen && !named.some(([one]) => one === chosen) ? [...named, [chosen, chosen]] : named;
}

function without(condition, name) {
  const { [name]: _, ...rest } = condition;
  return rest;
}

/** A condition with a member that may be absent. */
const set = (condition, name, value) => (value === undefined || value === "" ? without(condition, name) : { ...condition, [name]: value });

function Attribute({ condition, onChange, fields }) {
  const id = useId();
  const typeOf = (wanted) => fields.find(({ key }) => key === wanted)?.type;
  const declared = typeOf(condition.key);
  return html`<${Text} label=${t("Attribute")} placeholder=${t("Attribute")} list=${id} value=${condition.key}
      onChange=${(key) => onChange(withKey(condition, key, declared, typeOf(key)))} />
    <datalist id=${id}>${fields.map(({ key, label }) => html`<option key=${key} value=${key}>${label}</option>`)}</datalist>
    <${Test} test=${condition} declared=${declared} onChange=${onChange} />`;
}

function ContactField({ condition, onChange }) {
  const isTime = ["created_at", "updated_at"].includes(condition.field);
  const change = (field) => onChange({ type: "contact", field, op: "exists" });
  return html`<${Choice} label=${t("Field")} value=${condition.field} options=${said(FIELDS)} onChange=${change} />
    <${Test} test=${condition} fixed=${isTime ? "date" : "string"} onChange=${onChange} />`;
}

function Tag({ condition, onChange }) {
  return html`<${Choice} label=${t("Comparison")} value=${condition.op} options=${said([["has_any", "is one of"], ["has_all", "are all of"], ["has_none", "is none of"]])}
      onChange=${(op) => onChange({ ...condition, op })} />
    <${Texts} label=${t("Tags")} value=${condition.values} onChange=${(values) => onChange({ ...condition, values })} />`;
}

function Member({ condition, onChange }) {
  const isList = condition.type === "list";
  const options = useNamed(isList ? "listLists" : "listSegments", condition.id);
  return html`<${Choice} label=${t("Comparison")} value=${condition.op} onChange=${(op) => onChange({ ...condition, op })}
      options=${said(isList ? [["member", "is on the list"], ["not_member", "is not on the list"]] : [["member", "is in"], ["not_member", "is not in"]])} />
    <${Choice} label=${isList ? t("List") : t("Segment")} value=${condition.id} empty=${t("Choose")} options=${options} onChange=${(id) => onChange({ ...condition, id })} />`;
}

function Consent({ condition, onChange }) {
  const values = [["true", t("agreed")], ["false", t("refused")], ["null", t("was not asked")]];
  return html`<${Choice} label=${t("Consent")} value=${condition.channel} options=${said([["marketing_email", "Email marketing"], ["sms", "SMS marketing"]])}
      onChange=${(channel) => onChange({ ...condition, channel })} />
    <${Choice} label=${t("Value")} value=${String(condition.value)} options=${values} onChange=${(text) => onChange({ ...condition, value: JSON.parse(text) })} />`;
}

function Suppression({ condition, onChange }) {
  return html`<${Choice} label=${t("Channel")} value=${condition.channel} options=${said(CHANNELS)} onChange=${(channel) => onChange({ ...condition, channel })} />
    <${Choice} label=${t("Value")} value=${String(condition.value)} options=${[["true", t("is suppressed")], ["false", t("is not suppressed")]]}
      onChange=${(text) => onChange({ ...condition, value: text === "true" })} />`;
}

// ---- what is counted ----

function Count({ condition, onChange }) {
  const { op = "gte", value = 1 } = condition.count ?? {};
  const change = (count) => onChange(count.op === "gte" && count.value === 1 ? without(condition, "count") : { ...condition, count });
  return html`<${Choice} label=${t("How often")} value=${op} options=${said(COUNTS)} onChange=${(next) => change({ op: next, value })} />
    <${NumberInput} label=${t("Times")} min="0" value=${value} onChange=${(number) => change({ op, value: number })} /><span>${t("times")}</span>`;
}

const WITHINS = { "": "at any time", last: "in the last", after: "after", before: "before", between: "between", since_entry: "since entry" };
const BEGUN = { last: { value: 30, unit: "days" }, after: "", before: "", between: ["", ""], since_entry: true };
const asTime = (day) => (day ? `${day}T00:00:00Z` : "");

function Within({ condition, onChange, isAutomation }) {
  const [kind = "", value] = Object.entries(condition.within ?? {})[0] ?? [];
  const change = (next) => onChange(set(condition, "within", next));
  const options = Object.entries(WITHINS).filter(([name]) => name !== "since_entry" || isAutomation || kind === name).map(([name, text]) => [name, t(text)]);
  const day = (nth) => ({ value: nth === undefined ? value : value[nth], label: t("Day") });
  return html`<${Choice} label=${t("When")} value=${kind} options=${options} onChange=${(name) => change(name ? { [name]: BEGUN[name] } : undefined)} />
    ${kind === "last" && html`<${Duration} label=${t("How long")} value=${value} onChange=${(last) => change({ last })} />`}
    ${(kind === "after" || kind === "before") && html`<${DateInput} ...${day()} onChange=${(one) => change({ [kind]: asTime(one) })} />`}
    ${kind === "between" && html`<${DateInput} ...${day(0)} onChange=${(one) => change({ between: [asTime(one), value[1]] })} /><span>${t("and")}</span>
      <${DateInput} ...${day(1)} onChange=${(one) => change({ between: [value[0], asTime(one)] })} />`}`;
}

function ProductEvent({ condition, onChange, isAutomation, readOnly }) {
  const tests = condition.where ?? [];
  const id = useId();
  const known = useListed("getAnalyticsEvents");
  const change = (where) => onChange(set(condition, "where", where.length ? where : undefined));
  return html`<${Text} label=${t("Name of the event")} placeholder=${t("Name of the event")} list=${id} value=${condition.name} onChange=${(name) => onChange({ ...condition, name })} />
    <datalist id=${id}>${known.map(({ name }) => html`<option key=${name} value=${name}></option>`)}</datalist>
    <${Count} condition=${condition} onChange=${onChange} /><${Within} condition=${condition} onChange=${onChange} isAutomation=${isAutomation} />
    ${tests.map((test, nth) => html`<div class="actions" key=${nth}><span>${t("where")}</span>
      <${Text} label=${t("Property")} placeholder=${t("Property")} value=${test.property} onChange=${(property) => change(tests.map((one, at) => (at === nth ? { ...one, property } : one)))} />
      <${Test} test=${test} onChange=${(next) => change(tests.map((one, at) => (at === nth ? next : one)))} />
      ${!readOnly && html`<button type="button" class="quiet" aria-label=${t("Remove the property")} onClick=${() => change(tests.filter((_, at) => at !== nth))}>✕</button>`}</div>`)}
    ${!readOnly && html`<button type="button" class="link" onClick=${() => change([...tests, { property: "", op: "eq", value: "" }])}>${t("Narrow by a property")}</button>`}`;
}

function Message({ condition, onChange, isAutomation }) {
  const campaigns = useNamed("listCampaigns", condition.campaign_id);
  const automations = useNamed("listAutomations", condition.automation_id);
  const templates = useNamed("listTemplates", condition.template_id);
  const choose = (name, label, options, empty) => (options.length > 0 || condition[name]) && html`<${Choice} label=${label} value=${condition[name]} empty=${empty} options=${options}
    onChange=${(value) => onChange(set(condition, name, value))} />`;
  return html`${choose("channel", t("Channel"), said(CHANNELS), t("any channel"))}
    <${Choice} label=${t("What happened")} value=${condition.event} options=${said(EVENTS)}
      onChange=${(event) => onChange({ ...(event === "click" ? condition : without(condition, "url_contains")), event })} />
    <${Count} condition=${condition} onChange=${onChange} /><${Within} condition=${condition} onChange=${onChange} isAutomation=${isAutomation} />
    ${choose("campaign_id", t("Campaign"), campaigns, t("any campaign"))}
    ${choose("automation_id", t("Automation"), automations, t("any automation"))}
    ${choose("template_id", t("Template"), templates, t("any template"))}
    ${condition.event === "click" && html`<${Text} label=${t("Link contains")} placeholder=${t("link contains")} value=${condition.url_contains} onChange=${(text) => onChange(set(condition, "url_contains", text))} />`}`;
}

const KNOWN = {
  attribute: Attribute, contact: ContactField, tag: Tag, list: Member, segment: Member, consent: Consent,
  suppression: Suppression, event: ProductEvent, message: Message,
};

/** The controls of one condition. */
export function Condition({ condition, onChange, fields, isAutomation, readOnly }) {
  const Known = KNOWN[condition.type];
  if (!Known) return html`<code>${JSON.stringify(condition)}</code>`;
  return html`<${Known} condition=${condition} onChange=${onChange} fields=${fields} isAutomation=${isAutomation} readOnly=${readOnly} />`;
}
