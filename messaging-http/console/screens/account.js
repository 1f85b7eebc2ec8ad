// The account: who is signed in, the password, the second factor, sessions, and what this browser keeps: language, theme, single keys.
import { call, chooseWorkspace, forgetSession, loadSession, me } from "../lib/api.js";
import { Action, confirm, Facts, Head, html, Loaded, t, Time, useCall, useEffect, useReducer, useState } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { LanguageChoice } from "../lib/language_choice.js";
import { List, Table } from "../lib/table.js";
import { href } from "../lib/route.js";
import { SecondFactor } from "./account_factors.js";
import { chooseTheme, chosenTheme, SHORTCUTS_OFF, THEMES } from "../app.js";

export default function Account() {
  const { user } = me();
  return html`
    <${Head} title=${t("Account")}><button type="button" onClick=${signOut}>${t("Sign out")}</button></${Head}>
    <${Facts} pairs=${[
      [t("Name"), user.name && html`<bdi>${user.name}</bdi>`],
      [t("Email"), html`<bdi>${user.email}</bdi>`],
    ]} />
    <${Invitations} />
    <${Workspaces} />
    <${Password} />
    <${SecondFactor} />
    <${Sessions} />
    <${Browser} />`;
}

async function signOut() {
  await call("logout", { quiet: true }).catch(() => {});
  forgetSession();
  location.hash = href("sign-in");
}

// ---- workspaces ----

function Invitations() {
  const found = useCall("listInvitations", { query: { limit: 200 } });
  const accepted = async ({ workspace_id: id }) => {
    await loadSession();
    chooseWorkspace(id);
    found.reload();
  };
  return html`<${Loaded} of=${found}>${({ data }) => data.length > 0 && html`<section class="stack" aria-labelledby="invitations"><h2 id="invitations">${t("Invitations")}</h2>
    <${Table} caption=${t("Invitations")} rows=${data} columns=${[
      { label: t("Workspace"), cell: (row) => html`<bdi>${row.name}</bdi>` },
      { label: t("Role"), cell: (row) => t(row.role) },
      { label: t("Invited by"), cell: (row) => (row.invited_by ? html`<bdi>${row.invited_by}</bdi>` : t("who runs the server")) },
      { label: t("Invited"), cell: (row) => html`<${Time} at=${row.created_at} />` },
    ]} actions=${(row) => html`<${Action} id="acceptInvitation" className="small" args=${{ path: { workspace_id: row.workspace_id }, body: {} }} onDone=${accepted} done=${t("You are a member of {name} now", { name: row.name })}>${t("Accept")}<span class="sr"> ${row.name}</span></${Action}>
      <${Action} id="declineInvitation" className="small" args=${{ path: { workspace_id: row.workspace_id } }} onDone=${found.reload} done=${t("Declined")}>${t("Decline")}<span class="sr"> ${row.name}</span></${Action}>`} /></section>`}</${Loaded}>`;
}

function Workspaces() {
  const { workspaces } = me();
  const before = (row) => confirm({
    title: t("Leave {name}?", { name: row.name }), action: t("Leave"),
    text: t("You lose this workspace at once, and somebody else has to invite you again."),
  });
  return workspaces.length > 0 && html`<section class="stack" aria-labelledby="workspaces"><h2 id="workspaces">${t("Workspaces")}</h2>
    <${Table} caption=${t("Workspaces")} rows=${workspaces} columns=${[
      { label: t("Workspace"), cell: (row) => html`<bdi>${row.name}</bdi>` },
      { label: t("Role"), cell: (row) => t(row.role) },
    ]} actions=${(row) => html`<${Action} id="leaveWorkspace" className="small" args=${{ path: { workspace_id: row.workspace_id } }} before=${() => before(row)} onDone=${loadSession} done=${t("You left {name}", { name: row.name })}>${t("Leave")}<span class="sr"> ${row.name}</span></${Action}>`} /></section>`;
}

// ---- password ----

function Password() {
  const [round, again] = useReducer((n) => n + 1, 0);
  const { has_password: hasPassword, second_factor: hasFactor } = me();
  return html`<section class="stack" aria-labelledby="password"><h2 id="password">${t("Password")}</h2>
    <${Form} key=${round} id="setPassword" body=${({ current, password = "", code }) => ({ current: current || null, password, ...(code && { code }) })} submit=${t("Change password")}
      done=${t("Changed. Your other sessions have ended.")} onDone=${async () => { await loadSession(); again(); }}
      refusal=${({ code }) => code === "invalid_credentials" && { text: hasPassword ? t("The current password is wrong.") : t("The code is wrong, was used already or is too old.") }}>
      ${hasPassword && html`<${Field} name="current" kind="password" label=${t("Current password")} autocomplete="current-password" />`}
      <${Field} name="password" kind="password" label=${t("New password")} autocomplete="new-password"
        help=${t("12 characters or more, and none of the common ones. Your other sessions end.")} />
      ${!hasPassword && hasFactor && html`<${Field} name="code" label=${t("Code")} autocomplete="one-time-code"
        help=${t("Of a factor that you have, or a recovery code. Not needed in the first 15 minutes after you signed in.")} />`}
    </${Form}></section>`;
}

