// One segment: the builder with its counts and JSON, and who is in it.
import { allowed } from "../lib/api.js";
import { EXAMPLES } from "../lib/filter.js";
import { FilterEditor } from "../lib/filter_editor.js";
import { FirstFocus, useHeading } from "../lib/focus.js";
import { Field, Form, useFaults, useForm } from "../lib/form.js";
import { Delete } from "../lib/in_use.js";
import { go, href } from "../lib/route.js";
import { List } from "../lib/table.js";
import { addressOf, contactColumns, nameOf, Written } from "../lib/contacts.js";
import { about, absolute, Action, announce, Badge, Code, Copy, count, Empty, Failed, Figure, Head, html, Loaded, t, Tabs, useCall, useEffect, useState } from "../lib/ui.js";

const KINDS = [["dynamic", "Keeps itself up to date"], ["static", "Stays as it is until recalculated"]];
const SHOWN = 8;

/** A form for a new segment, filled with an example when one was chosen. */
export function NewSegment({ query }) {
  const example = EXAMPLES[Number(query.example) - 1];
  return html`
    <${Head} title=${t("New segment")} back=${href("segments")} backText=${t("Segments")} />
    ${!example && html`<${Chooser} />`}
    <${Builder} id="createSegment" initial=${{ name: example ? t(example.name) : "", kind: "dynamic", filter: example?.filter ?? {} }}
      onDone=${(segment) => go(`segments/${segment.id}`)} />`;
}

function Chooser() {
  return html`<p class="muted">${t("Begin with nothing, or with an example:")} ${EXAMPLES.map(({ name }, nth) => html`${nth > 0 && ", "}<a key=${nth} href=${href("segments", { new: 1, example: nth + 1 })}>${t(name)}</a>`)}</p>`;
}

export default function Segment({ id, query }) {
  const [busy, setBusy] = useState(false);
  const found = useCall("getSegment", { path: { id } }, { every: busy ? 2000 : undefined });
  useHeading(Boolean(found.data));
  const isBusy = found.data?.status === "recalculating";
  if (isBusy !== busy) setBusy(isBusy);
  if (!found.data) {
    return html`<${Head} title=${t("Segment")} back=${href("segments")} backText=${t("Segments")} /><${Loaded} of=${found} skeleton=${8} />`;
  }
  return html`<${Loaded} of=${found}>${(segment) => html`<${Drawn} segment=${segment} query=${query} reload=${found.reload} />`}</${Loaded}>`;
}

function Drawn({ segment, query, reload }) {
  const { id, name } = segment;
  const tab = query.tab === "contacts" ? "contacts" : "conditions";
  const kind = t(KINDS.find(([one]) => one === segment.kind)?.[1] ?? segment.kind);
  const size = segment.size === null ? t("Not counted yet") : count(segment.size, "contact", "contacts");
  return html`
    <${Head} title=${name} back=${href("segments")} backText=${t("Segments")} badge=${html`<${Badge} status=${segment.status} />`}
      text=${[segment.calculated_at ? t("{size}, counted {time}", { size, time: absolute(segment.calculated_at, { dateStyle: "medium", timeStyle: "short" }) }) : size, kind].join(" · ")}>
      <${Action} id="recalculateSegment" args=${{ path: { id } }} done=${t("It is counted anew")} onDone=${reload}>${t("Recalculate")}</${Action}>
      <${Delete} id="deleteSegment" path=${{ id }} onDone=${() => go("segments")} ask=${{
        title: t("Delete this segment?"), action: t("Delete"), name,
        text: t("Its conditions are gone for good. {contacts} in it stay as they are.", { contacts: segment.size === null ? t("The contacts") : t("The {contacts}", { contacts: count(segment.size, "contact", "contacts") }) }),
      }} />
    </${Head}>
    <${Tabs} current=${tab} tabs=${[
      { id: "conditions", label: t("Conditions"), href: href(`segments/${id}`) },
      { id: "contacts", label: t("Contacts"), href: href(`segments/${id}`, { tab: "contacts" }) },
    ]} />
    ${tab === "contacts"
      ? html`<${List} key=${segment.calculated_at} id="listSegmentContacts" args=${{ path: { id } }} caption=${t("Contacts in this segment")}
          words=${["contact", "contacts"]} nameOf=${addressOf}
          rowHref=${(row) => href(`contacts/${row.id}`)} columns=${contactColumns()}
          empty=${html`<${Empty} title=${t("Nobody is in this segment")} text=${segment.status === "recalculating" ? t("It is being counted.") : t("No contact meets its conditions. Look at the count of each condition.")}
            action=${t("Conditions")} href=${href(`segments/${id}`)} />`} />`
      : html`<${Builder} id=${allowed("updateSegment") ? "updateSegment" : null} path=${{ id }} segment=${segment}
          initial=${{ name, filter: segment.filter }} onDone=${() => { announce(t("Saved; it is counted anew")); reload(); }} />`}
    <p class="muted actions">${t("Id of this segment")} <code>${id}</code> <${Copy} text=${id} /></p>`;
}

