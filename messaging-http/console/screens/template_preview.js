// What a template says, rendered by the server: to nobody in particular or as a contact, with values for its variables.
import { allowed, call } from "../lib/api.js";
import { Failed, html, Loading, t, useCall, useEffect, useId, useState } from "../lib/ui.js";
import { MailFrame } from "../lib/frame.js";
import { useOwnImages } from "../lib/own_images.js";

const PAUSE_MS = 350;

/**
 * `source` is what is typed and not saved; `onFaults` hears what is wrong in it, with lines. It begins with the contact
 * `contactId`, if there is one. In a dialog, which has a heading of its own, it is `isAlone`.
 */
export default function TemplatePreview({ template, source, isAlone, contactId, onFaults }) {
  const [contact, setContact] = useState(contactId ? { id: contactId } : null);
  const [values, setValues] = useState({});
  const [shown, setShown] = useState({});
  const [view, setView] = useState("wide");
  const [isDark, setDark] = useState(false);
  const body = { ...contentOnly(source), ...(contact && { contact_id: contact.id }), variables: variablesOf(values) };
  const asked = JSON.stringify([template.id, template.version, body]);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      call("previewTemplate", { path: { id: template.id }, body, signal: abort.signal }).then(
        (data) => {
          setShown({ data });
          onFaults?.([]);
        },
        (error) => {
          if (abort.signal.aborted) return;
          setShown((old) => ({ data: old.data, error }));
          onFaults?.(error.violations);
        },
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [asked]);

  const { data, error } = shown;
  const drawn = useOwnImages(data?.html);
  // Names that were typed just now are known from the preview alone.
  const names = [...new Set([...template.variables, ...Object.keys(values), ...(data?.missing_variables ?? [])])];
  const isMail = template.channel === "email";
  return html`<section class="stack" aria-label=${t("Preview")}>
    ${!isAlone && html`<h2>${t("Preview")}</h2>`}
    ${allowed("listContacts") && html`<${ContactChoice} initial=${contactId} onChange=${setContact} />`}
    ${names.length > 0 && html`<${Values} names=${names} values=${values} missing=${data?.missing_variables ?? []}
      onChange=${(name, value) => setValues((old) => ({ ...old, [name]: value }))} />`}
    ${error && (error.status === 422 ? html`<${Broken} error=${error} />` : html`<${Failed} error=${error} />`)}
    ${!data && !error && html`<${Loading} lines=${6} />`}
    ${data && html`<div class="stack">
      ${isMail && html`<div class="actions"><div class="segmented" role="group" aria-label=${t("Show")}>${[["wide", "Wide"], ["narrow", "Narrow"], ["text", "Text"]].map(([name, label]) => html`
        <button type="button" aria-pressed=${view === name} onClick=${() => setView(name)}>${t(label)}</button>`)}</div>
        ${view !== "text" && html`<div class="segmented" role="group" aria-label=${t("Colours")}>${[[false, "Light"], [true, "Dark"]].map(([dark, label]) => html`
          <button type="button" aria-pressed=${isDark === dark} onClick=${() => setDark(dark)}>${t(label)}</button>`)}</div>`}</div>`}
      <div>
        ${(data.subject || isMail) && html`<p dir="auto">${data.subject ? html`<strong>${data.subject}</strong>` : html`<span class="muted">${t("No subject")}</span>`}</p>`}
        ${data.preheader && html`<p class="muted" dir="auto">${data.preheader}</p>`}
      </div>
      ${data.html && view !== "text"
        ? html`<${MailFrame} source=${drawn} title=${t("Preview")} width=${view === "narrow" ? 360 : undefined} scheme=${isDark ? "dark" : "light"} />`
        : data.text
          ? html`<div class="code"><pre class="wrap" tabindex="0" role="region" aria-label=${t("Preview of the text")} dir="auto">${data.text}</pre></div>`
          : html`<p class="muted">${t("Nothing is written yet.")}</p>`}
      ${data.segments && html`<p class="muted">${data.segments === 1 ? t("Sent as one SMS.") : t("Sent in {segments} parts; each is charged as an SMS.", { segments: data.segments })}</p>`}
    </div>`}
  </section>`;
}

