// What every screen is written with: templates (htm over Preact), hooks, the states of what is loaded, and the pieces
// that all screens share.
import { createContext, Fragment, h, render } from "../vendor/preact.js";
import htm from "../vendor/htm.js";
import { useContext, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState } from "../vendor/hooks.js";
import { allowed, call, onConnection, workspace } from "./api.js";

export const html = htm.bind(h);
export {
  createContext, Fragment, render,
  useContext, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState,
};

// ---- texts ----

/** The languages of the console by their codes, each called as it calls itself. Files of `languages/` hold their texts. */
export const LANGUAGES = {
  en: "English", de: "Deutsch", fr: "Français", es: "Español", pt: "Português", uk: "Українська", ru: "Русский",
};
const LANGUAGE = "messaging.language";

// English: its texts are the keys of all others. The locale is how the reader's place writes numbers and times.
let spoken = { language: "en", locale: undefined, texts: {}, plural: new Intl.PluralRules("en"), rest: undefined };

/** The language that the console speaks. */
export function language() {
  return spoken.language;
}

/** How numbers and times are written: a locale of the language, or nothing for the browser's own. */
export function locale() {
  return spoken.locale;
}

/** The language that was chosen, else the first of these tags that there is, else English. */
export function languageOf(chosen, tags) {
  if (Object.hasOwn(LANGUAGES, chosen ?? "")) return chosen;
  return tags.map(baseOf).find((base) => Object.hasOwn(LANGUAGES, base)) ?? "en";
}

const baseOf = (tag) => String(tag).toLowerCase().split("-")[0];

/** Keeps the choice of a language for this browser, and begins anew in it. */
export function chooseLanguage(code) {
  localStorage.setItem(LANGUAGE, code);
  location.reload();
}

/** Fetches what the first screen says in the reader's language. Without its file the console speaks English. */
export async function loadLanguage() {
  const wanted = languageOf(localStorage.getItem(LANGUAGE), navigator.languages);
  const texts = wanted === "en" ? {} : await textsOf(`${wanted}-first`);
  if (texts) speak(wanted, texts, navigator.languages);
}

/** Fetches, once, what all other screens say. What does not come stays English, and is asked for again the next time. */
export async function loadAllTexts() {
  if (spoken.language === "en") return;
  spoken.rest ??= textsOf(spoken.language);
  const { language: wanted, rest } = spoken;
  const texts = await rest;
  if (spoken.language !== wanted) return;
  if (texts) Object.assign(spoken.texts, texts);
  else spoken.rest = undefined;
}

/** Speaks a language with these texts: English text → translation, or the translation for each plural category. */
export function speak(code, texts, tags = []) {
  spoken = { language: code, locale: tags.find((tag) => baseOf(tag) === code) ?? (code === "en" ? undefined : code), texts: { ...texts }, plural: new Intl.PluralRules(code) };
  document.documentElement.lang = code;
}

const isTranslation = (value) => typeof value === "string" || typeof value?.other === "string";

// The texts of a file, or null when there is none or it is none.
async function textsOf(name) {
  try {
    const answer = await fetch(new URL(`../languages/${name}.json`, import.meta.url));
    const pairs = answer.ok ? Object.entries(await answer.json()) : [];
    const texts = pairs.filter(([, value]) => isTranslation(value));
    return texts.length ? Object.fromEntries(texts) : null;
  } catch {
    return null;
  }
}

const formOf = (found, amount) => (typeof found === "string" ? found : found[spoken.plural.select(amount ?? 0)] ?? found.other);

/**
 * A text of the console in the reader's language, with `{name}` filled from the values. A translation may have a form
 * for each plural category; the first value that is a number tells which one.
 */
