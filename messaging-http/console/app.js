// The frame of all screens: session, navigation, shortcuts. A screen is a module of `screens/`, loaded when it is shown.
import {
  Announcements, dialog, Dialogs, Failed, html, loadAllTexts, Loading, loadLanguage, Refused, render, t, useEffect, useLayoutEffect, useReducer, useRef, useState,
} from "./lib/ui.js";
import {
  allowed, call, chooseWorkspace, forgetCalls, forgetSession, isConnected, loadSession, me, missing, onConnection, onExpired, onSession, watchConnection, workspace,
} from "./lib/api.js";
import { href, memory, useRoute } from "./lib/route.js";

/**
 * The screens: the first segment of their route, title, module, and the operation without which they show nothing.
 * Those of a `group` stand in the navigation.
 */
export const SCREENS = [
  { path: "", title: "Home", module: "home", group: "" },
  { path: "messages", title: "Messages", module: "messages", group: "", needs: "listMessages", one: "message" },
  { path: "send", title: "Send", module: "send", group: "", needs: "sendMessage" },
  { path: "live", title: "Live", module: "live", group: "", needs: "listWebhookEvents" },
  { path: "sandbox", title: "Sandbox", module: "sandbox", group: "", needs: "listSandboxMessages" },
  { path: "contacts", title: "Contacts", module: "contacts", group: "Audience", needs: "listContacts", one: "contact" },
  { path: "import", title: "Import", module: "import", group: "Audience", needs: "listImports" },
  { path: "lists", title: "Lists", module: "lists", group: "Audience", needs: "listLists" },
  { path: "forms", title: "Forms", module: "forms", group: "Audience", needs: "listForms" },
  { path: "segments", title: "Segments", module: "segments", group: "Audience", needs: "listSegments", one: "segment" },
  { path: "suppressions", title: "Suppressions", module: "suppressions", group: "Audience", needs: "listSuppressions" },
  { path: "templates", title: "Templates", module: "templates", group: "Campaigns", needs: "listTemplates", one: "template" },
  { path: "images", title: "Images", module: "images", group: "Campaigns", needs: "listImages" },
  { path: "campaigns", title: "Campaigns", module: "campaigns", group: "Campaigns", needs: "listCampaigns", one: "campaign" },
  { path: "automations", title: "Automations", module: "automations", group: "Campaigns", needs: "listAutomations", one: "automation" },
  { path: "analytics", title: "Analytics", module: "analytics", group: "Campaigns", needs: "getAnalyticsOverview" },
  { path: "deliverability", title: "Deliverability", module: "deliverability", group: "Setup", needs: "getDeliverability" },
  { path: "domains", title: "Domains", module: "domains", group: "Setup", needs: "listSendingDomains" },
  { path: "channels", title: "Channels", module: "channels", group: "Setup", needs: "listChannels" },
  { path: "webhooks", title: "Webhooks", module: "webhooks", group: "Setup", needs: "listWebhooks" },
  { path: "keys", title: "Keys", module: "keys", group: "Setup", needs: "listApiKeys" },
  { path: "requests", title: "Requests", module: "requests", group: "Setup", needs: "listRequests" },
  { path: "audit", title: "Audit log", module: "audit", group: "Setup", needs: "listAudit" },
  { path: "members", title: "Members", module: "members", group: "Setup", needs: "listMembers" },
  { path: "fields", title: "Fields", module: "fields", group: "Setup", needs: "listCustomFields" },
  { path: "workspace", title: "Workspace", module: "workspace", group: "Setup" },
  { path: "system", title: "System", module: "system", group: "Setup", needs: "getSystem" },
  { path: "account", title: "Account", module: "account" },
  { path: "sign-in", title: "Sign in", module: "sign_in" },
];

const GROUPS = ["", "Audience", "Campaigns", "Setup"];
const THEME = "messaging.theme";
export const SHORTCUTS_OFF = "messaging.shortcuts";
export const THEMES = [["", "System"], ["light", "Light"], ["dark", "Dark"]];

const modules = {};

// The screen whose texts come with those of the frame.
const FIRST = "home";

/** The module of a screen, loaded once, with what it says in the reader's language. */
async function moduleOf(name) {
  // Before the module runs, for it may say something at once.
  if (name !== FIRST) await loadAllTexts();
  modules[name] ??= await import(`./screens/${name}.js`);
  return modules[name];
}

function screenOf({ segments }) {
  return SCREENS.find(({ path }) => path === (segments[0] ?? ""));
}

/** The theme that was chosen: `light`, `dark`, or nothing for that of the system. */
export function chosenTheme() {
  return localStorage.getItem(THEME) ?? "";
}

