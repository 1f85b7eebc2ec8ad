// The workspace: its name, time zone, opt-out words, log of requests and whether members need a second factor, and another one.
import { allowed, chooseWorkspace, loadSession, missing, workspace } from "../lib/api.js";
import { Action, absolute, confirm, Copy, Facts, Failed, Head, html, Loaded, t, useCall, useState } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { PublicLists } from "../lib/public_lists.js";
import { go, href } from "../lib/route.js";

// More than anybody has on one page; the chosen one must be among them.
const PAGE = 200;

export default function Workspace({ query }) {
  const found = useCall("listWorkspaces", { query: { limit: PAGE } });
  // What a write answered takes the place of what was loaded.
  const [answer, setAnswer] = useState(null);
  const chosen = workspace();
  const ofPage = found.data?.data.find(({ id }) => id === chosen?.workspace_id);
  return html`
    <${Head} title=${t("Workspace")} text=${t("Messages, contacts, templates and keys of one workspace are unknown to the others.")}>
      ${!query.new && html`<a class="button" href=${href("workspace", { new: 1 })}>${t("New workspace")}</a>`}
    </${Head}>
    ${query.new && html`<${NewWorkspace} />`}
    <${Loaded} of=${found}>${() => (ofPage
      ? html`<${About} one=${answer ?? ofPage} role=${chosen.role} /><${Settings} one=${answer ?? ofPage} onDone=${setAnswer} /><${Archive} one=${answer ?? ofPage} onDone=${setAnswer} /><${End} one=${answer ?? ofPage} onDone=${setAnswer} />`
      : chosen && html`<${Failed} error=${{ status: 404 }} />`)}</${Loaded}>`;
}

function About({ one, role }) {
  return html`<section class="stack" aria-labelledby="about"><h2 id="about" dir="auto">${one.name}</h2>
    <${Facts} pairs=${[
      [t("Your role"), t(role)],
      ["ID", html`<code>${one.id}</code> <${Copy} text=${one.id} label=${html`${t("Copy")}<span class="sr"> ID</span>`} />`],
      [t("Time zone"), one.timezone],
      [t("Opt-out words"), one.opt_out_keywords.length ? html`<bdi>${one.opt_out_keywords.join(", ")}</bdi>` : t("only the usual ones, such as STOP")],
      [t("Data region"), one.data_region],
      [t("Created"), absolute(one.created_at)],
    ]} /></section>`;
}

const LOGS = [
  ["failures", "what fails with bodies, changes without"], ["writes", "changes and what fails, with bodies"], ["all", "everything, with bodies"], ["off", "nothing"],
];

function Settings({ one, onDone }) {
  if (one.deletes_at) return null;
  if (!allowed("updateWorkspace")) {
    return html`<p class="muted">${t("To change these, you need {right}.", { right: missing("updateWorkspace") })}</p>`;
  }
  const changed = async (next) => {
    onDone(next);
    // The name stands in the bar too.
    await loadSession();
  };
  return html`<section class="stack" aria-labelledby="settings"><h2 id="settings">${t("Settings")}</h2>
    <${Form} key=${JSON.stringify(one)} id="updateWorkspace" initial=${{ name: one.name, timezone: one.timezone, opt_out_keywords: one.opt_out_keywords, request_log: one.request_log, require_second_factor: one.require_second_factor }}
      body=${(values) => ({ ...values, opt_out_keywords: values.opt_out_keywords ?? [] })} onDone=${changed} done=${t("Saved")}>
      <${Field} name="name" label=${t("Name")} required dir="auto" autocomplete="off" />
      <${Field} name="timezone" kind="select" label=${t("Time zone")} required options=${zones(one.timezone)}
        help=${t("Days of analytics begin by it, and campaigns and automations use it for contacts without a time zone of their own.")} />
      <${Field} name="opt_out_keywords" kind="list" rows=${1} label=${t("Opt-out words")} dir="auto" autocomplete="off" placeholder="STOPP, ARRET"
        help=${t("One of these words alone, as an answer by SMS or WhatsApp, ends messages to that person, besides STOP and the like. Up to 20, with commas between them.")} />
      <${Field} name="request_log" kind="select" label=${t("Log of requests")} options=${LOGS.map(([value, text]) => [value, t(text)])}
        help=${t("What the screen Requests shows. Secrets are never kept, and everything goes after seven days.")} />
      <${Field} name="require_second_factor" kind="checkbox" label=${t("Members need a second factor")}
        help=${t("Members without one reach nothing of this workspace until they add one to their account. API keys go on working.")} />
    </${Form}></section>`;
}