export function t(text, values = {}) {
  const found = Object.hasOwn(spoken.texts, text) ? formOf(spoken.texts[text], Object.values(values).find(Number.isFinite)) : text;
  return found.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** `1 message`, `2 messages`: a number with its word, whose translations stand under `one|many`. */
export function count(amount, one, many) {
  return `${number(amount)} ${countedWord(amount, one, many)}`;
}

/** The word alone. */
export function countedWord(amount, one, many) {
  const key = `${one}|${many}`;
  if (Object.hasOwn(spoken.texts, key)) return formOf(spoken.texts[key], amount);
  return amount === 1 ? one : many;
}

// ---- times and numbers, as people of the reader's place write them ----

const UNITS = [["year", 31536000], ["month", 2592000], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];

/** `3 minutes ago`, `in 2 days`. */
export function relative(time, now = Date.now()) {
  const seconds = Math.round((new Date(time).getTime() - now) / 1000);
  const format = new Intl.RelativeTimeFormat(spoken.locale, { numeric: "auto" });
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  if (unit === "second" && Math.abs(seconds) < 10) return format.format(0, "second");
  // What is past counts whole units; a wait of three days says "in 3 days" also a moment after it began.
  const units = seconds / length;
  return format.format(units > 0 ? Math.round(units) : Math.trunc(units), unit);
}

/** The zone that all times are told in: that of the workspace, wherever its reader is. */
export function zone() {
  return workspace()?.timezone;
}

/** The whole time, with its zone. */
export function absolute(time, options = { dateStyle: "medium", timeStyle: "long" }) {
  return new Intl.DateTimeFormat(spoken.locale, { timeZone: zone(), ...options }).format(new Date(time));
}

/** What the clock on the wall of the workspace shows: `2026-01-31T09:15`. */
export function wallOf(time) {
  const format = new Intl.DateTimeFormat("en", {
    timeZone: zone(), hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit",
  });
  const { year, month, day, hour, minute } = Object.fromEntries(format.formatToParts(new Date(time)).map(({ type, value }) => [type, value]));
  return `${year}-${month}-${day}T${hour}:${minute}`;
}

const DAY_MS = 86400000;

/** Minutes that the clock of the workspace is ahead of UTC. */
export function offsetOf(time) {
  return Math.floor(Date.parse(`${wallOf(time)}Z`) / 60000) - Math.floor(new Date(time).getTime() / 60000);
}

/** The moment at which that clock shows this: the first of two, and the next where the clock leaves it out. */
export function momentOf(wall) {
  const wanted = Date.parse(`${wall}Z`);
  const found = [-DAY_MS, DAY_MS].map((away) => wanted - offsetOf(wanted + away) * 60000);
  const right = found.filter((one) => wallOf(one) === wall);
  return new Date(right.length ? Math.min(...right) : Math.max(...found));
}

/** The day of a moment in the workspace, `2026-01-31`, or so many days later. */
export function dayOf(time, later = 0) {
  return laterDay(wallOf(time).slice(0, 10), later);
}

/** So many days after a day. */
export function laterDay(day, days) {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);
}

/** When a day begins in the workspace. */
export function startOf(day) {
  return momentOf(`${day}T00:00`);
}

/** `1.2 s`, `3 min`, `2 h`: how long something took. */
export function duration(milliseconds) {
  const number = (value) => new Intl.NumberFormat(spoken.locale, { maximumFractionDigits: value < 10 ? 1 : 0 }).format(value);
  if (milliseconds < 1000) return `${number(milliseconds)} ${t("ms")}`;
  const seconds = milliseconds / 1000;
  if (seconds < 120) return `${number(seconds)} ${t("s")}`;
  if (seconds < 7200) return `${number(seconds / 60)} ${t("min")}`;
  return seconds < 172800 ? `${number(seconds / 3600)} ${t("h")}` : `${number(seconds / 86400)} ${t("d")}`;
}

/** A number with its separators; what is not known is no number. */
export function number(value) {
  return Number.isFinite(value) ? new Intl.NumberFormat(spoken.locale).format(value) : "–";
}

/** A number that is perhaps estimated. */
export function about(value, exact) {
  return exact ? number(value) : t("about {number}", { number: number(value) });
}

/** A share of 1 as per cent. */
export function percent(share) {
  if (!Number.isFinite(share)) return "–";
  return new Intl.NumberFormat(spoken.locale, { style: "percent", maximumFractionDigits: share && share < 0.1 ? 1 : 0 }).format(share);
}

/** Bytes as KB, MB, GB. */
export function bytes(value) {
  const steps = [t("B"), t("KB"), t("MB"), t("GB"), t("TB")];
  const step = Math.min(steps.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3));
  return `${new Intl.NumberFormat(spoken.locale, { maximumFractionDigits: step ? 1 : 0 }).format(value / 1000 ** step)} ${steps[step]}`;
}

/** Whether something is a row of a list, whose times say date and time. */
export const Listed = createContext(false);

/** A time: relative, and absolute for who looks closer; in lists the other way round. */
export function Time({ at }) {
  const [, tick] = useState(0);
  const isListed = useContext(Listed);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 30000);
    return () => clearInterval(timer);
  }, []);
  if (!at) return html`<span class="muted">–</span>`;
  const more = isListed ? `${relative(at)} · ${absolute(at)}` : absolute(at);
  return html`<time datetime=${at} title=${more} tabindex="0" data-absolute=${more}>${isListed ? absolute(at, { dateStyle: "medium", timeStyle: "short" }) : relative(at)}</time>`;
}

