// The source of a template in a form, and its preview beside it.
import { allowed } from "../lib/api.js";
import { Badge, html, t, useEffect, useId, useMemo, useRef, useState } from "../lib/ui.js";
import { Field, Form, useFaults, useForm } from "../lib/form.js";
import { Later } from "../lib/later.js";
import { Editor } from "../lib/editor.js";
import { contentOf } from "../lib/channels.js";
import TemplatePreview from "./template_preview.js";

// What was typed and not saved, by template: it is there again when somebody comes back.
const drafts = new Map();

const SYSTEM = ["contact.email", "contact.phone", "contact.external_id", "contact.locale", "contact.attributes.first_name", "unsubscribe_url", "preferences_url", "archive_url", "workspace.name", "campaign.name", "message_id"];

export default function TemplateEditor({ template, contactId, onSaved }) {
  const saved = useMemo(() => valuesOf(template), [template.version]);
  const [values, setValues] = useState(() => drafts.get(template.id) ?? saved);
  const [begun, setBegun] = useState(0);
  const [faults, setFaults] = useState([]);
  const area = useRef();
  const own = useRef(template.version);
  const isChanged = JSON.stringify(bodyOf(values, template)) !== JSON.stringify(bodyOf(saved, template));
  const mayWrite = allowed("updateTemplate");

  useEffect(() => {
    if (isChanged) drafts.set(template.id, values);
    else drafts.delete(template.id);
    const warn = (event) => isChanged && event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [values, isChanged]);
  // Another version came from elsewhere, say by a revert: what is typed stays, what was not touched follows. After a
  // save of this page nothing is drawn anew, so that the cursor stays where it is.
  useEffect(() => {
    if (drafts.has(template.id) || own.current === template.version) return;
    setValues(saved);
    setBegun((n) => n + 1);
  }, [saved]);

  const discard = () => {
    drafts.delete(template.id);
    setValues(saved);
    setBegun(begun + 1);
  };
  const onKeyDown = (event) => {
    if (event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    area.current.querySelector("form")?.requestSubmit();
  };
  const onDone = (answer) => {
    own.current = answer.version;
    drafts.delete(template.id);
    onSaved(answer);
  };
  const unsaved = isChanged && html`<span class="muted">${t("Not saved yet.")}</span>
    <button type="button" class="quiet" onClick=${discard}>${t("Discard changes")}</button>`;
  return html`<div class="columns even" ref=${area} onKeyDown=${onKeyDown}>
    <section aria-label=${t("Content")} class="stack">
      <${Warnings} warnings=${template.warnings} />
      ${mayWrite
        ? html`<${Form} key=${begun} id="updateTemplate" path=${{ id: template.id }} initial=${values} body=${(typed) => bodyOf(typed, template)}
            onChange=${setValues} onDone=${onDone} done=${t("Saved")} extra=${unsaved}>
            <${Fields} template=${template} faults=${faults} /></${Form}>`
        : html`<${Source} template=${template} />`}
    </section>
    <div class="sticky"><${TemplatePreview} template=${template} source=${isChanged ? bodyOf(values, template) : null} contactId=${contactId} onFaults=${setFaults} /></div>
  </div>`;
}

function valuesOf(template) {
  const content = contentOf(template.channel).map((name) => [name, template[name] ?? ""]);
  return { name: template.name, inline_css: template.inline_css, written: template.mjml ? "blocks" : "html", ...Object.fromEntries(content) };
}

// The server takes MJML before HTML, so only the one that is edited is sent.
function bodyOf(values, { channel }) {
  const body = { name: values.name, channel };
  for (const name of contentOf(channel)) body[name] = values[name] || null;
  if (channel !== "email") return body;
  if (values.written === "html") body.mjml = null;
  else delete body.html;
  return { ...body, inline_css: values.inline_css };
}

function Fields({ template, faults }) {
  const [values, change] = useForm();
  const { channel } = template;
  const names = [...template.variables, ...SYSTEM];
  const isEmail = channel === "email";
  // From MJML one goes on with the HTML that was made of it.
  const write = (kind) => {
    if (kind === "html" && values.written !== "html" && template.mjml) change("html", template.html);
    change("written", kind);
  };
  return html`
    <${Field} name="name" label=${t("Name")} dir="auto" />
    ${contentOf(channel).includes("subject") && html`<${Field} name="subject" label=${channel === "push" ? t("Title") : t("Subject")} dir="auto" />`}
    ${isEmail && html`<${Field} name="preheader" label=${t("Preview text")} dir="auto" help=${t("Shown after the subject in the list of the inbox.")} />
      <div class="field"><span id="written" class="label">${t("Written in")}</span>
        <div class="segmented" role="group" aria-labelledby="written">${WAYS.map(([id, label]) => html`
          <button type="button" aria-pressed=${values.written === id} onClick=${() => write(id)}>${t(label)}</button>`)}</div>
        ${values.written !== "html" && html`<p class="help">${t("The server makes HTML of MJML that looks alike in all mail programs. Blocks are MJML, shown without its code.")}</p>`}</div>`}
    ${isEmail && values.written === "blocks" && html`
      <${Later} load=${() => import("../blocks/editor.js")} value=${values.mjml ?? ""} onChange=${(mjml) => change("mjml", mjml)} onCode=${() => write("mjml")} />
      <div class="field check"><label><input type="checkbox" checked=${values.beside ?? false} onChange=${(event) => change("beside", event.target.checked)} />
        <span>${t("Show the code as well")}</span></label></div>`}
    ${channel === "telegram" || (isEmail && values.written === "html")
      ? html`<${SourceField} name="html" label=${t("HTML")} variables=${names} preview=${faults} rows=${22} />` : null}
    ${isEmail && (values.written === "mjml" || (values.written === "blocks" && values.beside)) && html`<${SourceField} name="mjml" label="MJML" variables=${names} preview=${faults} rows=${22} />`}
    <${SourceField} name="text" label=${t("Text")} variables=${names} preview=${faults} rows=${isEmail || channel === "telegram" ? 6 : 10}
      help=${isEmail ? t("Left empty, it is made of the HTML when the message is sent.") : undefined} />
    ${isEmail && html`<details class="more"><summary>${t("Sender and more")}</summary><div class="form">
      <div class="row-of-fields"><${Field} name="from_name" label=${t("Sender's name")} dir="auto" />
        <${Field} name="from_email" label=${t("Sender's address")} kind="email" placeholder="hello@example.com" /></div>
      <${Field} name="reply_to" label=${t("Reply to")} kind="email" />
      <${Field} name="inline_css" label=${t("Write the rules of style sheets into the elements, for mail programs that ignore sheets")} kind="checkbox" />
    </div></details>`}`;
}

const WAYS = [["blocks", "Blocks"], ["mjml", "MJML"], ["html", "HTML"]];

const FALLBACK = '{{ contact.attributes.first_name | default("there") }}';

// A source with the faults that saving told, else those of the preview.
function SourceField({ name, label, variables, preview, rows, help }) {
  const [values, change] = useForm();
  const saved = useFaults(name);
  const told = saved.length ? saved : preview.filter(({ pointer }) => pointer === `/${name}`);
  const faults = told.map(({ line, message }) => ({ line, message: line ? message.replace(/^line \d+, /, "") : message }));
  return html`<${Editor} label=${label} value=${values[name] ?? ""} onInput=${(text) => change(name, text)} variables=${variables}
    faults=${faults} rows=${rows} help=${[help, t("Ctrl-Space offers variables."), t("For when a value is missing: {example}", { example: FALLBACK })].filter(Boolean).join(" ")} />`;
}

// For those who may only read.
function Source({ template }) {
  const id = useId();
  return contentOf(template.channel).filter((name) => template[name] && !(name === "html" && template.mjml)).map((name) => html`
    <div class="stack"><h2 id="${id}-${name}">${t(LABELS[name])}</h2>
      <div class="code"><pre class="wrap" tabindex="0" role="region" aria-labelledby="${id}-${name}" dir="auto">${template[name]}</pre></div></div>`);
}

const LABELS = {
  subject: "Subject", preheader: "Preview text", from_name: "Sender's name", from_email: "Sender's address", reply_to: "Reply to",
  html: "HTML", mjml: "MJML", text: "Text",
};

// What the server remarks about a template.
function Warnings({ warnings }) {
  if (!warnings.length) return null;
  return html`<ul class="plain">${warnings.map(({ code, message }) => html`<li key=${code}><${Badge} status="warning">${t("Note")}</${Badge}> ${message}</li>`)}</ul>`;
}
