// What is done with a whole contact: write to it, export, merge, erase.
import { allowed, call } from "../lib/api.js";
import { addressOf, nameOf, Written } from "../lib/contacts.js";
import { download } from "../lib/export.js";
import { go, href } from "../lib/route.js";
import { Action, announce, confirm, dialog, Facts, Failed, html, number, t, useState } from "../lib/ui.js";

const COUNTED = 200;

export function ContactActions({ contact, reload }) {
  const { id } = contact;
  const to = contact.email ?? contact.phone;
  return html`
    ${allowed("sendMessage") && to && html`<a class="button" href=${href("send", { channel: contact.email ? "email" : "sms", to })}>${t("Send a message")}</a>`}
    <${Action} id="exportContact" args=${{ path: { id } }} done=${t("The file is in your downloads")}
      onDone=${(found) => download(`contact-${id}.json`, JSON.stringify(found, null, 2), "application/json")}>${t("Export")}</${Action}>
    ${allowed("mergeContacts") && html`<button type="button" data-operation="mergeContacts" onClick=${() => merge(contact, reload)}>${t("Merge")}</button>`}
    <${Action} id="deleteContact" args=${{ path: { id } }} before=${() => mayErase(contact)}
      done=${t("The contact is erased")} onDone=${() => go("contacts")}>${t("Erase")}</${Action}>`;
}

// The effect in numbers, then the name.
async function mayErase(contact) {
  const messages = allowed("listMessages")
    ? await call("listMessages", { query: { contact_id: contact.id, limit: COUNTED }, quiet: true }).catch(() => null)
    : null;
  const counted = messages && (messages.next_cursor ? t("more than {number}", { number: number(COUNTED) }) : number(messages.data.length));
  const lists = contact.list_ids.length;
  return confirm({
    title: t("Erase {address}?", { address: addressOf(contact) }),
    text: html`${t("Everything that is kept about this person goes, and cannot be brought back:")}
      <ul>
        <li>${t("the contact with its attributes, events and automation runs")}</li>
        ${lists > 0 && html`<li>${lists === 1 ? t("its place on 1 list") : t("its place on {number} lists", { number: number(lists) })}</li>`}
        <li>${counted === null ? t("address and content of its messages; their results stay in the statistics")
          : t("address and content of its messages ({number}); their results stay in the statistics", { number: counted })}</li>
      </ul>
      ${contact.suppressed_channels.length > 0 && t("Its suppressions stay, so that nothing is sent to the address by accident.")}`,
    action: t("Erase"),
    name: addressOf(contact),
  });
}

// ---- merge ----

async function merge(contact, reload) {
  const merged = await dialog((close) => html`<${Merge} contact=${contact} close=${close} />`, { title: t("Merge a duplicate into this contact") });
  if (!merged) return;
  announce(t("Merged"));
  reload();
}

async function find(text) {
  if (text.startsWith("con_")) return call("getContact", { path: { id: text }, quiet: true });
  const query = text.includes("@") ? { email: text } : /^\+\d+$/.test(text) ? { phone: text } : { external_id: text };
  const { data } = await call("listContacts", { query, quiet: true });
  return data[0];
}

function Merge({ contact, close }) {
  const [text, setText] = useState("");
  const [state, setState] = useState({});
  const look = async (event) => {
    event.preventDefault();
    const wanted = text.trim();
    if (!wanted) return;
    try {
      const other = await find(wanted);
      if (!other) setState({ fault: t("No contact has this address or id. Type all of it.") });
      else if (other.id === contact.id) setState({ fault: t("That is this contact itself.") });
      else setState({ other });
    } catch (error) {
      setState(error.status === 404 ? { fault: t("No contact has this id.") } : { error });
    }
  };
  const run = async () => {
    setState({ ...state, busy: true, error: null });
    try {
      close(await call("mergeContacts", { body: { primary_id: contact.id, duplicate_id: state.other.id } }));
    } catch (error) {
      setState({ ...state, busy: false, error });
    }
  };
  const { other, fault, error, busy } = state;
  return html`
    <form onSubmit=${look}><div class="field"><label for="duplicate">${t("The duplicate")}</label>
      <p class="help" id="duplicate-help">${t("Its email, phone, external id or contact id")}</p>
      <div class="actions"><input id="duplicate" dir="auto" autofocus value=${text} autocomplete="off" aria-describedby="duplicate-help duplicate-fault"
          aria-invalid=${fault ? "true" : undefined} onInput=${(event) => setText(event.target.value)} />
        <button type="submit">${t("Find")}</button></div>
      <p class="fault-text" id="duplicate-fault" role="status">${fault}</p></div></form>
    ${error && html`<${Failed} error=${error} />`}
    ${other && html`
      <${Facts} pairs=${[
        [t("Disappears"), html`<strong><${Written}>${addressOf(other)}</${Written}></strong>`],
        [t("Name"), nameOf(other) && html`<${Written}>${nameOf(other)}</${Written}>`],
        [t("Stays"), html`<strong><${Written}>${addressOf(contact)}</${Written}></strong>`],
      ]} />
      <p>${t("What the contact that stays lacks is taken from the other one: addresses, attributes, tags, lists. Its messages, events and runs move over. If one of them refused marketing, the refusal counts. This cannot be undone.")}</p>
      <div class="actions"><button type="button" class="danger" disabled=${busy} data-operation="mergeContacts" onClick=${run}>${t("Merge")}</button>
        <button type="button" onClick=${() => close()}>${t("Cancel")}</button></div>`}`;
}
