// Custom fields: the attributes of contacts whose type the server checks.
import { allowed } from "../lib/api.js";
import { Action, confirm, dialog, Empty, Head, html, t, Time, useState } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { changeQuery, href } from "../lib/route.js";
import { List } from "../lib/table.js";
import { useFirstFocus } from "../lib/focus.js";

const TYPES = [
  ["string", "Text"], ["number", "Number"], ["boolean", "Yes or no"], ["date", "Date"], ["datetime", "Date and time"], ["string_array", "Several texts"],
];

const EXAMPLES = { string: "pro", number: "31", boolean: "true", date: "2026-01-31", datetime: "2026-01-31T09:15:00Z", string_array: "[\"news\", \"offers\"]" };

const typeOf = (type) => t(TYPES.find(([id]) => id === type)?.[1] ?? type);

export default function Fields({ query }) {
  const [reloads, setReloads] = useState(0);
  const again = () => setReloads((n) => n + 1);
  const isNew = query.new && allowed("createCustomField");
  const isChangeable = allowed("updateCustomField") || allowed("deleteCustomField");
  return html`
    <${Head} title=${t("Fields")} text=${t("Attributes of your contacts with a type. A contact may have other attributes too; those of a field are checked.")}>
      ${allowed("createCustomField") && !isNew && html`<a class="button primary" href=${href("fields", { new: 1 })}>${t("New field")}</a>`}
    </${Head}>
    ${isNew && html`<${NewField} onDone=${() => { changeQuery({ new: null }); again(); }} />`}
    <${List} id="listCustomFields" reloads=${reloads} caption=${t("Custom fields")} columns=${columns()} empty=${html`<${NoFields} />`}
      actions=${isChangeable && ((row) => html`<${Rename} row=${row} onDone=${again} /> <${Delete} row=${row} onDone=${again} />`)} />`;
}

const columns = () => [
  { label: t("Name"), cell: (row) => html`<strong dir="auto">${row.label || row.key}</strong>` },
  { label: t("Key"), cell: (row) => html`<code>${row.key}</code>` },
  { label: t("Type"), cell: (row) => typeOf(row.type) },
  { label: t("In templates"), cell: (row) => html`<code>${`{{ ${row.key} }}`}</code>` },
  { label: t("Created"), cell: (row) => html`<${Time} at=${row.created_at} />` },
];

function NoFields() {
  return html`<${Empty} title=${t("No fields yet")} text=${t("Declare what you know of your contacts, for instance their plan: wrong values are refused then, and segments offer the field.")}
    action=${allowed("createCustomField") && t("New field")} href=${href("fields", { new: 1 })}
    example="messaging custom-field create --key plan --type string --label Plan" />`;
}

function NewField({ onDone }) {
  const [type, setType] = useState("string");
  const part = useFirstFocus();
  return html`<section ref=${part} class="card" aria-labelledby="new-field"><h2 id="new-field">${t("New field")}</h2>
    <${Form} id="createCustomField" initial=${{ key: "", type: "string", label: "" }} onDone=${onDone} done=${t("The field is created")} submit=${t("Create field")} refusal=${taken}
        onChange=${(values) => setType(values.type)} extra=${html`<a class="button" href=${href("fields")}>${t("Cancel")}</a>`}>
      <div class="row-of-fields">
        <${Field} name="key" label=${t("Key")} autocomplete="off" spellcheck=${false} help=${t("As your program writes it, for instance plan. It cannot be changed later.")} />
        <${Field} name="type" label=${t("Type")} kind="select" options=${TYPES.map(([id, name]) => [id, t(name)])} help=${t("Written as {example}. It cannot be changed later.", { example: EXAMPLES[type] ?? "" })} /></div>
      <${Field} name="label" label=${t("Name")} help=${t("What people call it; the key, if left out.")} />
    </${Form}></section>`;
}

const taken = ({ code }) => (code === "already_exists" ? { text: t("There is a field with this key already.") } : null);

function Rename({ row, onDone }) {
  if (!allowed("updateCustomField")) return null;
  const open = () => dialog((close) => html`<${Form} id="updateCustomField" path=${{ id: row.id }} initial=${{ label: row.label ?? "" }} body=${({ label }) => ({ label: label || null })}
    done=${t("The name is changed")} onDone=${() => { close(); onDone(); }}>
    <${Field} name="label" label=${t("Name")} help=${t("What people call {key}.", { key: row.key })} autofocus /></${Form}>`, { title: t("Rename the field {key}", { key: row.key }) });
  return html`<button type="button" class="small" data-operation="updateCustomField" onClick=${open}>${t("Rename")}<span class="sr"> ${row.key}</span></button>`;
}

function Delete({ row, onDone }) {
  const before = () => confirm({
    title: t("Delete the field {key}?", { key: row.key }),
    text: t("The values that contacts have stay; from now on they are no longer checked, and the field is not offered in forms."),
    action: t("Delete"),
  });
  return html`<${Action} id="deleteCustomField" className="small" args=${{ path: { id: row.id } }} before=${before} onDone=${onDone}
    done=${t("The field {key} is deleted", { key: row.key })}>${t("Delete")}<span class="sr"> ${row.key}</span></${Action}>`;
}
