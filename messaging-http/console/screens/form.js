// One form: its page, the HTML for a page of yours, and everything about it.
import { allowed } from "../lib/api.js";
import { useHeading } from "../lib/focus.js";
import { Field, Form, useFaults, useForm } from "../lib/form.js";
import { MailFrame } from "../lib/frame.js";
import { PublicLists } from "../lib/public_lists.js";
import { go, href } from "../lib/route.js";
import { Action, confirm, Copy, Failed, Head, html, Loaded, Loading, t, useCall, useEffect, useState } from "../lib/ui.js";

export default function OneForm({ id }) {
  const found = useCall("getForm", { path: { id } });
  // What a write answered takes the place of what was loaded.
  const [answer, setAnswer] = useState(null);
  useHeading(Boolean(found.data));
  if (!found.data) return html`<${Head} title=${t("Form")} back=${href("forms")} backText=${t("Forms")} /><${Loaded} of=${found} skeleton=${8} />`;
  return html`<${Drawn} form=${answer ?? found.data} onChange=${setAnswer} />`;
}

function Drawn({ form, onChange }) {
  const ask = () => confirm({
    title: t("Delete this form?"),
    text: t("Its page and posts to it answer that the link does not work. Who subscribed by it stays subscribed."),
    action: t("Delete"),
  });
  return html`
    <${Head} title=${form.name} back=${href("forms")} backText=${t("Forms")}>
      <a class="button" href=${form.url} target="_blank" rel="noopener">${t("Open page")}</a>
      <${Action} id="deleteForm" args=${{ path: { id: form.id } }} before=${ask} onDone=${() => go("forms")} done=${t("The form is deleted")}>${t("Delete")}</${Action}>
    </${Head}>
    <section class="stack" aria-labelledby="address"><h2 id="address">${t("Address")}</h2>
      <p><code>${form.url}</code> <${Copy} text=${form.url} label=${t("Copy URL")} /></p></section>
    <section class="stack" aria-labelledby="embed"><h2 id="embed">${t("On a page of yours")}</h2>
      <p class="muted">${t("Paste this HTML where the form is to stand. It needs no script.")}</p>
      <pre class="mono" tabindex="0">${form.embed}</pre>
      <p><${Copy} text=${form.embed} label=${t("Copy HTML")} /></p></section>
    <${Preview} key=${form.updated_at} form=${form} />
    ${allowed("updateForm") && html`<${Edit} key=${form.updated_at} form=${form} onDone=${onChange} />`}`;
}

// The page as readers see it, in a frame where it does nothing. It is asked for at the address that this page came by.
function Preview({ form }) {
  const [state, setState] = useState({});
  useEffect(() => {
    const abort = new AbortController();
    const token = new URL(form.url).pathname.split("/").pop();
    fetch(new URL(`../f/${token}`, document.baseURI), { signal: abort.signal, credentials: "omit" })
      .then(async (answer) => setState(answer.ok ? { page: await answer.text() } : { error: { status: answer.status } }))
      .catch((error) => { if (!abort.signal.aborted) setState({ error }); });
    return () => abort.abort();
  }, [form.url]);
  return html`<section class="stack" aria-labelledby="preview"><h2 id="preview">${t("Preview")}</h2>
    ${state.error ? html`<${Failed} error=${state.error} />` : state.page ? html`<${MailFrame} source=${state.page} title=${t("The page of the form")} />` : html`<${Loading} lines=${4} />`}</section>`;
}

function Edit({ form, onDone }) {
  const { name, list_ids, fields, redirect_url, allowed_origins, theme } = form;
  const body = (values) => ({
    ...values,
    redirect_url: values.redirect_url || null,
    fields: values.fields.map((one) => ({ ...one, label: one.label || null })),
    theme: Object.fromEntries(Object.entries(values.theme).filter(([, value]) => value)),
  });
  return html`<section class="card" aria-labelledby="edit"><h2 id="edit">${t("Settings")}</h2>
    <${Form} id="updateForm" path=${{ id: form.id }} initial=${{ name, list_ids, fields, redirect_url, allowed_origins, theme }} body=${body} onDone=${onDone} done=${t("Saved")}>
      <${Field} name="name" label=${t("Title")} dir="auto" autocomplete="off" required />
      <${PublicLists} name="list_ids" label=${t("Lists")} />
      <${Asked} />
      <${Field} name="theme.text" kind="textarea" rows=${2} label=${t("Text above the fields")} dir="auto" optional />
      <${Field} name="theme.color" label=${t("Color of the button")} placeholder="#1d4ed8" autocomplete="off" optional />
      <${Field} name="theme.logo_url" kind="url" label=${t("Address of a logo")} placeholder="https://…" autocomplete="off" optional />
      <${Field} name="redirect_url" kind="url" label=${t("Page to go on to")} placeholder="https://…" autocomplete="off" optional
        help=${t("Readers are sent there afterwards, instead of a page of this server.")} />
      <${Field} name="allowed_origins" kind="list" rows=${1} label=${t("Sites whose scripts may post")} placeholder="https://www.example.com" autocomplete="off" optional />
    </${Form}></section>`;
}

// What the form asks for; the email address always.
function Asked() {
  const [{ fields }, change] = useForm();
  const faults = useFaults("fields");
  const custom = useCall(allowed("listCustomFields") && "listCustomFields", { query: { limit: 200 } }, { quiet: true });
  const known = ["phone", ...(custom.data?.data.map(({ key }) => `attributes.${key}`) ?? [])];
  const set = (nth, member, value) => change("fields", fields.map((one, place) => (place === nth ? { ...one, [member]: value } : one)));
  return html`<fieldset><legend>${t("Fields")}</legend>
    <datalist id="known-fields">${known.map((name) => html`<option key=${name} value=${name} />`)}</datalist>
    ${fields.map((one, nth) => html`<div class="actions" key=${nth}>
      <input aria-label=${t("Field")} list="known-fields" value=${one.field} readonly=${one.field === "email"} placeholder="attributes.first_name" onInput=${(event) => set(nth, "field", event.target.value)} />
      <input aria-label=${t("Label")} value=${one.label ?? ""} placeholder=${t("Label")} dir="auto" onInput=${(event) => set(nth, "label", event.target.value)} />
      <label><input type="checkbox" checked=${one.required} disabled=${one.field === "email"} onChange=${(event) => set(nth, "required", event.target.checked)} /> ${t("Required")}</label>
      ${one.field !== "email" && html`<button type="button" class="small" onClick=${() => change("fields", fields.filter((_, place) => place !== nth))}>${t("Remove")}</button>`}
    </div>`)}
    ${faults.map(({ message }) => html`<p class="fault-text">${message}</p>`)}
    <div class="actions"><button type="button" class="small" onClick=${() => change("fields", [...fields, { field: "", label: null, required: false }])}>${t("Add field")}</button></div>
  </fieldset>`;
}