// ---- calls ----

/**
 * What an operation answers, for a component: `{ data, error, loading, stale, reload }`.
 *
 * The call is made again when its id or arguments change, and aborted when nobody waits for it. What was there before
 * stays while the next answer of the same id is on its way, and when that fails: `stale` tells so. Without an id no call
 * is made.
 */
export function useCall(id, args = {}, { every, quiet } = {}) {
  const key = id && JSON.stringify([id, args]);
  const [state, setState] = useState({ loading: Boolean(id) });
  const [round, reload] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    if (!id) return undefined;
    const abort = new AbortController();
    setState((old) => ({ data: old.id === id ? old.data : undefined, id, loading: true }));
    call(id, { ...args, signal: abort.signal, quiet }).then(
      (data) => setState({ data, id, loading: false }),
      (error) => {
        if (!abort.signal.aborted) setState((old) => ({ ...old, error, loading: false, stale: old.data !== undefined }));
      },
    );
    return () => abort.abort();
  }, [key, round]);
  // What could not be asked while there was no connection is asked once it is back.
  const isCut = Boolean(state.error && !state.error.status);
  useEffect(() => (isCut ? onConnection((isThere) => isThere && reload()) : undefined), [isCut]);
  useEffect(() => {
    if (!every || !id) return undefined;
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), every);
    return () => clearInterval(timer);
  }, [key, every]);
  return { ...state, reload };
}

/**
 * The states of something loaded: nothing for 150 ms, then a skeleton; a refusal or failure; else what `children`, a
 * function of the data, draws. What is stale stays, below a note.
 */
export function Loaded({ of, children, skeleton }) {
  const { data, error, loading, reload } = of;
  if (data === undefined) {
    if (error) return html`<${Failed} error=${error} retry=${reload} />`;
    return loading ? html`<${Loading} lines=${skeleton} />` : null;
  }
  return html`${error && html`<${Stale} error=${error} retry=${reload} />`}${children(data)}`;
}

/** A skeleton, once something has taken 150 ms. */
export function Loading({ lines = 4 }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return html`<div class="skeleton" aria-busy="true">
    ${late && html`<span class="sr">${t("Loading")}</span>${Array.from({ length: lines }, () => html`<div></div>`)}`}
  </div>`;
}

/** Nothing is here yet: a sentence, one action, and the call that it makes. */
export function Empty({ title, text, action, href, onClick, example, children }) {
  return html`<div class="empty">
    <p class="empty-title">${title}</p>
    ${text && html`<p>${text}</p>`}
    ${action && (href
      ? html`<a class="button primary" href=${href}>${action}</a>`
      : html`<button class="primary" type="button" onClick=${onClick}>${action}</button>`)}
    ${example && html`<${Code} text=${example} />`}
    ${children}
  </div>`;
}

/** A call was refused or failed: what happened, what helps. */
export function Failed({ error, retry }) {
  if (error.status === 403) return html`<${Refused} needs=${error.needs ?? error.message} />`;
  if (error.status === 404) {
    return html`<div class="empty"><p class="empty-title">${t("Nothing is here")}</p>
      <p>${t("It was deleted, or it belongs to another workspace.")}</p></div>`;
  }
  return html`<div class="notice fault" role="alert">
    <p><strong>${!error.status ? t("The server cannot be reached.") : error.status < 500 ? t("The server refused this.") : t("The server could not answer.")}</strong> ${error.message}</p>
    ${error.violations?.map(({ parameter, pointer = "", message }) => html`<p>${words(parameter ?? pointer.split("/").pop())}: ${message}</p>`)}
    <p class="muted"><code>${error.code}</code>${error.requestId && html` · ${t("request")} <code>${error.requestId}</code>`}</p>
    ${retry && html`<button type="button" onClick=${retry}>${t("Try again")}</button>`}
  </div>`;
}

/** What the signed-in user may not do, with the scope or role that is missing. */
export function Refused({ needs: missingRight }) {
  return html`<div class="empty"><p class="empty-title">${t("You may not see this")}</p>
    <p>${t("It needs {right}. An admin of the workspace can change your role.", { right: missingRight })}</p></div>`;
}

/** Shown above data that could not be loaded again. */
function Stale({ error, retry }) {
  return html`<div class="notice warning" role="status">
    <p>${t("This may be out of date.")} ${error.message} <button type="button" class="link" onClick=${retry}>${t("Try again")}</button></p>
  </div>`;
}

// ---- pieces ----