// Campaigns that everybody may read.
function Archive({ one, onDone }) {
  if (one.deletes_at || !allowed("updateWorkspace")) return null;
  const body = ({ archive }) => ({ archive: { ...archive, title: archive.title || null } });
  return html`<section class="stack" aria-labelledby="archive"><h2 id="archive">${t("Archive")}</h2>
    <p class="muted">${t("Everybody may read there what was sent to the public lists that you choose: as it was written, without anything of a recipient.")}</p>
    ${one.archive_url && html`<p><a href=${one.archive_url} target="_blank" rel="noopener">${one.archive_url}</a> <${Copy} text=${one.archive_url} label=${t("Copy URL")} /></p>`}
    <${Form} key=${JSON.stringify(one.archive)} id="updateWorkspace" initial=${{ archive: one.archive }} body=${body} onDone=${onDone} done=${t("Saved")}>
      <${Field} name="archive.enabled" kind="checkbox" label=${t("Everybody may read the archive")} />
      <${Field} name="archive.title" label=${t("Title")} dir="auto" autocomplete="off" placeholder=${one.name} optional />
      <${PublicLists} name="archive.lists" label=${t("Lists")} help=${t("A campaign is shown if it went to these lists alone.")} />
      <${Field} name="archive.indexed" kind="checkbox" label=${t("Search engines may list it")} />
    </${Form}></section>`;
}

// For owners: the end of the workspace, until it has come.
function End({ one, onDone }) {
  if (!allowed("deleteWorkspace")) return null;
  const date = one.deletes_at && absolute(one.deletes_at);
  const ask = () => confirm({
    title: t("Delete workspace"),
    text: t("From now on it takes and sends nothing. In seven days everything in it is removed: contacts, messages, templates, keys and files. Until then it can be read, exported and restored."),
    action: t("Delete workspace"),
    name: one.name,
  });
  return html`<section class="stack" aria-labelledby="end"><h2 id="end">${t("Delete workspace")}</h2>
    ${date
    ? html`<p role="status">${t("Everything in this workspace is removed on {date}. Until then it takes and sends nothing, and can be read and exported.", { date })}</p>
      <div class="actions"><${Action} id="restoreWorkspace" onDone=${onDone} done=${t("Restored")}>${t("Restore workspace")}</${Action}></div>`
    : html`<p class="muted">${t("It is removed with everything in it seven days later. Until then an owner can restore it.")}</p>
      <div class="actions"><${Action} id="deleteWorkspace" className="danger" args=${{ body: { name: one.name } }} before=${ask}
        onDone=${({ deletes_at }) => onDone({ ...one, deletes_at })} done=${t("The workspace is under deletion")}>${t("Delete workspace")}</${Action}></div>`}
  </section>`;
}

function zones(current) {
  const known = Intl.supportedValuesOf("timeZone");
  return [...new Set(["UTC", current, ...known])].map((name) => [name, name.replaceAll("_", " ")]);
}

function NewWorkspace() {
  const created = async ({ id }) => {
    await loadSession();
    go("");
    chooseWorkspace(id);
  };
  return html`<section class="card" aria-labelledby="new-workspace"><h2 id="new-workspace">${t("New workspace")}</h2>
    <p class="muted">${t("You become its owner. It begins empty, with domains, channels and keys of its own.")}</p>
    <${Form} id="createWorkspace" submit=${t("Create workspace")} done=${t("Created. You are in the new workspace now.")} onDone=${created}
      extra=${html`<a class="button" href=${href("workspace")}>${t("Cancel")}</a>`}>
      <${Field} name="name" label=${t("Name")} dir="auto" autocomplete="off" autofocus placeholder="Acme" />
    </${Form}></section>`;
}