function contentOnly(source) {
  if (!source) return {};
  const { subject, preheader, html: written, mjml, text } = source;
  return { subject, preheader, html: written, mjml, text };
}

// `order.id` of the inputs becomes `{ order: { id } }`; lists and objects are written as JSON.
function variablesOf(values) {
  const variables = {};
  for (const [name, text] of Object.entries(values)) {
    if (text === "") continue;
    const path = name.split(".");
    const last = path.pop();
    const target = path.reduce((inner, part) => (inner[part] ??= {}), variables);
    target[last] = /^\s*[[{]/.test(text) ? parsed(text) : text;
  }
  return variables;
}

function parsed(text) {
  try { return JSON.parse(text); } catch { return text; }
}

function Broken({ error }) {
  const causes = error.violations.length ? error.violations : [error];
  return html`<div class="notice fault" role="status"><p><strong>${t("This cannot be rendered yet.")}</strong></p>
    <ul>${causes.map(({ pointer, message }) => html`<li>${pointer && html`<code>${pointer.slice(1)}</code> `}${message}</li>`)}</ul></div>`;
}

function Values({ names, values, missing, onChange }) {
  const id = useId();
  return html`<fieldset><legend>${t("Variables")}</legend>
    ${missing.length > 0
      ? html`<p class="help">${t("No value: {names}. Whoever sends the template gives them; without a value nothing is printed.", { names: missing.join(", ") })}</p>`
      : html`<p class="help">${t("Every variable has a value.")}</p>`}
    <div class="row-of-fields">${names.map((name, nth) => html`<div class="field" key=${name}>
      <label for="${id}-${nth}"><code>${name}</code>${missing.includes(name) && html` <span class="muted">${t("missing")}</span>`}</label>
      <input id="${id}-${nth}" dir="auto" value=${values[name] ?? ""} onInput=${(event) => onChange(name, event.target.value)} /></div>`)}</div>
  </fieldset>`;
}

// The newest contacts are offered; any other one is found by its email or id.
function ContactChoice({ initial = "", onChange }) {
  const id = useId();
  const [text, setText] = useState(initial);
  const [unknown, setUnknown] = useState(false);
  const newest = useCall("listContacts", { query: { limit: 20 } }, { quiet: true });
  const called = (contact) => contact.email ?? contact.phone ?? contact.external_id ?? contact.id;
  const known = newest.data?.data ?? [];
  const find = async (event) => {
    const wanted = event.target.value.trim();
    setUnknown(false);
    if (!wanted) return onChange(null);
    const near = known.find((contact) => called(contact) === wanted || contact.id === wanted);
    if (near) return onChange(near);
    if (wanted.startsWith("con_")) return onChange({ id: wanted });
    const page = await call("listContacts", { query: { [wanted.includes("@") ? "email" : "external_id"]: wanted, limit: 1 } }).catch(() => ({ data: [] }));
    setUnknown(!page.data.length);
    return onChange(page.data[0] ?? null);
  };
  return html`<div class="field"><label for=${id}>${t("Show as contact")} <span class="muted">${t("optional")}</span></label>
    <input id=${id} list="${id}-known" value=${text} placeholder=${t("Email, external ID or id")} autocomplete="off" dir="auto"
      aria-describedby=${unknown ? `${id}-fault` : undefined} aria-invalid=${unknown ? "true" : undefined}
      onInput=${(event) => setText(event.target.value)} onChange=${find} />
    <datalist id="${id}-known">${known.map((contact) => html`<option value=${called(contact)}></option>`)}</datalist>
    ${unknown && html`<p class="fault-text" id="${id}-fault">${t("No such contact.")}</p>`}</div>`;
}