// Without an operation the conditions are only shown.
function Builder({ id, path, initial, segment, onDone }) {
  if (!id) return html`<${Shown} filter=${initial.filter} />`;
  const body = ({ name, kind, filter }) => (segment ? { name, filter } : { name, kind, filter });
  return html`<${Form} wide id=${id} path=${path} initial=${initial} body=${body} onDone=${onDone} submit=${t("Save")}>
    <div class="row-of-fields">
      <${Field} name="name" label=${t("Name")} dir="auto" autocomplete="off" required />
      ${!segment && html`<${Field} name="kind" label=${t("Kind")} kind="select" options=${KINDS.map(([kind, text]) => [kind, t(text)])} />`}
    </div>
    <${Conditions} />
    ${!segment && html`<${FirstFocus} />`}
  </${Form}>`;
}

function Shown({ filter }) {
  const [found, setFound] = useState({ sizes: {}, faults: {}, loading: true });
  return html`<div class="columns">
    <section class="stack" aria-labelledby="conditions"><h2 id="conditions">${t("Conditions")}</h2><${FilterEditor} value=${filter} onPreview=${setFound} readOnly /></section>
    <div class="stack"><${Found} found=${found} />
      <details><summary>${t("The same as JSON")}</summary><${Code} text=${JSON.stringify(filter, null, 2)} label=${t("Conditions as JSON")} /></details></div></div>`;
}

function Conditions() {
  const [values, change] = useForm();
  const [found, setFound] = useState({ sizes: {}, faults: {}, loading: true });
  useFaults("filter");
  return html`<div class="columns">
    <section class="stack" aria-labelledby="conditions"><h2 id="conditions">${t("Conditions")}</h2>
      <${FilterEditor} value=${values.filter} onChange=${(filter) => change("filter", filter)} onPreview=${setFound} /></section>
    <div class="stack">
      <${Found} found=${found} />
      <${Json} value=${values.filter} onChange=${(filter) => change("filter", filter)} />
    </div></div>`;
}

function Found({ found }) {
  const { size, exact, sample = [], error, retry, loading } = found;
  useEffect(() => {
    if (!Number.isInteger(size)) return;
    const told = count(size, "contact right now", "contacts right now");
    announce(exact ? told : t("about {number}", { number: told }), { unseen: true });
  }, [size, exact]);
  if (error) return html`<${Failed} error=${error} retry=${retry} />`;
  const value = size === undefined || size === null ? (loading ? "…" : "–") : about(size, exact);
  return html`<section class="stack" aria-labelledby="found" aria-busy=${loading && size === undefined ? "true" : undefined}><h2 id="found">${t("Who is in it")}</h2>
    <${Figure} name=${t("Contacts right now")} value=${value}
      note=${[exact === false && t("Estimated from some of the contacts"), Object.keys(found.faults).length > 0 && t("Without the conditions that are not complete")].filter(Boolean).join(". ")} />
    ${sample.length > 0 && html`<h3>${sample.length < size ? t("The newest of them") : t("These")}</h3>
      <ul class="plain">${sample.slice(0, SHOWN).map((contact) => html`<li key=${contact.id}><a href=${href(`contacts/${contact.id}`)}><${Written}>${addressOf(contact)}</${Written}></a>
        ${nameOf(contact) && html` <span class="muted" dir="auto">${nameOf(contact)}</span>`}</li>`)}</ul>`}</section>`;
}

// Both ways: rows write the text, and a text that is JSON becomes rows.
function Json({ value, onChange }) {
  const [typed, setTyped] = useState(null);
  const [fault, setFault] = useState(null);
  const text = typed ?? JSON.stringify(value, null, 2);
  const change = (event) => {
    setTyped(event.target.value);
    try {
      const filter = JSON.parse(event.target.value);
      if (filter === null || typeof filter !== "object" || Array.isArray(filter)) throw new Error(t("a filter is an object"));
      setFault(null);
      onChange(filter);
    } catch (error) {
      setFault(t("Not used yet: {message}", { message: error.message }));
    }
  };
  const left = () => { if (!fault) setTyped(null); };
  return html`<details open><summary>${t("The same as JSON")}</summary><div class="stack">
    <textarea class="mono" rows=${Math.min(20, text.split("\n").length + 1)} spellcheck=${false} aria-label=${t("Conditions as JSON")} aria-describedby=${fault ? "json-fault" : undefined}
      aria-invalid=${fault ? "true" : undefined} value=${text} onInput=${change} onBlur=${left}></textarea>
    ${fault && html`<p class="fault-text" id="json-fault">${fault} <button type="button" class="link" onClick=${() => { setTyped(null); setFault(null); }}>${t("Undo")}</button></p>`}</div></details>`;
}
