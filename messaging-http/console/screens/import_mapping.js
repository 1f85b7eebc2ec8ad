// What the columns of a file are, seen on its first rows; then the import begins.
import { allowed, call } from "../lib/api.js";
import { TARGETS, withColumn } from "../lib/csv.js";
import { sha256 } from "../lib/sha256.js";
import { beginUpload } from "../lib/uploads.js";
import { go, href } from "../lib/route.js";
import { Table } from "../lib/table.js";
import { count, Failed, html, t, useCall, useState } from "../lib/ui.js";

const IDENTIFIERS = ["external_id", "email", "phone"];
const NEW = "new";
const SKIP = "";
// The column that is put in front of the others when everybody goes onto one list.
const ON_LIST = "put_on_list";
const CONSENT = "consent.marketing_email";

// Templates and filters tell Plan from plan; small letters are what people type there.
const nameFor = (header) => keyOf(header.trim().toLowerCase());

const keyOf = (header) => header.replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^[^A-Za-z_]+/, "").slice(0, 64) || "column";

// Other spellings of what many files call these columns.
const ALIASES = {
  "e-mail": "email", mail: "email", "email address": "email", "e-mail address": "email", email_address: "email", telephone: "phone", mobile: "phone",
  "phone number": "phone", id: "external_id", user_id: "external_id", language: "locale", time_zone: "timezone", list: "list_ids", lists: "list_ids", tag: "tags",
};
// These say who agreed, when their values are answers.
const CONSENTS = /^(email |marketing )?(consent|opt[-_ ]?in|newsletter|subscribed)$/;
const ANSWER = /^(yes|no|true|false|0|1)?$/i;

// What a column is at first: a field by its name, a declared or a new attribute otherwise.
function guess(header, fields, taken, values) {
  const name = header.trim().toLowerCase();
  const target = TARGETS.find(([known]) => known === name)?.[0] ?? ALIASES[name];
  if (target && !taken.includes(target)) return target;
  if (CONSENTS.test(name) && values.every((value) => ANSWER.test(value.trim())) && !taken.includes(CONSENT)) return CONSENT;
  if (name.startsWith("attributes.")) return `attributes.${keyOf(header.trim().slice(11))}`;
  const field = fields.find(({ key, label }) => key.toLowerCase() === name || label?.toLowerCase() === name);
  return header ? `attributes.${field?.key ?? nameFor(header)}` : SKIP;
}

const nameOf = (target) => t(TARGETS.find(([one]) => one === target)[1]);

export function Mapping(props) {
  const fields = useCall(allowed("listCustomFields") && "listCustomFields", { query: { limit: 200 } }, { quiet: true });
  const lists = useCall(allowed("listLists") && "listLists", { query: { limit: 200 } }, { quiet: true });
  if (fields.loading || lists.loading) return null;
  return html`<${Drawn} ...${props} fields=${fields.data?.data ?? []} lists=${lists.data?.data ?? []} />`;
}

