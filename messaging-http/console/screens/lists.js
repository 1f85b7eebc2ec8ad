// Lists: their names and sizes, a form for a new one. One of them is drawn by list.js.
import { allowed } from "../lib/api.js";
import { Field, Form } from "../lib/form.js";
import { FirstFocus } from "../lib/focus.js";
import { changeQuery, go, href } from "../lib/route.js";
import { Later } from "../lib/later.js";
import { List } from "../lib/table.js";
import { Empty, Head, html, number, t, Time } from "../lib/ui.js";
import { Written } from "../lib/contacts.js";

export default function Lists({ segments, query }) {
  return segments[0] ? html`<${Later} load=${() => import("./list.js")} id=${segments[0]} query=${query} />` : html`<${All} query=${query} />`;
}

function All({ query }) {
  const isNew = query.new && allowed("createList");
  return html`
    <${Head} title=${t("Lists")} text=${t("Who is on a list was put there: by hand, by an import, or by your program.")}>
      ${allowed("createList") && !isNew && html`<a class="button primary" href=${href("lists", { new: 1 })}>${t("New list")}</a>`}
    </${Head}>
    ${isNew && html`<section class="card" aria-labelledby="new"><h2 id="new">${t("New list")}</h2>
      <${Form} id="createList" done=${t("The list is there")} onDone=${(list) => go(`lists/${list.id}`)}
        extra=${html`<button type="button" onClick=${() => changeQuery({ new: null })}>${t("Cancel")}</button>`}>
        <${Field} name="name" label=${t("Name")} dir="auto" autocomplete="off" />
        <${FirstFocus} />
      </${Form}></section>`}
    <${List} id="listLists" caption=${t("Lists")} rowHref=${(row) => href(`lists/${row.id}`)}
      columns=${[
        { label: t("Name"), cell: (row) => html`<${Written}>${row.name}</${Written}>` },
        { label: t("Visibility"), cell: (row) => t(row.visibility === "public" ? "Public" : "Private") },
        { label: t("Contacts"), numeric: true, cell: (row) => number(row.contact_count) },
        { label: t("Created"), cell: (row) => html`<${Time} at=${row.created_at} />` },
      ]}
      empty=${html`<${NoLists} isNew=${isNew} />`} />`;
}

function NoLists({ isNew }) {
  const text = t("A list is a group that you fill yourself, say of newsletter readers. Groups that fill themselves are segments.");
  if (!allowed("createList") || isNew) return html`<${Empty} title=${t("No lists yet")} text=${text} />`;
  return html`<${Empty} title=${t("No lists yet")} text=${text} action=${t("New list")} href=${href("lists", { new: 1 })}
    example=${"messaging list create --name Newsletter"} />`;
}
