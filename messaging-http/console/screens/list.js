// One list: its name, who is on it, adding and removing.
import { allowed, call } from "../lib/api.js";
import { addressOf, contactColumns } from "../lib/contacts.js";
import { Field, Form } from "../lib/form.js";
import { FirstFocus, keepFocus, useHeading } from "../lib/focus.js";
import { Delete } from "../lib/in_use.js";
import { changeQuery, go, href } from "../lib/route.js";
import { Filters, List } from "../lib/table.js";
import { Action, announce, Copy, count, Empty, Failed, Head, html, Loaded, t, Time, useCall, useState } from "../lib/ui.js";

export default function OneList({ id, query }) {
  const found = useCall("getList", { path: { id } });
  useHeading(Boolean(found.data));
  if (!found.data) {
    return html`<${Head} title=${t("List")} back=${href("lists")} backText=${t("Lists")} /><${Loaded} of=${found} skeleton=${8} />`;
  }
  return html`<${Loaded} of=${found}>${(list) => html`<${Drawn} list=${list} query=${query} reload=${found.reload} />`}</${Loaded}>`;
}

function Drawn({ list, query, reload }) {
  const [changes, setChanges] = useState(0);
  const { id, name } = list;
  const isPublic = list.visibility === "public";
  const isRenamed = query.rename && allowed("updateList");
  const isAdding = query.add && allowed("addListContacts");
  const changed = () => {
    setChanges((n) => n + 1);
    reload();
  };
  const stop = () => changeQuery({ rename: null });
  return html`
    <${Head} title=${name} back=${href("lists")} backText=${t("Lists")} text=${count(list.contact_count, "contact", "contacts")}>
      ${allowed("addListContacts") && !isAdding && html`<button type="button" class="primary" onClick=${() => changeQuery({ add: 1 })}>${t("Add contacts")}</button>`}
      ${allowed("updateList") && !isRenamed && html`<button type="button" onClick=${() => changeQuery({ rename: 1 })}>${t("Change")}</button>`}
      <${Delete} id="deleteList" path=${{ id }} onDone=${() => go("lists")} ask=${{
        title: t("Delete this list?"),
        text: list.contact_count
          ? t("{contacts} lose their place on it; they stay as contacts. The list cannot be brought back.", { contacts: count(list.contact_count, "contact", "contacts") })
          : t("It is empty. It cannot be brought back."),
        action: t("Delete"), name: list.contact_count ? name : undefined,
      }} />
    </${Head}>
    ${isRenamed && html`<section class="card" aria-labelledby="rename"><h2 id="rename">${t("Change")}</h2>
      <${Form} id="updateList" path=${{ id }} initial=${{ name, visibility: list.visibility, opt_in: list.opt_in, description: list.description }}
        body=${(values) => ({ ...values, description: values.description || null })} done=${t("Saved")} onDone=${() => { stop(); reload(); }}
        extra=${html`<button type="button" onClick=${stop}>${t("Cancel")}</button>`}>
        <${Field} name="name" label=${t("Name")} dir="auto" autocomplete="off" required />
        <${Field} name="visibility" kind="select" label=${t("Visibility")} options=${[["private", t("Private")], ["public", t("Public")]]}
          help=${t("Readers of a public list subscribe by a form and leave it themselves.")} />
        <${Field} name="opt_in" kind="select" label=${t("Who subscribes by a form")} options=${[["single", t("is on the list at once")], ["double", t("confirms by a link first")]]} />
        <${Field} name="description" label=${t("Description for readers")} dir="auto" autocomplete="off" optional />
        <${FirstFocus} /></${Form}></section>`}
    ${isAdding && html`<${Add} id=${id} onDone=${changed} />`}
    <section class="stack" aria-labelledby="members"><h2 id="members">${t("Contacts on this list")}</h2>
      ${isPublic && html`<${Filters} fields=${[{ name: "status", label: t("Status"), all: t("Confirmed"), options: STATUSES }]} />`}
      <${List} id="listListContacts" args=${{ path: { id }, query: { status: isPublic ? query.status : undefined } }} reloads=${changes}
        caption=${t("Contacts on this list")} filters=${["status"]}
        words=${["contact", "contacts"]} nameOf=${addressOf} onChange=${reload}
        rowHref=${(row) => href(`contacts/${row.id}`)} columns=${isPublic ? [...contactColumns(), SINCE] : contactColumns()}
        actions=${allowed("removeListContact") && ((row) => html`<${Action} id="removeListContact" className="small"
          args=${{ path: { id, contact_id: row.id } }} done=${t("{address} is off the list", { address: addressOf(row) })} onDone=${() => { changed(); keepFocus(); }}>
          ${t("Remove")}<span class="sr"> ${addressOf(row)}</span></${Action}>`)}
        empty=${html`<${Empty} title=${t("Nobody is on this list")}
          text=${allowed("addListContacts") ? t("Add contacts by their addresses, or import a file onto it.") : t("Contacts that are put on it appear here.")}
          action=${allowed("addListContacts") && !isAdding && t("Add contacts")} onClick=${() => changeQuery({ add: 1 })}
          children=${allowed("createImport") && html`<p><a href=${href("import", { list: id })}>${t("Import a file onto this list")}</a></p>`}
          example=${allowed("addListContacts") && `messaging list add ${id} --contact-ids con_…`} />`} />
    </section>
    <p class="muted actions">${t("Id of this list")} <code>${id}</code> <${Copy} text=${id} /></p>`;
}