// ---- sessions ----

function Sessions() {
  const [round, again] = useReducer((n) => n + 1, 0);
  const [rows, setRows] = useState([]);
  const before = () => confirm({
    title: t("End all other sessions?"), action: t("End them"),
    text: t("Every other browser and program that is signed in as you has to sign in again, however many there are. Links that were made to sign you in end too."),
  });
  return html`<section class="stack" aria-labelledby="sessions"><h2 id="sessions">${t("Sessions")}</h2>
    <p class="muted">${t("Where you are signed in. A session ends by itself 12 hours after it began.")}</p>
    <${List} id="listSessions" caption=${t("Sessions")} reloads=${round} onRows=${setRows} columns=${[
        { label: t("Program"), cell: (row) => html`${programOf(row.user_agent)}${row.current && html` <span class="muted">${t("this one")}</span>`}` },
        { label: t("Address"), cell: (row) => row.ip ?? html`<span class="muted">–</span>` },
        { label: t("Signed in"), cell: (row) => html`<${Time} at=${row.created_at} />` },
        { label: t("Last used"), cell: (row) => html`<${Time} at=${row.last_used_at} />` },
      ]} actions=${(row) => !row.current && html`<${Action} id="deleteSession" className="small" args=${{ path: { id: row.id } }} onDone=${again} done=${t("Ended")}>${t("End")}</${Action}>`} />
    ${rows.some(({ current }) => !current) && html`<div class="actions"><${Action} id="deleteOtherSessions" before=${before} onDone=${again} done=${t("Ended")}>${t("End all others")}</${Action}></div>`}</section>`;
}

const BROWSERS = [[/Edg\//, "Edge"], [/OPR\//, "Opera"], [/Firefox\//, "Firefox"], [/Chrom(e|ium)\//, "Chrome"], [/Safari\//, "Safari"], [/^curl/, "curl"]];
const SYSTEMS = [[/Android/, "Android"], [/iPhone|iPad/, "iOS"], [/Windows/, "Windows"], [/Mac OS X/, "macOS"], [/Linux/, "Linux"]];

// A browser's own words are long; what does not look like a browser is shown as it is.
function programOf(agent) {
  if (!agent) return t("unknown");
  const [, browser] = BROWSERS.find(([pattern]) => pattern.test(agent)) ?? [];
  const [, system] = SYSTEMS.find(([pattern]) => pattern.test(agent)) ?? [];
  if (!browser) return html`<bdi>${agent.slice(0, 80)}</bdi>`;
  return html`<span title=${agent}>${system ? t("{browser} on {system}", { browser, system }) : browser}</span>`;
}

// ---- this browser ----

function Browser() {
  const [theme, setTheme] = useState(chosenTheme());
  const [isOff, setOff] = useState(Boolean(localStorage.getItem(SHORTCUTS_OFF)));
  useEffect(() => {
    const changed = () => setTheme(chosenTheme());
    addEventListener("theme", changed);
    return () => removeEventListener("theme", changed);
  }, []);
  const toggle = (event) => {
    const on = event.target.checked;
    if (on) localStorage.removeItem(SHORTCUTS_OFF);
    else localStorage.setItem(SHORTCUTS_OFF, "off");
    setOff(!on);
  };
  return html`<section class="stack" aria-labelledby="browser"><h2 id="browser">${t("This browser")}</h2>
    <div class="form"><${LanguageChoice} /><fieldset><legend>${t("Theme")}</legend>${THEMES.map(([value, text]) => html`<div class="field check"><label>
      <input type="radio" name="theme" value=${value} checked=${value === theme} onChange=${() => chooseTheme(value)} /> <span>${value ? t(text) : t("As the system has it")}</span></label></div>`)}</fieldset>
    <div class="field check"><label><input type="checkbox" checked=${!isOff} onChange=${toggle} /> <span>${t("Single keys")}</span></label>
      <p class="help">${t("“.” shows the calls of a screen, “?” the list of keys. Switch them off if you control the computer by voice.")}</p></div></div></section>`;
}
