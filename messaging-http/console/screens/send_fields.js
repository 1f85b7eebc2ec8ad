// The controls of Send: those that the chosen channel has, the rarer ones folded away.
import { allowed } from "../lib/api.js";
import { bytes, html, t, useCall, useEffect, useRef, useState } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { Field, useForm, withoutEmpty } from "../lib/form.js";
import { CHANNELS, channelName } from "../lib/channels.js";

const EMAIL_ONLY = ["from_email", "from_name", "cc", "bcc", "reply_to", "headers", "attachments"];
const OTHER = ["buttons", "media", "data", "provider_template", "options", "fallback", "sending_domain_id"];
const PLAIN = ["channel", "to", "contact_id", "template_id", "send_at", "tags", "metadata"];

// ---- values and body ----

/** The values that the form begins with: of the URL, or of a message that is sent again. */
export function valuesOf(query, request, verified) {
  const { channel = "email", to, contact_id, subject, text, html: source, from_email, from_name, template_id, tag } = query;
  const values = { channel, to, contact_id, subject, text, html: source, from_email, from_name, template_id, tags: tag && [tag], headers: "" };
  if (!request && channel === "email" && !from_email && !template_id && verified.length) values.from_email = `hello@${verified[0].domain}`;
  if (!request) return values;
  const { headers = {}, attachments, send_at, ...rest } = request;
  const more = Object.fromEntries(OTHER.filter((name) => rest[name] !== undefined && rest[name] !== null).map((name) => [name, rest[name]]));
  for (const name of OTHER) delete rest[name];
  return { ...rest, headers: Object.entries(headers).map(([name, value]) => `${name}: ${value}`).join("\n"), more: Object.keys(more).length ? more : undefined };
}

