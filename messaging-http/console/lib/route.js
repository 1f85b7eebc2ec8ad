// Routes stand behind the `#` of the URL: `#/messages?status=bounced`. Filters and tabs are part of them.
import { useEffect, useState } from "../vendor/hooks.js";

/** The parts of a hash: `{ segments, query }`. */
export function parse(hash) {
  const [path, search = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const segments = path.split("/").filter(Boolean).map(decode);
  return { segments, query: Object.fromEntries(new URLSearchParams(search)) };
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** A link: `href("messages", { status: "bounced" })`. Members of the query without a value are left out. */
export function href(path, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(pairs).toString();
  return `#/${path}${search && `?${search}`}`;
}

/** Goes to another screen. */
export function go(path, query) {
  location.hash = href(path, query);
}

/** Changes the query of the screen that is shown; the earlier one is left out of the history. */
export function changeQuery(change) {
  const { segments, query } = parse(location.hash);
  const target = href(segments.map(encodeURIComponent).join("/"), { ...query, ...change });
  history.replaceState(history.state, "", target);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

// ---- what an entry of the history remembers ----

// Rows and the place of the page, by entry; lost with the tab.
const memories = new Map();
const REMEMBERED = 50;

/** What the shown entry of the history remembers; an object to be filled. */
export function memory() {
  let { entry } = history.state ?? {};
  if (!entry) {
    entry = `${Date.now()}-${Math.random()}`;
    history.replaceState({ ...history.state, entry }, "");
  }
  if (!memories.has(entry)) {
    memories.set(entry, {});
    if (memories.size > REMEMBERED) memories.delete(memories.keys().next().value);
  }
  return memories.get(entry);
}

/** The shown route; the component is drawn again when it changes. */
export function useRoute() {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => setRoute(parse(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