function Drawn({ file, sample: { header, rows, total, delimiter }, fields, lists, list: wanted = "" }) {
  const [targets, setTargets] = useState(() => header.reduce((all, name) => [...all, guess(name, fields, all, rows.map((row) => row[all.length] ?? ""))], []));
  const [keys, setKeys] = useState(["external_id", "email", "phone"]);
  const [list, setList] = useState(wanted);
  const [state, setState] = useState({});
  const change = (nth, target) => setTargets(targets.map((old, at) => (at === nth ? target : old)));
  const identifiers = IDENTIFIERS.filter((name) => targets.includes(name));
  const twice = targets.filter((target, at) => target && targets.indexOf(target) !== at);
  const hasLists = targets.includes("list_ids");
  const used = targets.filter(Boolean).length;
  // With one there is nothing to choose.
  const matched = identifiers.length === 1 ? identifiers : keys.filter((key) => identifiers.includes(key));
  const run = async () => {
    setState({ busy: t("Reading the file") });
    try {
      const mapping = Object.fromEntries(header.map((name, at) => [name, targets[at] || null]).filter(([name]) => name));
      let sent = file;
      if (list && !hasLists) {
        sent = await withColumn(file, delimiter, ON_LIST, list);
        mapping[ON_LIST] = "list_ids";
      }
      const sum = await sha256(sent);
      setState({ busy: t("Beginning") });
      const made = await call("createImport", { body: { filename: file.name, size_bytes: sent.size, sha256: sum, mapping, dedup_keys: matched } });
      beginUpload(made, sent);
      go("import", { id: made.import_id });
    } catch (error) {
      // What the browser says when a file was changed or moved after it was chosen.
      setState(error.status === undefined ? { fault: t("The file cannot be read any more. Choose it again.") } : { error });
    }
  };
  return html`<section class="stack" aria-labelledby="columns"><h2 id="columns">${t("What the columns are")}</h2>
    <p>${total === null ? t("The first rows of the file:") : t("{rows} in the file; the first of them:", { rows: count(total, "row", "rows") })}</p>
    <${Table} caption=${t("Columns of the file")} rows=${header.map((name, nth) => ({ id: nth, name }))} columns=${[
      { label: t("Column"), cell: ({ name }) => html`<strong dir="auto">${name || t("(no name)")}</strong>` },
      { label: t("First values"), wide: true, cell: ({ id }) => html`<${Values} rows=${rows} nth=${id} />` },
      { label: t("Becomes"), cell: ({ id, name }) => html`<${Target} column=${name} value=${targets[id]} fields=${fields} onChange=${(target) => change(id, target)} />` },
    ]} />
    <fieldset><legend>${t("Who is the same person")}</legend>
      ${identifiers.length === 0 && html`<p class="fault-text">${t("Choose a column above for the email, phone or external id: a contact needs one of them.")}</p>`}
      ${identifiers.length === 1 && html`<p>${t("A row updates the contact with the same {name}, or adds a new one.", { name: nameOf(identifiers[0]) })}</p>`}
      ${identifiers.length > 1 && html`<p>${t("A row updates the contact that has the same of these, tried in this order, or adds a new one.")}</p>
        <div class="actions">${identifiers.map((name) => html`<div class="field check" key=${name}><label><input type="checkbox" checked=${keys.includes(name)}
          onChange=${(event) => setKeys(IDENTIFIERS.filter((one) => (one === name ? event.target.checked : keys.includes(one))))} /> <span>${nameOf(name)}</span></label></div>`)}</div>`}
      ${identifiers.length > 0 && !matched.length && html`<p class="fault-text" role="status">${t("Choose at least one.")}</p>`}
    </fieldset>
    ${!hasLists && lists.length > 0 && html`<div class="field"><label for="on-list">${t("Put everybody on a list")}</label>
      <select id="on-list" value=${list} onChange=${(event) => setList(event.target.value)}><option value="">${t("No list")}</option>
        ${lists.map(({ id, name }) => html`<option key=${id} value=${id} selected=${id === list}>${name}</option>`)}</select></div>`}
    ${!hasLists && !lists.length && allowed("createList") && html`<p><strong>${t("Put everybody on a list")}</strong> ${t("There are no lists yet.")} <a href=${href("lists", { new: 1 })}>${t("Make one")}</a></p>`}
    ${targets.includes("email") && !targets.includes(CONSENT) && html`<p class="notice">${t("No column says who agreed to marketing. Campaigns go only to contacts with consent: choose “Consent to email marketing” for the column that holds it.")}</p>`}
    ${twice.length > 0 && html`<div class="notice fault" role="alert"><p>${t("Two columns become the same thing: {names}. Skip one of them.", { names: [...new Set(twice)].join(", ") })}</p></div>`}
    <details><summary>${t("What values look like")}</summary><ul>
      <li>${t("Phones with their country: +14155550123.")}</li>
      <li>${t("Several tags in one cell are separated by ; or |.")}</li>
      <li>${t("Consent: yes, no, true, false, 1 or 0; an empty cell changes nothing.")}</li>
      <li>${t("A column of lists holds their ids; each stands on the page of its list.")} <a href=${href("lists")}>${t("Lists")}</a></li></ul></details>
    ${state.error && html`<${Failed} error=${state.error} />`}
    ${state.fault && html`<p class="fault-text" role="alert">${state.fault}</p>`}
    <div class="actions"><button type="button" class="primary" data-operation="createImport" onClick=${run} disabled=${Boolean(state.busy) || !matched.length || twice.length > 0}>
        ${state.busy ?? t("Import")}</button>
      <span class="muted">${t("{used} of {columns} are used", { used: count(used, "column", "columns"), columns: header.length })}</span></div>
  </section>`;
}

function Values({ rows, nth }) {
  const values = rows.map((row) => row[nth] ?? "").filter(Boolean).slice(0, 3);
  if (!values.length) return html`<span class="muted">${t("empty")}</span>`;
  return html`<ul class="plain muted">${values.map((value, at) => html`<li key=${at} dir="auto">${value.length > 60 ? `${value.slice(0, 60)}…` : value}</li>`)}</ul>`;
}

function Target({ column, value, fields, onChange }) {
  const own = nameFor(column);
  const isAttribute = value.startsWith("attributes.");
  const key = isAttribute ? value.slice(11) : "";
  const isDeclared = fields.some((field) => field.key === key);
  const chosen = isAttribute && !isDeclared ? NEW : value;
  const choose = (target) => onChange(target === NEW ? `attributes.${own}` : target);
  return html`<div class="stack"><select aria-label=${t("{column} becomes", { column: column || t("The column") })} value=${chosen} onChange=${(event) => choose(event.target.value)}>
      <option value=${SKIP} selected=${chosen === SKIP}>${t("Skip")}</option>
      <optgroup label=${t("Fields of a contact")}>${TARGETS.map(([target, text]) => html`<option key=${target} value=${target} selected=${chosen === target}>${t(text)}</option>`)}</optgroup>
      <optgroup label=${t("Attributes")}>
        ${fields.map((field) => html`<option key=${field.key} value=${`attributes.${field.key}`} selected=${chosen === `attributes.${field.key}`}>${field.label || field.key}</option>`)}
        <option value=${NEW} selected=${chosen === NEW}>${t("New attribute")}</option></optgroup></select>
    ${chosen === NEW && html`<label class="field"><span class="help">${t("Its name")}</span>
      <input value=${key} autocomplete="off" onInput=${(event) => onChange(`attributes.${event.target.value.replace(/[^A-Za-z0-9_-]+/g, "_")}`)} /></label>`}</div>`;
}
