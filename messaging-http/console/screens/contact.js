// One contact: what is known, what it agreed to, what happened, and whether a message would reach it.
import { allowed } from "../lib/api.js";
import { CONTACT_FIELDS } from "../lib/contact_fields.js";
import { addressOf, consentWord, nameOf, Tags, Written } from "../lib/contacts.js";
import { shown } from "../lib/attributes.js";
import { useHeading } from "../lib/focus.js";
import { changeQuery, href } from "../lib/route.js";
import { announce, Copy, Facts, Head, html, Loaded, t, Time, useCall } from "../lib/ui.js";
import { ContactForm } from "./contact_form.js";
import { ContactActions } from "./contact_actions.js";
import { Suppressions } from "./contact_suppressions.js";
import { Sending } from "./contact_sending.js";
import { Timeline } from "./contact_timeline.js";

export default function Contact({ id, query }) {
  const found = useCall("getContact", { path: { id } });
  useHeading(Boolean(found.data));
  if (!found.data) {
    return html`<${Head} title=${t("Contact")} back=${href("contacts")} backText=${t("Contacts")} /><${Loaded} of=${found} skeleton=${8} />`;
  }
  return html`<${Loaded} of=${found}>${(contact) => html`<${Drawn} contact=${contact} query=${query} reload=${found.reload} />`}</${Loaded}>`;
}

function Drawn({ contact, query, reload }) {
  const isEdited = query.edit && allowed("updateContact");
  const name = nameOf(contact);
  // What was asked about the contact as it was is asked again.
  const version = `${contact.updated_at} ${contact.suppressed_channels.join()}`;
  const stop = () => changeQuery({ edit: null });
  const saved = () => {
    announce(t("Saved"));
    stop();
    reload();
  };
  return html`
    <${Head} title=${addressOf(contact)} back=${href("contacts")} backText=${t("Contacts")}
      text=${name && html`<${Written}>${name}</${Written}>`}>
      <${ContactActions} contact=${contact} reload=${reload} />
    </${Head}>
    <div class="columns">
      <div class="stack">
        <section class="card" aria-labelledby="profile">
          <div class="head-line"><h2 id="profile">${t("Profile")}</h2>
            ${allowed("updateContact") && !isEdited && html`<div class="actions"><button type="button" class="small" onClick=${() => changeQuery({ edit: 1 })}>${t("Edit")}</button></div>`}</div>
          ${isEdited
            ? html`<${ContactForm} key=${contact.updated_at} id="updateContact" contact=${contact} submit=${t("Save")} onDone=${saved}
                extra=${html`<button type="button" onClick=${stop}>${t("Cancel")}</button>`} />`
            : html`<${Profile} contact=${contact} />`}
        </section>
        <${Timeline} key=${version} contact=${contact} />
      </div>
      <div class="stack">
        <${Consent} contact=${contact} />
        <${Suppressions} key=${`of ${version}`} contact=${contact} reload=${reload} />
        <${Sending} key=${`to ${version}`} contact=${contact} query=${query} />
      </div>
    </div>`;
}

function Profile({ contact }) {
  const lists = useCall(contact.list_ids.length > 0 && allowed("listLists") && "listLists", { query: { limit: 200 } }, { quiet: true });
  const fields = useCall(allowed("listCustomFields") && "listCustomFields", { query: { limit: 200 } }, { quiet: true });
  const listName = (id) => lists.data?.data.find((one) => one.id === id)?.name ?? id;
  const label = (key) => fields.data?.data.find((one) => one.key === key)?.label || key;
  const written = (value) => value && html`<${Written}>${value}</${Written}>`;
  const attributes = Object.entries(contact.attributes);
  return html`
    <${Facts} pairs=${[
      ...CONTACT_FIELDS.map(([name, label]) => [t(label), written(contact[name])]),
      [t("Tags"), contact.tags.length > 0 && html`<${Tags} tags=${contact.tags} />`],
      [t("Lists"), contact.list_ids.length > 0 && html`<ul class="plain">${contact.list_ids.map((id) => html`<li key=${id}><a href=${href(`lists/${id}`)} dir="auto">${listName(id)}</a></li>`)}</ul>`],
      [t("Added"), html`<${Time} at=${contact.created_at} />`],
      [t("Changed"), html`<${Time} at=${contact.updated_at} />`],
      [t("Id"), html`<span class="actions"><code>${contact.id}</code> <${Copy} text=${contact.id} /></span>`],
    ].filter(([, value]) => value)} />
    <h3>${t("Attributes")}</h3>
    ${attributes.length
      ? html`<${Facts} pairs=${attributes.map(([key, value]) => [html`<span dir="auto">${label(key)}</span>`, html`<${Written}>${shown(value)}</${Written}>`])} />`
      : html`<p class="muted">${t("Nothing else is known. What your program sends as attributes stands here, for segments and templates.")}</p>`}`;
}

function Consent({ contact: { consent } }) {
  return html`<section class="card" aria-labelledby="consent"><h2 id="consent">${t("Consent")}</h2>
    <${Facts} pairs=${[[t("Email marketing"), consentWord(consent.marketing_email)], [t("SMS marketing"), consentWord(consent.sms)]]} />
    <p class="help">${t("Campaigns go only to those who agreed. Transactional messages, like receipts, need no consent.")}</p></section>`;
}