/** Keeps a theme and shows it; the event `theme` on the window tells those who show which one it is. */
export function chooseTheme(theme) {
  localStorage.setItem(THEME, theme);
  applyTheme(theme);
  dispatchEvent(new Event("theme"));
}

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function App() {
  const [, again] = useReducer((n) => n + 1, 0);
  const [failure, setFailure] = useState(null);
  const [ready, setReady] = useState(false);
  const route = useRoute();
  useEffect(() => onSession(again), []);
  useEffect(() => { begin().then(() => setReady(true), setFailure); }, []);
  useShortcuts();
  if (failure) return html`<main id="main"><h1 tabindex="-1">messaging</h1><${Failed} error=${failure} retry=${() => location.reload()} /></main>`;
  if (!ready) return html`<main id="main"><${Loading} /></main>`;
  const outside = !me();
  const screen = outside ? screenOf({ segments: ["sign-in"] }) : screenOf(route);
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("h1, main")?.focus(); }}>${t("Skip to content")}</a>
    ${outside ? null : html`<${Bar} /><${Navigation} shown=${screen} />`}
    <main id="main" class=${outside ? "outside" : ""} tabindex="-1">
      <${Connection} />
      ${screen
        ? html`<${Screen} key=${`${workspace()?.workspace_id}${screen.path}${route.segments.join("/")}`} screen=${screen} route=${route} />`
        : html`<h1 tabindex="-1">${t("No such page")}</h1><p><a href="#/">${t("Home")}</a></p>`}
    </main>
    <${Announcements} /><${Dialogs} />`;
}

// A ticket in the URL signs in, has a single sign-on confirmed or goes on with a second factor; it is taken out of the history
// before anything else.
async function begin() {
  const confirm = /[#&]confirm=([^&]+)/.exec(location.hash)?.[1];
  if (confirm) {
    history.replaceState(null, "", "#/sign-in");
    dispatchEvent(new HashChangeEvent("hashchange"));
    const { confirmSignOn } = await moduleOf("sign_in");
    confirmSignOn(decodeURIComponent(confirm));
  }
  const factor = /[#&]factor=([^&]+)/.exec(location.hash)?.[1];
  if (factor) {
    history.replaceState(null, "", "#/sign-in");
    dispatchEvent(new HashChangeEvent("hashchange"));
    const { askFactor } = await moduleOf("sign_in");
    askFactor(decodeURIComponent(factor));
  }
  const ticket = /[#&]ticket=([^&]+)/.exec(location.hash)?.[1];
  if (ticket) {
    history.replaceState(null, "", "#/sign-in");
    dispatchEvent(new HashChangeEvent("hashchange"));
    const { redeem } = await moduleOf("sign_in");
    if (await redeem(decodeURIComponent(ticket))) return;
  }
  await loadSession();
}

function Screen({ screen, route }) {
  const [loaded, setLoaded] = useState(modules[screen.module] ?? null);
  const [failure, setFailure] = useState(null);
  useLayoutEffect(() => {
    forgetCalls();
    // A screen begins at its top, unless one comes back to it.
    if (!memory().scroll) scrollTo(0, 0);
  }, []);
  useEffect(() => {
    let gone = false;
    moduleOf(screen.module).then(
      (module) => !gone && setLoaded(module),
      () => !gone && setFailure({ status: 0, code: "unreachable", message: t("The page could not be loaded. Was the server updated? Reload.") }),
    );
    return () => { gone = true; };
  }, []);
  useEffect(() => { if (loaded && !memory().scroll) focusHeading(); }, [loaded]);
  if (failure) return html`<h1 tabindex="-1">${t(screen.title)}</h1><${Failed} error=${failure} retry=${() => location.reload()} />`;
  if (!loaded) return html`<${Loading} />`;
  if (lacksFactor(screen)) return html`<${FactorFirst} screen=${screen} />`;
  if (screen.needs && !allowed(screen.needs)) {
    return html`<h1 tabindex="-1">${t(screen.title)}</h1><${Refused} needs=${missing(screen.needs)} />`;
  }
  return html`<${loaded.default} route=${route} segments=${route.segments.slice(1)} query=${route.query} />`;
}

// The screens of a workspace that demands a second factor, for a member who has none.
function lacksFactor({ path }) {
  return workspace()?.require_second_factor && !me()?.second_factor && !["account", "sign-in"].includes(path);
}

function FactorFirst({ screen }) {
  return html`<h1 tabindex="-1">${t(screen.title)}</h1><div class="notice warning"><p><strong>${t("{name} demands a second factor of its members.", { name: workspace().name })}</strong></p>
    <p>${t("Add one to your account to go on. It takes a minute and an app on your phone.")}</p>
    <div class="actions"><a class="button primary" href=${href("account")}>${t("Add a second factor")}</a></div></div>`;
}

let isFirst = true;

// After a change of screen the reader begins at its heading; at the first one the page itself is announced.
function focusHeading() {
  if (!isFirst) document.querySelector("h1")?.focus({ preventScroll: true });
  isFirst = false;
}

/** The sign and name of the product. */
export function Brand() {
  return html`<svg viewBox="0 0 16 16" width="22" height="22" aria-hidden="true"><rect width="16" height="16" rx="4" /><path d="M3 5l5 4 5-4" /></svg> messaging`;
}

// What stands on a screen may be old while the server cannot be reached.
function Connection() {
  const [isThere, setIsThere] = useState(isConnected);
  useEffect(() => onConnection(setIsThere), []);
  return !isThere && html`<p class="notice fault connection" role="alert"><strong>${t("The connection to the server is lost.")}</strong> ${t("What stands here may be out of date. It is tried again all the time.")}</p>`;
}

function Bar() {
  const found = me();
  const [, again] = useReducer((n) => n + 1, 0);
  const theme = chosenTheme();
  useEffect(() => {
    addEventListener("theme", again);
    return () => removeEventListener("theme", again);
  }, []);
  return html`<header class="bar">
    <a class="brand" href="#/"><${Brand} /></a>
    ${found.workspaces.length > 0 && html`<label class="workspace"><span class="sr">${t("Workspace")}</span>
      <select value=${workspace()?.workspace_id} onChange=${(event) => chooseWorkspace(event.target.value)}>
        ${found.workspaces.map((one) => html`<option value=${one.workspace_id} selected=${one.workspace_id === workspace()?.workspace_id}>${one.name}</option>`)}</select></label>`}
    <span class="space"></span>
    <button type="button" class="quiet" onClick=${palette}>${t("Go to")} <kbd>Ctrl K</kbd></button>
    <button type="button" class="quiet" onClick=${show}>${t("Show as")} <kbd>.</kbd></button>
    <label class="theme"><span class="sr">${t("Theme")}</span><select value=${theme} onChange=${(event) => chooseTheme(event.target.value)}>
      ${THEMES.map(([value, text]) => html`<option value=${value} selected=${value === theme}>${t(text)}</option>`)}</select></label>
    <a class="account" href="#/account">${found.user.name || found.user.email}</a>
    <button type="button" class="quiet" onClick=${signOut}>${t("Sign out")}</button>
  </header>`;
}

async function signOut() {
  await call("logout", { quiet: true }).catch(() => {});
  forgetSession();
  location.hash = "#/sign-in";
}

function Navigation({ shown }) {
  const details = useRef();
  const [wide, setWide] = useState(() => matchMedia("(min-width: 60rem)").matches);
  useEffect(() => {
    const query = matchMedia("(min-width: 60rem)");
    const changed = () => setWide(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  useEffect(() => { if (!wide && details.current) details.current.open = false; }, [shown]);
  return html`<details class="navigation" ref=${details} open=${wide || undefined}>
    <summary>${t("Menu")}</summary>
    <nav aria-label=${t("Main")}>${GROUPS.map((group) => {
      const screens = SCREENS.filter((one) => one.group === group && (!one.needs || allowed(one.needs)));
      return screens.length > 0 && html`<div class="group">${group && html`<h2>${t(group)}</h2>`}
        <ul>${screens.map((one) => html`<li><a href=${href(one.path)} aria-current=${one === shown ? "page" : undefined}>${t(one.title)}</a></li>`)}</ul></div>`;
    })}</nav></details>`;
}

// ---- shortcuts ----

async function palette() {
  await loadAllTexts();
  const { openPalette } = await import("./lib/palette.js");
  openPalette();
}

async function show() {
  await loadAllTexts();
  const { showAs } = await import("./lib/show_as.js");
  showAs();
}

const KEYS = [["Ctrl K", "Go to a screen, an id, an email, a name"], [".", "Show the calls of this screen as commands, curl, JSON"], ["?", "These keys"], ["Esc", "Close what is open"]];

function keys() {
  return dialog(() => html`<table class="keys"><tbody>${KEYS.map(([key, text]) => html`<tr><th scope="row"><kbd>${key}</kbd></th><td>${t(text)}</td></tr>`)}</tbody></table>
    <p class="muted">${t("Single keys can be switched off under Account.")}</p>`, { title: t("Keyboard") });
}

function useShortcuts() {
  useEffect(() => {
    const pressed = (event) => {
      if (!me() || document.querySelector("dialog[open]")) return;
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        palette();
        return;
      }
      const isText = event.target.closest?.("input, textarea, select, [contenteditable]");
      if (isText || event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem(SHORTCUTS_OFF)) return;
      if (event.key === ".") show();
      if (event.key === "?") keys();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

// A session that ends in the middle of work is renewed in a dialog; what stands on the screen stays.
let asking;
onExpired(() => {
  asking ??= moduleOf("sign_in")
    .then(({ SignInAgain }) => dialog((close) => html`<p>${t("Your session has ended. Sign in to go on; nothing you typed is lost.")}</p>
      <${SignInAgain} onDone=${() => close(true)} email=${me()?.user.email} />`, { title: t("Sign in again") }))
    .then((done) => {
      asking = undefined;
      if (!done) forgetSession();
    });
  return asking;
});

applyTheme(chosenTheme());
watchConnection();
await loadLanguage();
render(html`<${App} />`, document.getElementById("app"));

