// Trying an automation out: a contact that is only thought of, or one of the workspace, goes through the steps as they
// stand on the screen. Nothing is sent and nothing changes.
import { Empty, html, t, useState } from "../lib/ui.js";
import { Field, Form, useForm } from "../lib/form.js";
import { itemsOf } from "../lib/flow.js";
import { kindName, MESSAGE_EVENTS, moment, nodeText, reasonText } from "../lib/automation.js";
import { Path } from "../lib/automation_path.js";
import { ContactField, contactIdOf } from "../lib/contact_choice.js";
import { href } from "../lib/route.js";

const MS = { minutes: 60000, hours: 3600000, days: 86400000 };
const HORIZONS = [[1, "a day"], [7, "a week"], [30, "a month"], [365, "a year"]];

export default function Try({ id, body, isDirty, faults, draft, names }) {
  const [answer, setAnswer] = useState(null);
  const nodes = itemsOf(draft.flow).map(({ node }) => node);
  const isEvent = draft.trigger.kind === "event";
  const initial = {
    who: "made", contact: { email: "ann@example.com", consent: { marketing_email: true } }, days: 30,
    events: isEvent ? [{ what: "event", name: draft.trigger.config?.name ?? "", after: 0, unit: "minutes", properties: "" }] : [],
  };
  if (!nodes.length) {
    return html`<${Empty} title=${t("No steps yet")} text=${t("Add steps first, then try out what happens to a contact.")} action=${t("Steps")} href=${href(`automations/${id}`)} />`;
  }
  return html`<div class="columns even">
    <section class="stack" aria-labelledby="try"><h2 id="try">${t("Try out")}</h2>
      <p class="muted">${isDirty ? t("With the steps as they are on the screen, not saved yet. Nothing is sent.") : t("What would happen to a contact. Nothing is sent.")}</p>
      ${faults.all.length > 0 && html`<div class="notice warning"><p>${t("The automation is not complete yet;")} <a href=${href(`automations/${id}`)}>${t("see what is missing")}</a>.</p></div>`}
      <${Form} id="simulateAutomation" path=${{ id }} initial=${initial} body=${(values) => bodyOf(values, body)} onDone=${setAnswer} submit=${t("Simulate")} done=${t("What would happen is shown")}>
        <${Contact} />
        <${Events} nodes=${nodes} names=${names} />
        <div class="row-of-fields"><${Field} name="at" label=${t("Begin at")} kind="datetime" help=${t("Now, if left out.")} />
          <${Field} name="days" label=${t("Look ahead")} kind="select" options=${HORIZONS.map(([days, text]) => [String(days), t(text)])} /></div>
      </${Form}></section>
    <section class="stack" aria-labelledby="result"><h2 id="result">${t("What happens")}</h2>
      ${answer ? html`<${Result} answer=${answer} nodes=${body.graph.nodes} names=${names} />` : html`<p class="muted">${t("The path with times and reasons appears here.")}</p>`}</section>
  </div>`;
}

const EVENT_HELP = "Things that happen to the contact meanwhile, in minutes, hours or days after the beginning.";

// The body of the call: times apart become times.
async function bodyOf({ who, contact, wanted, events, at, days }, { graph, trigger, re_entry: rule, re_entry_key: key }) {
  const start = at ? new Date(at) : new Date();
  const time = ({ after, unit }) => new Date(start.getTime() + (after || 0) * MS[unit]).toISOString();
  const { email, attributes, tags, consent, timezone } = contact;
  const made = { external_id: "try", email: email || undefined, attributes, tags, timezone: timezone || undefined, consent: { marketing_email: consent?.marketing_email ? true : null } };
  return {
    graph, trigger, re_entry: rule, re_entry_key: key,
    ...(who === "made" ? { contact: made } : { contact_id: await contactIdOf(wanted) }),
    events: events.map((one) => (one.what === "event"
      ? { name: one.name, occurred_at: time(one), ...(one.properties?.trim() && { properties: parsed(one.properties) }) }
      : { message: one.what, node_id: one.node_id, at: time(one) })),
    at: start.toISOString(),
    until: new Date(start.getTime() + Number(days) * MS.days).toISOString(),
  };
}

// What is no JSON goes as it is, so that the server says what is wrong with it.
function parsed(text) {
  try { return JSON.parse(text); } catch { return text; }
}

