// Automations: the list, a new one from an example or from nothing; one of them and its runs are modules of their own.
import { allowed } from "../lib/api.js";
import { Action, Badge, Code, Head, html, t, Time } from "../lib/ui.js";
import { Field, Form, useForm } from "../lib/form.js";
import { Filters, List } from "../lib/table.js";
import { go, href } from "../lib/route.js";
import { Later } from "../lib/later.js";
import { useFirstFocus } from "../lib/focus.js";
import { triggerText, useNames } from "../lib/automation.js";
import { EXAMPLES } from "../lib/automation_examples.js";

const STATUSES = ["draft", "active", "paused"];

export default function Automations({ segments, query }) {
  const [id, part, runId] = segments;
  if (id && part === "runs" && runId) return html`<${Later} key="run" load=${() => import("./run.js")} id=${id} runId=${runId} />`;
  if (id) return html`<${Later} key="one" load=${() => import("./automation.js")} id=${id} query=${query} />`;
  return html`<${Overview} query=${query} />`;
}

function Overview({ query }) {
  const { names } = useNames(["lists", "segments"]);
  const isNew = query.new && allowed("createAutomation");
  const columns = [
    { label: t("Name"), cell: (row) => html`<span dir="auto">${row.name}</span>` },
    { label: t("Status"), cell: (row) => html`<${Badge} status=${row.status} />` },
    { label: t("Begins"), wide: true, cell: (row) => html`<span dir="auto">${triggerText(row.trigger, names)}</span>` },
    { label: t("Version"), numeric: true, cell: (row) => row.version },
    { label: t("Activated"), cell: (row) => html`<${Time} at=${row.activated_at} />` },
    { label: t("Changed"), cell: (row) => html`<${Time} at=${row.updated_at} />` },
  ];
  return html`
    <${Head} title=${t("Automations")} text=${t("Messages and other steps that happen by themselves, for each contact at its own time.")}>
      ${allowed("createAutomation") && !isNew && html`<a class="button primary" href=${href("automations", { new: 1 })}>${t("New automation")}</a>`}
    </${Head}>
    ${isNew && html`<${NewAutomation} />`}
    <${Filters} fields=${[{ name: "status", label: t("Status"), options: STATUSES.map((status) => [status, t(status)]) }]} />
    <${List} id="listAutomations" args=${{ query: { status: query.status } }} columns=${columns} caption=${t("Automations")}
      rowHref=${(row) => href(`automations/${row.id}`)} filters=${["status"]} empty=${!isNew && html`<${NoAutomations} />`} />`;
}

const opened = (automation) => go(`automations/${automation.id}`);

function NoAutomations() {
  return html`<section class="stack" aria-labelledby="examples"><h2 id="examples">${t("No automations yet")}</h2>
    <p>${allowed("createAutomation") ? t("Begin with an example. It stays a draft, and nothing is sent, until you activate it.") : t("Who may change automations can begin with an example.")}</p>
    <div class="grid" style=${{ gridTemplateColumns: "repeat(auto-fit, minmax(min(15rem, 100%), 1fr))" }}>${EXAMPLES.map((one) => html`<div class="card" key=${one.id}><h3>${t(one.name)}</h3><p>${t(one.text)}</p>
      <${Action} id="createAutomation" args=${{ body: { name: t(one.name), ...one.body } }} done=${t("A draft is created")} onDone=${opened}>${t("Begin with {name}", { name: t(one.name) })}</${Action}></div>`)}</div>
    ${allowed("createAutomation") && html`<${Code} text=${"messaging automation create --json-body automation.json"} label=${t("Command")} />`}</section>`;
}

function NewAutomation() {
  const part = useFirstFocus();
  return html`<section ref=${part} class="card" aria-labelledby="new"><h2 id="new">${t("New automation")}</h2>
    <${Form} id="createAutomation" initial=${{ name: "", example: "" }} body=${({ name, example }) => ({ name, ...ALL.find(({ id }) => id === example).body })} onDone=${opened}
        done=${t("A draft is created")} submit=${t("Create draft")} extra=${html`<a class="button" href=${href("automations")}>${t("Cancel")}</a>`}>
      <${Field} name="name" label=${t("Name")} autocomplete="off" />
      <${Choices} />
      <p class="help">${t("It stays a draft, and nothing is sent, until you activate it.")}</p>
    </${Form}></section>`;
}

const ALL = [{ id: "", name: "Empty", text: "Begin with nothing and add the steps yourself.", body: { trigger: {}, graph: {} } }, ...EXAMPLES];

// An example also names the automation, as long as nobody has typed a name.
function Choices() {
  const [{ name, example }, change] = useForm();
  const choose = (one) => {
    if (!name || EXAMPLES.some((other) => t(other.name) === name)) change("name", one.id ? t(one.name) : "");
    change("example", one.id);
  };
  return html`<fieldset><legend>${t("Begin with")}</legend>${ALL.map((one) => html`<div class="field check" key=${one.id}><label>
    <input type="radio" name="example" value=${one.id} checked=${one.id === example} onChange=${() => choose(one)} /> <span><strong>${t(one.name)}</strong><br /><span class="help">${t(one.text)}</span></span></label></div>`)}</fieldset>`;
}
