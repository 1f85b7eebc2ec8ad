// Contacts: rows with filters, a form for a new one. One of them is drawn by contact.js.
import { allowed } from "../lib/api.js";
import { addressOf, contactColumns } from "../lib/contacts.js";
import { Later } from "../lib/later.js";
import { Filters, filtersOf, List } from "../lib/table.js";
import { changeQuery, go, href } from "../lib/route.js";
import { announce, Empty, Head, html, t, Time, useCall } from "../lib/ui.js";
import { ContactForm } from "./contact_form.js";

const FILTERS = ["q", "email", "phone", "external_id", "tag", "list_id", "segment_id", "updated_since"];

export default function Contacts({ segments, query }) {
  return segments[0] ? html`<${Later} load=${() => import("./contact.js")} id=${segments[0]} query=${query} />` : html`<${All} query=${query} />`;
}

function All({ query }) {
  const lists = useCall(allowed("listLists") && "listLists", { query: { limit: 200 } }, { quiet: true });
  const segments = useCall(allowed("listSegments") && "listSegments", { query: { limit: 200 } }, { quiet: true });
  const named = (page) => (page.data?.data ?? []).map(({ id, name }) => [id, name]);
  const isNew = query.new && allowed("upsertContact");
  return html`
    <${Head} title=${t("Contacts")} text=${t("The people you write to: their addresses, what you know about them, and what they agreed to.")}>
      ${allowed("createImport") && html`<a class="button" href=${href("import")}>${t("Import")}</a>`}
      ${allowed("upsertContact") && !isNew && html`<a class="button primary" href=${href("contacts", { ...query, new: 1 })}>${t("New contact")}</a>`}
    </${Head}>
    ${isNew && html`<section class="card" aria-labelledby="new"><h2 id="new">${t("New contact")}</h2><${New} /></section>`}
    <${Filters} fields=${[
      { name: "q", label: t("Search") },
      { name: "tag", label: t("Tag") },
      { name: "list_id", label: t("List"), options: named(lists) },
      { name: "segment_id", label: t("Segment"), options: named(segments) },
    ]} more=${[
      { name: "email", label: t("Email") },
      { name: "phone", label: t("Phone") },
      { name: "external_id", label: t("External id") },
      { name: "updated_since", label: t("Changed since"), type: "date" },
    ]}><p class="help">${t("Search finds a part of an address, a name or an external id; the other fields are compared as a whole.")}</p></${Filters}>
    <${List} id="listContacts" args=${{ query: filtersOf(query, FILTERS) }} filters=${FILTERS} caption=${t("Contacts")}
      words=${["contact", "contacts"]} nameOf=${addressOf}
      rowHref=${(row) => href(`contacts/${row.id}`)}
      columns=${[...contactColumns(), { label: t("Added"), cell: (row) => html`<${Time} at=${row.created_at} />` }]}
      empty=${html`<${NoContacts} />`} />`;
}

function New() {
  return html`<${ContactForm} id="upsertContact" submit=${t("Save")}
    onDone=${(contact) => {
      announce(t("{address} is saved", { address: addressOf(contact) }));
      go(`contacts/${contact.id}`);
    }}
    extra=${html`<button type="button" onClick=${() => changeQuery({ new: null })}>${t("Cancel")}</button>`} />`;
}

function NoContacts() {
  if (!allowed("upsertContact")) return html`<${Empty} title=${t("No contacts yet")} text=${t("Contacts that your program or your colleagues add appear here.")} />`;
  return html`<${Empty} title=${t("No contacts yet")} text=${t("Import a CSV file, add one by hand, or let your program add them:")}
    action=${t("Import a CSV file")} href=${href("import")}
    example=${"messaging contact upsert --email ann@example.com"} />`;
}
