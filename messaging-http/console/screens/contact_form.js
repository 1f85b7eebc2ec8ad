// The form of a contact: a new one, or changes of one that is there.
import { allowed } from "../lib/api.js";
import { AttributeFields, fromForm, kindsOf, toForm } from "../lib/attributes.js";
import { CONTACT_FIELDS } from "../lib/contact_fields.js";
import { Field, Form, useForm } from "../lib/form.js";
import { FirstFocus } from "../lib/focus.js";
import { html, Loading, t, useCall, useState } from "../lib/ui.js";

const CONSENTS = [["unknown", "Not asked"], ["true", "Agreed"], ["false", "Refused"]];
const consentOut = { unknown: null, true: true, false: false };
const TEXTS = CONTACT_FIELDS.map(([name]) => name);
const IDENTIFIERS = ["email", "phone", "external_id"];
const REST = CONTACT_FIELDS.filter(([name]) => !IDENTIFIERS.includes(name));
const HELPS = { locale: "As in en-US or de", timezone: "As in Europe/Berlin" };

/** `contact` is the one that is changed, absent for a new one; `id` the operation. */
export function ContactForm(props) {
  const fields = useCall(allowed("listCustomFields") && "listCustomFields", { query: { limit: 200 } }, { quiet: true });
  const lists = useCall(allowed("listLists") && "listLists", { query: { limit: 200 } }, { quiet: true });
  if (fields.loading || lists.loading) return html`<${Loading} />`;
  return html`<${Drawn} ...${props} fields=${fields.data?.data ?? []} lists=${lists.data?.data ?? []} />`;
}

function Drawn({ id, contact, fields, lists, onDone, submit, extra }) {
  const before = contact?.attributes ?? {};
  const [kinds, setKinds] = useState(() => kindsOf(before, fields));
  const { consent = {} } = contact ?? {};
  const initial = {
    ...Object.fromEntries(TEXTS.map((name) => [name, contact?.[name] ?? ""])),
    tags: contact?.tags ?? [],
    list_ids: contact?.list_ids ?? [],
    consent: { marketing_email: String(consent.marketing_email ?? "unknown"), sms: String(consent.sms ?? "unknown") },
    attributes: toForm(before, kinds),
  };
  const body = (values) => (contact ? changes(values, contact, kinds) : created(values, kinds));
  return html`<${Form} id=${id} path=${contact && { id: contact.id }} initial=${initial} body=${body} submit=${submit} extra=${extra} onDone=${onDone}>
    <div class="row-of-fields">
      <${Field} name="email" label=${t("Email")} kind="email" autocomplete="off" />
      <${Field} name="phone" label=${t("Phone")} kind="tel" autocomplete="off" help=${t("With the country: +14155550123")} />
      <${Field} name="external_id" label=${t("External id")} autocomplete="off" help=${t("The id in your own program")} />
    </div>
    ${!contact && html`<p class="help">${t("One of the three is enough. If a contact has one of them already, it is updated instead.")}</p>`}
    <div class="row-of-fields">
      <${Field} name="consent.marketing_email" label=${t("Email marketing")} kind="select" options=${CONSENTS.map(([value, text]) => [value, t(text)])} />
      <${Field} name="consent.sms" label=${t("SMS marketing")} kind="select" options=${CONSENTS.map(([value, text]) => [value, t(text)])} />
      <${Field} name="tags" label=${t("Tags")} kind="list" rows=${1} dir="auto" help=${t("Separated by commas")} />
    </div>
    <${ListChoices} lists=${lists} />
    <${AttributeFields} kinds=${kinds} fields=${fields} onKind=${(key, kind) => setKinds({ ...kinds, [key]: kind })} />
    <details open=${REST.some(([name]) => contact?.[name]) || undefined}><summary>${t("Language and time zone")}</summary>
      <div class="row-of-fields">${REST.map(([name, label]) => html`
        <${Field} key=${name} name=${name} label=${t(label)} help=${HELPS[name] && t(HELPS[name])} list=${name === "timezone" ? "zones" : undefined} />`)}
      </div>
      <datalist id="zones">${(Intl.supportedValuesOf?.("timeZone") ?? []).map((zone) => html`<option value=${zone}></option>`)}</datalist>
    </details>
    <${FirstFocus} />
  </${Form}>`;
}

function ListChoices({ lists }) {
  const [values, change] = useForm();
  if (!lists.length) return null;
  const chosen = values.list_ids ?? [];
  const toggle = (id, isOn) => change("list_ids", isOn ? [...chosen, id] : chosen.filter((one) => one !== id));
  return html`<fieldset><legend>${t("Lists")}</legend><div class="row-of-fields">${lists.map(({ id, name }) => html`
    <div class="field check" key=${id}><label><input type="checkbox" checked=${chosen.includes(id)} onChange=${(event) => toggle(id, event.target.checked)} />
      <span dir="auto">${name}</span></label></div>`)}</div></fieldset>`;
}

const consentsOf = ({ marketing_email: email, sms }) => ({ marketing_email: consentOut[email], sms: consentOut[sms] });

// A new one names only what was filled in, so that the update of a contact that is there already clears nothing.
function created(values, kinds) {
  const texts = TEXTS.filter((name) => values[name].trim()).map((name) => [name, values[name].trim()]);
  const attributes = fromForm(values.attributes ?? {}, kinds);
  const consent = Object.fromEntries(Object.entries(consentsOf(values.consent)).filter(([, value]) => value !== null));
  const body = Object.fromEntries(texts);
  if (values.tags.length) body.tags = values.tags;
  if (values.list_ids.length) body.list_ids = values.list_ids;
  if (Object.keys(consent).length) body.consent = consent;
  if (Object.keys(attributes).length) body.attributes = attributes;
  return body;
}

// Only what differs is sent, so that others may change the rest meanwhile.
function changes(values, contact, kinds) {
  const body = {};
  for (const name of TEXTS) {
    const value = values[name].trim() || null;
    if (value !== contact[name]) body[name] = value;
  }
  const differs = (one, other) => JSON.stringify(one) !== JSON.stringify(other);
  if (differs(values.tags, contact.tags)) body.tags = values.tags;
  if (differs([...values.list_ids].sort(), [...contact.list_ids].sort())) body.list_ids = values.list_ids;
  const consent = consentsOf(values.consent);
  const differing = Object.entries(consent).filter(([name, value]) => value !== contact.consent[name]);
  if (differing.length) body.consent = Object.fromEntries(differing);
  const attributes = Object.entries(fromForm(values.attributes ?? {}, kinds, contact.attributes))
    .filter(([key, value]) => differs(value, contact.attributes[key]));
  if (attributes.length) body.attributes = Object.fromEntries(attributes);
  return body;
}
