// The palette (Ctrl-K): screens, actions, ids, addresses and names.
import { allowed, call } from "./api.js";
import { dialog, html, t, useEffect, useId, useRef, useState, words } from "./ui.js";
import { go } from "./route.js";
import { SCREENS } from "../app.js";

// An id names its kind (contract section 1.2).
const BY_ID = {
  msg: "messages", con: "contacts", seg: "segments", tpl: "templates", cmp: "campaigns", aut: "automations",
  dom: "domains", whk: "webhooks", lst: "lists", frm: "forms", imp: "import",
};

const ACTIONS = [
  ["Send a message", "send", "sendMessage"],
  ["New contact", "contacts?new=1", "upsertContact"],
  ["Import contacts", "import", "createImport"],
  ["New segment", "segments?new=1", "createSegment"],
  ["New template", "templates?new=1", "createTemplate"],
  ["New campaign", "campaigns?new=1", "createCampaign"],
  ["New automation", "automations?new=1", "createAutomation"],
  ["Add a domain", "domains?new=1", "createSendingDomain"],
  ["New webhook", "webhooks?new=1", "createWebhook"],
  ["New API key", "keys?new=1", "createApiKey"],
  ["Invite a member", "members?new=1", "createMember"],
];

const NAMED = [
  ["listTemplates", "templates"], ["listCampaigns", "campaigns"], ["listSegments", "segments"],
  ["listLists", "lists"], ["listAutomations", "automations"],
];

/** Opens the palette. */
export function openPalette() {
  return dialog((close) => html`<${Palette} close=${close} />`, { title: t("Go to") });
}

function Palette({ close }) {
  const [text, setText] = useState("");
  const [named, setNamed] = useState([]);
  const [at, setAt] = useState(0);
  const id = useId();
  const list = useRef();
  useEffect(() => {
    const abort = new AbortController();
    for (const [operation, path] of NAMED.filter(([operation]) => allowed(operation))) {
      call(operation, { query: { limit: 200 }, quiet: true, signal: abort.signal }).then(
        (page) => setNamed((old) => [...old, ...page.data.map((one) => ({ text: one.name, note: words(path).replace(/s$/, ""), path: `${path}/${one.id}` }))]),
        () => {},
      );
    }
    return () => abort.abort();
  }, []);
  const found = matches(text, named);
  useEffect(() => list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);
  const choose = (one) => {
    if (!one) return;
    close();
    const [path, query] = one.path.split("?");
    go(path, query && Object.fromEntries(new URLSearchParams(query)));
  };
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((at + step + found.length) % Math.max(1, found.length));
    }
  };
  return html`<form class="palette" onSubmit=${(event) => { event.preventDefault(); choose(found[at]); }}>
    <input autofocus aria-label=${t("Screen, action, id, email or name")} placeholder=${t("Screen, action, id, email or name")}
      role="combobox" aria-expanded="true" aria-controls=${id} aria-activedescendant=${found.length ? `${id}-${at}` : undefined}
      autocomplete="off" value=${text} onKeyDown=${onKeyDown} onInput=${(event) => { setText(event.target.value); setAt(0); }} />
    <ul id=${id} role="listbox" aria-label=${t("Found")} ref=${list}>${found.map((one, nth) => html`
      <li role="option" id="${id}-${nth}" aria-selected=${nth === at} onClick=${() => choose(one)}><span>${one.text}</span> <span class="muted">${one.note}</span></li>`)}</ul>
    ${!found.length && html`<p class="muted">${t("Nothing is called that. Ids and whole email addresses lead to their pages.")}</p>`}
  </form>`;
}

/** What a text may mean, best first. */
export function matches(text, named) {
  const wanted = text.trim().toLowerCase();
  const found = [];
  const [, kind] = /^([a-z]{3})_[0-9a-z]{26}$/i.exec(wanted) ?? [];
  if (BY_ID[kind]) found.push({ text: text.trim(), note: words(BY_ID[kind]), path: `${BY_ID[kind]}/${text.trim()}` });
  if (/^\S+@\S+\.\S+$/.test(wanted)) {
    found.push({ text: t("Messages to {address}", { address: wanted }), note: t("messages"), path: `messages?to=${encodeURIComponent(wanted)}` });
    found.push({ text: t("Contact {address}", { address: wanted }), note: t("contacts"), path: `contacts?email=${encodeURIComponent(wanted)}` });
  }
  const screens = SCREENS.filter(({ needs }) => !needs || allowed(needs)).map(({ path, title }) => ({ text: t(title), note: t("screen"), path }));
  const actions = ACTIONS.filter(([, , id]) => allowed(id)).map(([title, path]) => ({ text: t(title), note: t("action"), path }));
  const all = [...screens, ...actions, ...named];
  const rank = ({ text: name }) => (name.toLowerCase().startsWith(wanted) ? 0 : 1);
  const fitting = all.filter((one) => one.text.toLowerCase().includes(wanted));
  return [...found, ...fitting.sort((one, other) => rank(one) - rank(other))].slice(0, 30);
}