function Contact() {
  const [{ who }, change] = useForm();
  return html`<fieldset><legend>${t("Contact")}</legend>
    <div class="actions">${[["made", "Made up"], ["real", "One of the workspace"]].map(([id, text]) => html`<div class="field check" key=${id}><label>
      <input type="radio" name="who" value=${id} checked=${who === id} onChange=${() => change("who", id)} /> ${t(text)}</label></div>`)}</div>
    ${who === "real"
      ? html`<${ContactField} name="wanted" label=${t("Contact")} />`
      : html`<div class="row-of-fields"><${Field} name="contact.email" label=${t("Email")} kind="email" /><${Field} name="contact.timezone" label=${t("Time zone")} placeholder="Europe/Berlin" /></div>
          <${Field} name="contact.consent.marketing_email" label=${t("Agreed to marketing by email")} kind="checkbox" />
          <${Field} name="contact.tags" label=${t("Tags")} kind="list" help=${t("Separated by commas.")} />
          <${Field} name="contact.attributes" label=${t("Attributes")} kind="json" rows=${3} help=${t("As JSON, for instance {example}.", { example: "{\"plan\": \"pro\"}" })} />`}
  </fieldset>`;
}

function Events({ nodes, names }) {
  const [{ events }, change] = useForm();
  const sends = nodes.filter(({ kind }) => kind === "send");
  const set = (at, members) => change("events", events.map((one, nth) => (nth === at ? { ...one, ...members } : one)));
  const add = () => change("events", [...events, { what: "event", name: "", after: 1, unit: "hours", properties: "" }]);
  const choose = (at, what) => set(at, what === "event" ? { what, node_id: undefined } : { what, node_id: events[at].node_id ?? sends[0]?.id });
  return html`<fieldset><legend>${t("Events")}</legend><p class="help">${t(EVENT_HELP)}</p>
    ${events.map((one, at) => {
      const nth = { number: at + 1 };
      return html`<div class="card" key=${at}><div class="row-of-fields">
        <label class="field"><span>${t("What")}</span><select value=${one.what} onChange=${(event) => choose(at, event.target.value)}>
          <option value="event" selected=${one.what === "event"}>${t("a product event")}</option>
          ${sends.length > 0 && MESSAGE_EVENTS.map(([id, text]) => html`<option value=${id} selected=${id === one.what}>${t("a message {what}", { what: t(text) })}</option>`)}</select></label>
        ${one.what === "event"
          ? html`<label class="field"><span>${t("Event")}</span><input value=${one.name} onInput=${(event) => set(at, { name: event.target.value })} /></label>`
          : html`<label class="field"><span>${t("Message of")}</span><select value=${one.node_id} onChange=${(event) => set(at, { node_id: event.target.value })}>
              ${sends.map((node) => html`<option value=${node.id} selected=${node.id === one.node_id}>${kindName(node.kind)} ${nodeText(node, names)}</option>`)}</select></label>`}</div>
        <div class="actions"><label><span>${t("After")}</span> <input type="number" min="0" class="short" value=${one.after} onInput=${(event) => set(at, { after: Number(event.target.value) })} /></label>
          <select aria-label=${t("Unit of event {number}", nth)} value=${one.unit} onChange=${(event) => set(at, { unit: event.target.value })}>${Object.keys(MS).map((unit) => html`<option value=${unit} selected=${unit === one.unit}>${t(unit)}</option>`)}</select>
          <button type="button" class="small" onClick=${() => change("events", events.filter((_, other) => other !== at))}>${t("Remove")}<span class="sr"> ${t("event {number}", nth)}</span></button></div>
        ${one.what === "event" && html`<label class="field"><span>${t("Its properties, as JSON")} <span class="muted">${t("optional")}</span></span><input class="mono" value=${one.properties} placeholder=${'{"cart_id": "17"}'} onInput=${(event) => set(at, { properties: event.target.value })} /></label>`}
      </div>`;
    })}
    <div><button type="button" class="small" onClick=${add}>${t("Add an event")}</button></div></fieldset>`;
}

function Result({ answer: { steps, ended }, nodes, names }) {
  if (!steps.length) return html`<div class="notice warning"><p>${t("The contact does not enter: the trigger did not happen, or its condition was not met.")}</p></div>`;
  const runs = [...new Set(steps.map(({ run }) => run))];
  return html`${runs.map((run) => html`<div class="stack" key=${run}>${runs.length > 1 && html`<h3>${t("Run {number}", { number: run })}</h3>`}
      <${Path} steps=${steps.filter((step) => step.run === run)} nodes=${nodes} names=${names} /></div>`)}
    <div class="notice ${ended ? "good" : ""}"><p>${ended
      ? t("Ended {time}: {status} {reason}", { time: moment(ended.at), status: t(ended.status), reason: ended.reason ? `(${reasonText(ended.reason)})` : "" })
      : t("Not at the end yet in that time.")}</p></div>`;
}
