// Templates: those that are there, by channel; a new one from the gallery, from nothing, from HTML or from a web page.
import { allowed } from "../lib/api.js";
import { Badge, Empty, Head, html, t, Time, useState } from "../lib/ui.js";
import { changeQuery, go, href } from "../lib/route.js";
import { Filters, List } from "../lib/table.js";
import { Field, Form, useForm } from "../lib/form.js";
import { CHANNELS, channelName } from "../lib/channels.js";
import { Later } from "../lib/later.js";

export default function Templates({ segments, query }) {
  const [id] = segments;
  return id
    ? html`<${Later} load=${() => import("./template.js")} id=${id} query=${query} />`
    : html`<${TemplateList} query=${query} />`;
}

function TemplateList({ query }) {
  const isNew = query.new && allowed("createTemplate");
  const [rows, setRows] = useState(null);
  const isEmpty = rows?.length === 0 && !query.channel && !query.cursor;
  return html`
    <${Head} title=${t("Templates")}>
      ${allowed("createTemplate") && !isNew && !isEmpty && html`
        <a class="button" href=${href("templates", { ...query, new: "html" })}>${t("Import")}</a>
        <a class="button primary" href=${href("templates", { ...query, new: "gallery" })}>${t("New template")}</a>`}
    </${Head}>
    ${isNew && html`<${NewTemplate} kind=${query.new} wantedBy=${query.for} />`}
    ${!isEmpty && html`<${Filters} fields=${[{ name: "channel", label: t("Channel"), options: CHANNELS.map((channel) => [channel, channelName(channel)]) }]} />`}
    <${List} id="listTemplates" caption=${t("Templates")} args=${{ query: { channel: query.channel } }} onRows=${setRows}
      rowHref=${(row) => href(`templates/${row.id}`)} filters=${["channel"]} words=${["template", "templates"]} nameOf=${(row) => row.name}
      columns=${[
        { label: t("Name"), cell: (row) => html`<span dir="auto">${row.name}</span>` },
        { label: t("Channel"), cell: (row) => channelName(row.channel) },
        { label: t("Subject"), wide: true, cell: (row) => row.subject && html`<span dir="auto">${row.subject}</span>` },
        { label: t("Notes"), cell: (row) => html`<${Notes} warnings=${row.warnings} />` },
        { label: t("Version"), numeric: true, cell: (row) => row.version },
        { label: t("Changed"), cell: (row) => html`<${Time} at=${row.updated_at} />` },
      ]}
      empty=${!isNew && html`<${Empty} title=${t("No templates yet")}
        text=${t("A template is a message with places that are filled for each recipient. Campaigns and automations send templates.")}
        action=${allowed("createTemplate") && t("New template")} href=${href("templates", { new: "gallery" })}
        example=${`messaging template create --json-body - <<'JSON'\n${JSON.stringify({ name: "Welcome", channel: "email", subject: "Hello", html: "<p>Hello</p>" }, null, 2)}\nJSON`} />`} />`;
}

function Notes({ warnings }) {
  if (!warnings.length) return html`<span class="muted">–</span>`;
  const texts = warnings.map(({ message }) => message).join("\n");
  return html`<span title=${texts}><${Badge} status="warning">${warnings.length}<span class="sr"> ${t("notes")}</span></${Badge}></span>`;
}

// ---- a new one ----

const WAYS = [["gallery", "From the gallery"], ["1", "Empty"], ["html", "From HTML"], ["url", "From a web page"]];

// What a new template of an email begins with: the place for the text, and the link that marketing needs.
const BEGINNING = `<!doctype html>
<html>
  <body>
    <p>Hello {{ contact.attributes.first_name | default("there") }},</p>
    <p></p>
    <p><a href="{{ unsubscribe_url }}">Unsubscribe</a></p>
  </body>
</html>
`;

function NewTemplate({ kind, wantedBy }) {
  const shown = WAYS.some(([id]) => id === kind) ? kind : "1";
  const created = ({ id }) => go(`templates/${id}`, { for: wantedBy });
  return html`<section class="card" aria-labelledby="new-template">
    <h2 id="new-template">${t("New template")}</h2>
    <div class="segmented" role="group" aria-label=${t("Begin with")}>${WAYS.map(([id, label]) => html`
      <button type="button" aria-pressed=${id === shown} onClick=${() => changeQuery({ new: id })}>${t(label)}</button>`)}</div>
    ${shown === "gallery" && html`<${Later} load=${() => import("../blocks/gallery.js")} onDone=${created} extra=${html`<${Cancel} />`} />`}
    ${shown === "1" && html`<${Form} key="1" id="createTemplate" submit=${t("Create")} extra=${html`<${Cancel} />`} initial=${{ channel: "email" }} onDone=${created}
      body=${({ name, channel, subject }) => ({ name, channel, ...(subject && { subject }), ...(channel === "email" && { html: BEGINNING }) })}>
      <${NewFields} />
    </${Form}>`}
    ${shown === "html" && html`<${Form} key="html" id="importHtmlTemplate" submit=${t("Import")} extra=${html`<${Cancel} />`} onDone=${created}>
      <${Field} name="name" label=${t("Name")} autofocus />
      <${Field} name="subject" label=${t("Subject")} dir="auto" />
      <${HtmlFile} />
      <${Field} name="html" label=${t("HTML")} kind="textarea" rows=${10} class="mono" spellcheck=${false} />
    </${Form}>`}
    ${shown === "url" && html`<${Form} key="url" id="importUrlTemplate" submit=${t("Import")} extra=${html`<${Cancel} />`} onDone=${created}>
      <${Field} name="name" label=${t("Name")} autofocus />
      <${Field} name="subject" label=${t("Subject")} dir="auto" />
      <${Field} name="url" kind="url" label=${t("URL")} placeholder="https://example.com/mail.html"
        help=${t("The server reads the page once, now. Its relative links become absolute.")} />
    </${Form}>`}
  </section>`;
}

function NewFields() {
  const [values] = useForm();
  return html`
    <${Field} name="name" label=${t("Name")} help=${t("For you and your colleagues; recipients never see it.")} autofocus />
    <${Field} name="channel" label=${t("Channel")} kind="select" options=${CHANNELS.map((channel) => [channel, channelName(channel)])}
      help=${t("Stays as it is once the template exists.")} />
    ${["email", "push"].includes(values.channel) && html`<${Field} name="subject" label=${values.channel === "push" ? t("Title") : t("Subject")} dir="auto" />`}`;
}

function HtmlFile() {
  const [, change] = useForm();
  const read = async (event) => {
    const [file] = event.target.files;
    if (file) change("html", await file.text());
  };
  return html`<div class="field"><label for="html-file">${t("File")} <span class="muted">${t("or paste below")}</span></label>
    <input id="html-file" type="file" accept=".html,.htm,text/html" onChange=${read} /></div>`;
}

function Cancel() {
  return html`<button type="button" onClick=${() => changeQuery({ new: null })}>${t("Cancel")}</button>`;
}