/** The head of a screen: its one h1, what stands beside it, its actions. */
export function Head({ title, text, back, backText, badge, children }) {
  useEffect(() => {
    document.title = `${title} · messaging`;
  }, [title]);
  return html`<header class="head">
    ${back && html`<p class="back"><a href=${back}>‹ ${backText}</a></p>`}
    <div class="head-line"><h1 tabindex="-1" dir="auto">${title}</h1>${badge}<div class="actions">${children}</div></div>
    ${text && html`<p class="muted">${text}</p>`}
  </header>`;
}

/** Words for a state; the sign in front is for those who do not see its colour. */
export const SIGNS = {
  good: "●", busy: "◐", wait: "○", bad: "■", warn: "▲", off: "–",
};

const TONES = {
  delivered: "good", sent: "good", active: "good", verified: "good", completed: "good", ready: "good", ok: "good", succeeded: "good",
  queued: "wait", scheduled: "wait", pending: "wait", draft: "wait", waiting: "wait", confirmed: "good", open: "good", click: "good",
  sending: "busy", running: "busy", processing: "busy", recalculating: "busy", importing: "busy",
  deferred: "warn", paused: "warn", warning: "warn", complained: "warn", complaint: "warn", unsubscribe: "warn", held: "warn",
  bounced: "bad", bounce: "bad", failed: "bad", fault: "bad", error: "bad", disabled: "bad", suppressed: "off",
  cancelled: "off", exited: "off", skipped: "off", archived: "off", revoked: "off",
};

/** A state as a badge. */
export function Badge({ status, children }) {
  const tone = TONES[status] ?? "off";
  return html`<span class="badge ${tone}"><span aria-hidden="true">${SIGNS[tone]}</span> ${children ?? t(words(status))}</span>`;
}

/** `provider_error` → `provider error`. */
export function words(code) {
  return String(code ?? "").replaceAll("_", " ");
}

/** A button that copies a text. */
export function Copy({ text, label = t("Copy") }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await copyText(text);
    setDone(true);
    announce(t("Copied"));
    setTimeout(() => setDone(false), 1500);
  };
  return html`<button type="button" class="small" onClick=${copy}>${done ? t("Copied") : label}</button>`;
}

async function copyText(text) {
  // The clipboard API exists only over https and on localhost.
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  return undefined;
}

/** A block of code with a button that copies it. */
export function Code({ text, label }) {
  return html`<div class="code"><pre tabindex="0" aria-label=${label ?? t("Code")}>${text}</pre><${Copy} text=${text} /></div>`;
}

