// Forms by which readers subscribe to public lists: all of them, and a new one. One of them is drawn by form.js.
import { allowed } from "../lib/api.js";
import { FirstFocus } from "../lib/focus.js";
import { Field, Form } from "../lib/form.js";
import { changeQuery, go, href } from "../lib/route.js";
import { List } from "../lib/table.js";
import { Empty, Head, html, Loading, number, t, Time, useEffect, useState } from "../lib/ui.js";
import { Written } from "../lib/contacts.js";
import { PublicLists } from "../lib/public_lists.js";

export default function Forms({ segments, query }) {
  return segments[0] ? html`<${One} key=${segments[0]} id=${segments[0]} />` : html`<${All} query=${query} />`;
}

function One({ id }) {
  const [module, setModule] = useState(null);
  useEffect(() => { import("./form.js").then(setModule); }, []);
  return module ? html`<${module.default} id=${id} />` : html`<${Loading} />`;
}

function All({ query }) {
  const isNew = query.new && allowed("createForm");
  return html`
    <${Head} title=${t("Forms")} text=${t("By a form readers subscribe to public lists themselves, on a page of this server or on yours.")}>
      ${allowed("createForm") && !isNew && html`<a class="button primary" href=${href("forms", { new: 1 })}>${t("New form")}</a>`}
    </${Head}>
    ${isNew && html`<section class="card" aria-labelledby="new"><h2 id="new">${t("New form")}</h2>
      <${Form} id="createForm" initial=${{ list_ids: [] }} submit=${t("Create form")} done=${t("The form is there")} onDone=${(form) => go(`forms/${form.id}`)}
        extra=${html`<button type="button" onClick=${() => changeQuery({ new: null })}>${t("Cancel")}</button>`}>
        <${Field} name="name" label=${t("Title")} dir="auto" autocomplete="off" placeholder=${t("Our newsletter")} />
        <${PublicLists} name="list_ids" label=${t("Lists")} />
        <${FirstFocus} />
      </${Form}></section>`}
    <${List} id="listForms" caption=${t("Forms")} rowHref=${(row) => href(`forms/${row.id}`)}
      columns=${[
        { label: t("Title"), cell: (row) => html`<${Written}>${row.name}</${Written}>` },
        { label: t("Lists"), numeric: true, cell: (row) => number(row.list_ids.length) },
        { label: t("Created"), cell: (row) => html`<${Time} at=${row.created_at} />` },
      ]}
      empty=${html`<${NoForms} isNew=${isNew} />`} />`;
}

function NoForms({ isNew }) {
  const text = t("A form has a page that you can link to, and HTML for a page of yours.");
  if (!allowed("createForm") || isNew) return html`<${Empty} title=${t("No forms yet")} text=${text} />`;
  return html`<${Empty} title=${t("No forms yet")} text=${text} action=${t("New form")} href=${href("forms", { new: 1 })}
    example="messaging form create --name Newsletter --list-ids lst_…" />`;
}
