// The versions of a template: what changed in each, and back to an earlier one.
import { Action, Badge, confirm, dialog, Failed, html, Loaded, t, Time, useCall } from "../lib/ui.js";
import { contentOf } from "../lib/channels.js";
import { Table } from "../lib/table.js";
import { Diff } from "../lib/diff.js";

const PAGE = 200;

const LABELS = {
  name: "Name", subject: "Subject", preheader: "Preview text", from_name: "Sender's name", from_email: "Sender's address",
  reply_to: "Reply to", html: "HTML", mjml: "MJML", text: "Text",
};

export default function TemplateVersions({ template, onReverted }) {
  const { id, version: current } = template;
  const found = useCall("listTemplateVersions", { path: { id }, query: { limit: PAGE } });
  return html`<${Loaded} of=${found}>${({ data: rows }) => {
    const before = (row) => rows.find(({ version }) => version === row.version - 1);
    const show = (row) => dialog(() => html`<${Changes} id=${id} version=${row.version} />`, {
      title: t("From version {before} to version {now}", { before: row.version - 1, now: row.version }), wide: true,
    });
    const done = (answer) => {
      onReverted(answer);
      found.reload();
    };
    const ask = (row) => () => confirm({
      title: t("Go back to version {version}?", { version: row.version }),
      text: t("Version {version} is copied into a new version {next}. Nothing is lost: version {current} stays in the list.", { version: row.version, next: current + 1, current }),
      action: t("Revert"),
    });
    return html`
      <p class="muted">${t("Every save is a version. Campaigns keep the version that they began with.")}</p>
      <${Table} caption=${t("Versions")} rows=${rows} rowKey=${(row) => row.version} columns=${[
        { label: t("Version"), cell: (row) => html`${row.version} ${row.version === current && html`<${Badge} status="active">${t("current")}</${Badge}>`}` },
        { label: t("Saved"), cell: (row) => html`<${Time} at=${row.created_at} />` },
        { label: t("Subject"), wide: true, cell: (row) => row.subject && html`<span dir="auto">${row.subject}</span>` },
        { label: t("What it is"), wide: true, cell: (row) => (row.reverted_from ? t("Copy of version {version}", { version: row.reverted_from }) : before(row) ? t("Edited") : row.version === 1 ? t("First version") : t("Edited")) },
      ]} actions=${(row) => html`<div class="actions">
        ${before(row) && html`<button type="button" class="small" onClick=${() => show(row)}>
          ${t("Changes")}<span class="sr"> ${t("of version {version}", { version: row.version })}</span></button>`}
        ${row.version !== current && html`<${Action} id="revertTemplate" className="small" args=${{ path: { id, version: row.version } }} before=${ask(row)} onDone=${done}
          done=${t("Version {version} is current again", { version: row.version })}>${t("Revert")}<span class="sr"> ${t("to version {version}", { version: row.version })}</span></${Action}>`}
      </div>`} />`;
  }}</${Loaded}>`;
}

// Both versions are loaded whole, since the list names only what tells them apart.
function Changes({ id, version }) {
  const before = useCall("getTemplate", { path: { id }, query: { version: version - 1 } });
  const now = useCall("getTemplate", { path: { id }, query: { version } });
  if (before.error) return html`<${Failed} error=${before.error} retry=${before.reload} />`;
  return html`<${Loaded} of=${now}>${(template) => before.data && html`<${Differences} before=${before.data} now=${template} />`}</${Loaded}>`;
}

function Differences({ before, now }) {
  const isOther = (name) => (now[name] ?? "") !== (before[name] ?? "");
  // HTML that is made of MJML changes with it.
  const fields = ["name", ...contentOf(now.channel)].filter((name) => isOther(name) && !(name === "html" && now.mjml && before.mjml));
  if (!fields.length) return html`<p class="muted">${t("The same as before.")}</p>`;
  return fields.map((name) => html`<div class="stack" key=${name}><h3>${t(LABELS[name])}</h3>
    <${Diff} before=${before[name]} after=${now[name]} label=${t(LABELS[name])} /></div>`);
}