/** Pairs of a name and a value; pairs without a value are left out. */
export function Facts({ pairs }) {
  return html`<${Listed.Provider} value=${true}><dl class="facts">${pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").map(
    ([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`,
  )}</dl></${Listed.Provider}>`;
}

/** Tabs that stand in the URL: `[{ id, label, href }]`. */
export function Tabs({ tabs, current, label }) {
  return html`<nav class="tabs" aria-label=${label ?? t("Views")}>${tabs.map(
    (tab) => html`<a href=${tab.href} aria-current=${tab.id === current ? "page" : undefined}>${tab.label}</a>`,
  )}</nav>`;
}

/** A figure with its name; `of` adds a share. */
export function Figure({ name, value, note, href }) {
  const shown = typeof value === "number" ? number(value) : value;
  return html`<div class="figure"><p class="figure-name">${name}</p>
    <p class="figure-value">${href ? html`<a href=${href}>${shown}</a>` : shown}</p>
    ${note && html`<p class="muted">${note}</p>`}</div>`;
}

/** How far something is, in words and as a bar. */
export function Progress({ value, max, label }) {
  const share = max ? Math.min(1, value / max) : 0;
  return html`<div class="progress"><progress value=${share} max="1" aria-label=${label}></progress>
    <span>${percent(share)}</span></div>`;
}

/** Says that the workspace's email stays here, wherever something is called sent or delivered. */
export function Sandboxed({ channel = "email" }) {
  if (channel !== "email" || !workspace()?.email_sandboxed) return null;
  return html`<p class="notice sandboxed">${t("The sandbox captures the email of this workspace: “sent” and “delivered” mean that it was captured here. Nothing leaves.")}</p>`;
}

// ---- said and asked ----

let liveRegion;

/** Says a text in the one live region, and shows it for a while; an `unseen` one is only said, for it is seen elsewhere. */
export function announce(text, { fault = false, unseen = false } = {}) {
  liveRegion?.({ text, fault, unseen });
}

/** The live region; stands once on the page. */
export function Announcements() {
  const [said, setSaid] = useState(null);
  useEffect(() => {
    let timer;
    liveRegion = (next) => {
      clearTimeout(timer);
      setSaid(next);
      timer = setTimeout(() => setSaid(null), 6000);
    };
    return () => { liveRegion = undefined; };
  }, []);
  // It is there before anything is said: what appears together with its text is often not read out.
  const look = said && !said.unseen ? `toast ${said.fault ? "fault" : ""}` : "sr";
  return html`<div class=${look} role="status" aria-live="polite">${said?.text}</div>`;
}

let openDialog;

/**
 * Opens a dialog: `draw(close)` draws its content, `close(value)` ends it. Answers what it was closed with, or
 * undefined after Escape or Back. It has an entry of the history to itself, so that Back leaves the dialog and not the
 * screen.
 */
export function dialog(draw, { title, wide = false } = {}) {
  return new Promise((resolve) => openDialog({ draw, title, wide, resolve }));
}

/** The dialogs; stands once on the page. */
export function Dialogs() {
  const [shown, setShown] = useState([]);
  const open = useRef([]);
  const keep = (next) => {
    open.current = next;
    setShown(next);
  };
  const close = (one, value) => {
    if (!open.current.includes(one)) return;
    keep(open.current.filter((other) => other !== one));
    // In the next task, once a link in the dialog was followed: then the entry is an earlier one and stays.
    setTimeout(() => {
      if (history.state?.dialog !== one.key) return one.resolve(value);
      addEventListener("popstate", () => one.resolve(value), { once: true });
      return history.back();
    });
  };
  useEffect(() => {
    openDialog = (next) => {
      const key = (open.current.at(-1)?.key ?? 0) + 1;
      history.pushState({ ...history.state, dialog: key }, "");
      keep([...open.current, { ...next, key }]);
    };
    const moved = () => {
      const left = open.current.filter(({ key }) => key > (history.state?.dialog ?? 0));
      if (!left.length) return;
      keep(open.current.filter((one) => !left.includes(one)));
      for (const one of left) one.resolve(undefined);
    };
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  return shown.map((one) => html`<${Dialog} key=${one.key} title=${one.title} wide=${one.wide} onClose=${(value) => close(one, value)}>
    ${one.draw((value) => close(one, value))}</${Dialog}>`);
}

function Dialog({ title, wide, onClose, children }) {
  const element = useRef();
  const heading = useId();
  useEffect(() => {
    const before = document.activeElement;
    element.current.showModal();
    return () => before?.isConnected && before.focus();
  }, []);
  return html`<dialog ref=${element} class=${wide ? "wide" : ""} aria-labelledby=${heading}
      onCancel=${(event) => { event.preventDefault(); onClose(); }}>
    <header role="none"><h2 id=${heading}>${title}</h2>
      <button type="button" class="quiet" aria-label=${t("Close")} onClick=${() => onClose()}>✕</button></header>
    ${children}
  </dialog>`;
}

/**
 * Asks before something that cannot be undone: its effect, and with `name` that the name is typed. Answers whether to
 * go on.
 */
export function confirm({ title, text, action, name, back }) {
  return dialog((close) => html`<${Confirm} text=${text} action=${action} name=${name} back=${back} close=${close} />`, { title })
    .then(Boolean);
}

function Confirm({ text, action, name, back = t("Cancel"), close }) {
  const [typed, setTyped] = useState("");
  const id = useId();
  return html`<form onSubmit=${(event) => { event.preventDefault(); close(true); }}>
    <p>${text}</p>
    ${name && html`<div class="field"><label for=${id}>${t("Type {name} to go on", { name })}</label>
      <input id=${id} value=${typed} autocomplete="off" autofocus onInput=${(event) => setTyped(event.target.value)} /></div>`}
    <div class="actions"><button type="submit" class="danger" disabled=${Boolean(name) && typed.trim() !== name}>${action}</button>
      <button type="button" onClick=${() => close(false)}>${back}</button></div>
  </form>`;
}

/** A button that makes one call, says what came of it, and is not there for those who may not make the call. */
export function Action({ id, args, children, onDone, done, before, className = "" }) {
  const [busy, setBusy] = useState(false);
  if (!allowed(id)) return null;
  const run = async () => {
    if (busy || (before && !(await before()))) return;
    setBusy(true);
    try {
      const answer = await call(id, typeof args === "function" ? args() : args);
      announce(done ?? t("Done"));
      onDone?.(answer);
    } catch (error) {
      announce(error.message, { fault: true });
    } finally {
      setBusy(false);
    }
  };
  return html`<button type="button" class=${className} aria-disabled=${busy || undefined} data-operation=${id} onClick=${run}>${children}</button>`;
}
