// "Show as": the calls that filled the screen, as a command, as curl and as JSON. They are the recorded calls, so they
// cannot differ from what was done.
import { operations } from "../operations.js";
import { calls, pathOf, queryOf, urlOf } from "./api.js";
import { Code, dialog, html, t, useState } from "./ui.js";

const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${String(text).replaceAll("'", "'\\''")}'`);

const present = (query) => Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== "");

/** A call as a command of the program. */
export function asCommand({ id, path = {}, query, body }) {
  const { command, path: template } = operations[id];
  const positional = [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).filter((name) => name !== "workspace_id");
  const words = ["messaging", ...command.split(" "), ...positional.map((name) => shell(String(path[name])))];
  for (const [name, value] of present(query)) words.push(`--${name.replaceAll("_", "-")}`, shell(String(value)));
  words.push("--url", shell(urlOf(id, { path, query }).replace(pathOf(id, path) + queryOf(query), "")), "--json");
  if (body === undefined) return words.join(" ");
  return `${words.join(" ")} --json-body - <<'JSON'\n${JSON.stringify(body, null, 2)}\nJSON`;
}

/** A call as curl. */
export function asCurl({ id, path, query, body }) {
  const { method } = operations[id];
  const words = ["curl -sS", method === "GET" ? "" : `-X ${method}`, shell(urlOf(id, { path, query }))].filter(Boolean);
  const lines = [words.join(" "), `-H "Authorization: Bearer $MESSAGING_API_KEY"`];
  if (body !== undefined) lines.push("-H 'Content-Type: application/json'", `-d ${shell(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

/** A logged request as curl: with its own path, and its body where that is kept. */
export function loggedAsCurl({ method, path, request, idempotency_key: key }) {
  const base = urlOf("getHealth").slice(0, -pathOf("getHealth").length);
  const words = ["curl -sS", method === "GET" ? "" : `-X ${method}`, shell(base + path)].filter(Boolean);
  const lines = [words.join(" "), `-H "Authorization: Bearer $MESSAGING_API_KEY"`];
  if (key) lines.push(`-H ${shell(`Idempotency-Key: ${key}`)}`);
  if (request !== null) lines.push("-H 'Content-Type: application/json'", `-d ${shell(JSON.stringify(request))}`);
  return lines.join(" \\\n  ");
}

/** What a call asked and what was answered. */
export function asJson({ id, path, query, body, answer }) {
  const { method } = operations[id];
  const text = JSON.stringify({ request: `${method} ${pathOf(id, path)}${queryOf(query)}`, body, answer }, null, 2);
  return text.length > 100000 ? `${text.slice(0, 100000)}\n…` : text;
}

const FORMS = [["command", "Command", asCommand], ["curl", "curl", asCurl], ["json", "JSON", asJson]];

/** Opens the dialog. `pending` is a call that a button would make. */
export function showAs(pending) {
  const shown = pending ? [pending] : calls();
  return dialog(() => html`<${ShowAs} shown=${shown} />`, { title: t("Show as"), wide: true });
}

function ShowAs({ shown }) {
  const [form, setForm] = useState("command");
  const [, , write] = FORMS.find(([name]) => name === form);
  if (!shown.length) return html`<p>${t("This screen made no call.")}</p>`;
  return html`
    <p class="muted">${t("The calls of this screen. Set MESSAGING_API_KEY to a key that may make them.")}</p>
    <div class="segmented" role="group" aria-label=${t("Form")}>${FORMS.map(([name, label]) => html`
      <button type="button" aria-pressed=${name === form} onClick=${() => setForm(name)}>${label}</button>`)}</div>
    ${shown.map((one, at) => html`<section key=${at} class="shown-call" data-operation=${one.id}>
      <h3>${operations[one.id].command}</h3><${Code} text=${write(one)} label=${operations[one.id].command} /></section>`)}`;
}