/** The body of the call: what the channel and the way of writing have. */
export function bodyOf(values) {
  const { channel, template_id: template, headers, attachments, variables, more, subject, text, html: source } = values;
  const body = withoutEmpty(Object.fromEntries(PLAIN.map((name) => [name, values[name]])));
  if (template) body.variables = variables ?? {};
  else Object.assign(body, withoutEmpty({ text, ...(hasHtml(channel) && { html: source }), ...(hasSubject(channel) && { subject }) }));
  if (channel === "email") {
    Object.assign(body, withoutEmpty(Object.fromEntries(EMAIL_ONLY.map((name) => [name, values[name]]))));
    delete body.headers;
    delete body.attachments;
    const pairs = (headers ?? "").split("\n").filter((line) => line.trim()).map((line) => {
      const colon = line.indexOf(":");
      return colon < 0 ? [line.trim(), ""] : [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    });
    if (pairs.length) body.headers = Object.fromEntries(pairs);
    if (attachments?.length) body.attachments = attachments.map(({ filename, content_type, content_b64 }) => withoutEmpty({ filename, content_type, content_b64 }));
  }
  return { ...body, ...more };
}

const hasHtml = (channel) => channel === "email" || channel === "telegram";
const hasSubject = (channel) => channel === "email" || channel === "push";

// ---- controls ----

const ADDRESSES = {
  email: "Such as ann@example.com",
  sms: "With its country, such as +14155550123",
  whatsapp: "With its country, such as +14155550123",
  viber: "With its country, such as +14155550123",
  telegram: "The number of a chat, or @ and its name",
  push: "The token of a device",
};

export function Fields({ verified }) {
  const [values, change] = useForm();
  const { channel, template_id: template } = values;
  const isEmail = channel === "email";
  const [filled, setFilled] = useState(0);
  return html`
    <div class="row-of-fields">
      <${Field} name="channel" label=${t("Channel")} kind="select" options=${CHANNELS.map((one) => [one, channelName(one)])} />
      <${Field} name="to" required=${!values.contact_id} label=${t("To")} help=${t(ADDRESSES[channel] ?? "")} kind=${isEmail ? "email" : "text"} dir="auto" autocomplete="off" />
    </div>
    ${values.contact_id && html`<p class="muted">${t("To a contact, whose address is used when To is empty.")} <a href=${href(`contacts/${values.contact_id}`)}>${t("Open the contact")}</a></p>`}
    ${isEmail && html`<div class="row-of-fields">
      <${Field} name="from_email" label=${t("From")} kind="email" autocomplete="off"
        help=${verified.length ? t("Verified: {domains}", { domains: verified.slice(0, 4).map(({ domain }) => domain).join(", ") }) : ""} />
      <${Field} name="from_name" label=${t("From name")} dir="auto" autocomplete="off" />
    </div>`}
    ${allowed("listTemplates") && html`<${TemplateField} channel=${channel} onFilled=${() => setFilled(filled + 1)} />`}
    ${template
      ? html`<${Field} name="variables" key=${filled} label=${t("Variables")} kind="json" rows=${5} help=${t("Values that the template asks for, as JSON.")} />`
      : html`
        ${hasSubject(channel) && html`<${Field} name="subject" required=${isEmail} label=${channel === "push" ? t("Title") : t("Subject")} dir="auto" />`}
        <${Field} name="text" label=${t("Text")} kind="textarea" rows=${6} dir="auto" required=${!isEmail} />
        ${hasHtml(channel) && html`<${Field} name="html" label="HTML" kind="textarea" rows=${8} class="mono" spellcheck=${false}
          help=${isEmail ? t("One of text and HTML is enough; a missing text is made of the HTML.") : ""} />`}`}
    ${isEmail && html`<${Attachments} files=${values.attachments ?? []} onFiles=${(files) => change("attachments", files)} />`}
    <${Field} name="send_at" label=${t("Send at")} kind="datetime" help=${t("Empty: now. Until its time it can be cancelled.")} />
    <${More} values=${values} isEmail=${isEmail} />`;
}

function More({ values, isEmail }) {
  const [open] = useState(() => Boolean(values.cc || values.bcc || values.reply_to || values.headers || values.metadata || values.more));
  return html`<details open=${open}><summary>${t("More")}</summary><div class="form">
    ${isEmail && html`
      <div class="row-of-fields"><${Field} name="cc" label=${t("Cc")} kind="list" help=${t("Addresses, with commas between")} />
        <${Field} name="bcc" label=${t("Bcc")} kind="list" /></div>
      <${Field} name="reply_to" label=${t("Reply to")} kind="email" />
      <${Field} name="headers" label=${t("Headers")} kind="textarea" rows=${3} class="mono" maxlength=${undefined} help=${t("One on each line, such as X-Order: 17")} />`}
    <${Field} name="tags" label=${t("Tags")} kind="list" help=${t("With commas between; messages are found by them")} />
    <${Field} name="contact_id" label=${t("Contact id")} help=${t("Whose data fills a template; an address alone finds its contact by itself")} />
    <${Field} name="metadata" label=${t("Metadata")} kind="json" rows=${3} help=${t("Data of yours, as JSON; it comes back in webhooks")} />
    <${Field} name="more" label=${t("Other members of the request")} kind="json" rows=${4} help=${isEmail ? t("Such as options or fallback, as JSON with the names of the API") : t("Such as buttons, media, data, options or fallback, as JSON with the names of the API")} />
  </div></details>`;
}

// Choosing a template asks for its variables; what stood there for another one is of no use.
function TemplateField({ channel, onFilled }) {
  const [values, change] = useForm();
  const found = useCall("listTemplates", { query: { channel, limit: 200 } }, { quiet: true });
  const filledFor = useRef(values.variables ? values.template_id : undefined);
  const templates = found.data?.data ?? [];
  const options = templates.map(({ id, name }) => [id, name]);
  const chosen = values.template_id;
  if (chosen && !options.some(([id]) => id === chosen)) options.push([chosen, chosen]);
  const template = templates.find(({ id }) => id === chosen);
  useEffect(() => {
    if (!template || filledFor.current === template.id) return;
    filledFor.current = template.id;
    change("variables", Object.fromEntries((template.variables ?? []).map((name) => [name, ""])));
    onFilled();
  }, [template?.id]);
  return html`<${Field} name="template_id" label=${t("Template")} kind="select" options=${options} optional=${true} help=${t("Its subject and content instead of your own words")} />`;
}

function Attachments({ files, onFiles }) {
  const add = async (event) => {
    const picked = [...event.target.files];
    event.target.value = "";
    onFiles([...files, ...await Promise.all(picked.map(read))]);
  };
  return html`<div class="field"><label for="attachments">${t("Attachments")} <span class="muted">${t("optional")}</span></label>
    <input id="attachments" type="file" multiple onChange=${add} />
    ${files.length > 0 && html`<ul class="plain">${files.map((file, at) => html`<li><span dir="auto">${file.filename}</span> <span class="muted">${bytes(file.size)}</span>
      <button type="button" class="small" aria-label=${t("Remove {name}", { name: file.filename })} onClick=${() => onFiles(files.filter((_, nth) => nth !== at))}>${t("Remove")}</button></li>`)}</ul>`}
  </div>`;
}

function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error);
    reader.onload = () => resolve({ filename: file.name, content_type: file.type, size: file.size, content_b64: reader.result.split(",")[1] ?? "" });
    reader.readAsDataURL(file);
  });
}