// Those who are no members of a public list, but were asked to confirm or have left.
const STATUSES = [["unconfirmed", t("Unconfirmed")], ["left", t("Left the list")]];
const SINCE = { label: t("Since"), cell: (row) => row.membership?.since && html`<${Time} at=${row.membership.since} />` };

const PIECES = /[\s,;]+/;
const MAXIMUM = 100;

// Addresses that are typed or pasted become ids by looking each one up; the ids are added with one call.
function Add({ id, onDone }) {
  const [text, setText] = useState("");
  const [state, setState] = useState({});
  const run = async (event) => {
    event.preventDefault();
    const wanted = [...new Set(text.split(PIECES).filter(Boolean))];
    if (!wanted.length) return;
    if (wanted.length > MAXIMUM) {
      setState({ fault: t("At most {number} at a time. For more, import a file.", { number: MAXIMUM }) });
      return;
    }
    setState({ busy: true });
    try {
      const found = await lookUp(wanted);
      const unknown = wanted.filter((one) => !found.has(one));
      const ids = [...new Set(found.values())];
      const answer = ids.length ? await call("addListContacts", { path: { id }, body: { contact_ids: ids } }) : null;
      const said = answer && [
        t("{contacts} added", { contacts: count(answer.added, "contact", "contacts") }),
        answer.already_member ? t("{number} on it already", { number: answer.already_member }) : "",
      ].filter(Boolean).join(", ");
      if (said) announce(said);
      setText(unknown.join(" "));
      setState({ unknown, said });
      if (answer) onDone();
    } catch (error) {
      setState({ error });
    }
  };
  const { busy, unknown = [], said, fault, error } = state;
  return html`<section class="card" aria-labelledby="add"><h2 id="add">${t("Add contacts")}</h2>
    <form class="form" onSubmit=${run}>
      <div class="field"><label for="who">${t("Emails, phones or ids")}</label>
        <textarea id="who" rows="2" dir="auto" value=${text} aria-describedby="who-help" onInput=${(event) => setText(event.target.value)}></textarea>
        <${FirstFocus} /><p class="help" id="who-help">${t("Of contacts that are there already, separated by spaces or lines.")}</p></div>
      ${error && html`<${Failed} error=${error} />`}
      <div role="status" hidden=${!fault && !said && !unknown.length}>
        ${fault && html`<p class="fault-text">${fault}</p>`}
        ${said && html`<p>${said}.</p>`}
        ${unknown.length > 0 && html`<p class="fault-text">${t("No contact has these:")} <span dir="auto">${unknown.join(", ")}</span>.
          ${allowed("upsertContact") && html` <a href=${href("contacts", { new: 1 })}>${t("New contact")}</a>`}</p>`}
      </div>
      <div class="actions"><button type="submit" class="primary" disabled=${busy || !text.trim()} data-operation="addListContacts">${busy ? t("One moment") : t("Add")}</button>
        <button type="button" onClick=${() => changeQuery({ add: null })}>${t("Close")}</button></div>
    </form></section>`;
}

// What was typed → the id of its contact. Ids are taken as they are: the server says when one is unknown.
async function lookUp(wanted) {
  const found = new Map();
  for (const one of wanted) {
    if (one.startsWith("con_")) {
      found.set(one, one);
      continue;
    }
    const query = one.includes("@") ? { email: one } : /^\+\d+$/.test(one) ? { phone: one } : { external_id: one };
    const { data } = await call("listContacts", { query, quiet: true });
    if (data[0]) found.set(one, data[0].id);
  }
  return found;
}
