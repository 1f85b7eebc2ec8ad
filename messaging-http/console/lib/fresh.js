// Lists whose rows never jump: what is shown is kept up to date in its place, what is new is only counted.
import { allowed, call } from "./api.js";
import { count, html, t, useEffect, useRef, useState } from "./ui.js";
import { useLive } from "./live.js";

const LOOK_MS = 15000;
const REST_MS = 2000;

/**
 * Looks again at the first page of what `id` lists, when events come and now and then besides. `shown` are the rows on
 * the screen, by `keyOf(row)`. Answers `{ now(row), fresh, more }`: the newest state of a row, how many rows stand above
 * the shown ones, and whether there are more of them than were counted. `active` is false on further pages.
 */
export function useFresh({ id, query, shown, keyOf, active }) {
  const [found, setFound] = useState({ rows: new Map(), fresh: 0 });
  const looked = useRef({ at: 0 });
  const latest = useRef();
  latest.current = { shown, query, asked: JSON.stringify(query) };
  const look = useRef();
  look.current = async () => {
    const { shown: rows, query: wanted, asked } = latest.current;
    if (!rows || document.visibilityState !== "visible") return;
    looked.current.at = Date.now();
    try {
      const page = await call(id, { query: { ...wanted, cursor: undefined }, quiet: true });
      // The answer to an earlier question tells nothing about the rows that stand there by now.
      if (latest.current.shown !== rows || latest.current.asked !== asked) return;
      const known = new Set(rows.map(keyOf));
      const at = rows.length ? page.data.findIndex((row) => known.has(keyOf(row))) : page.data.length;
      const fresh = at < 0 ? page.data.length : at;
      setFound({ rows: new Map(page.data.map((row) => [keyOf(row), row])), fresh, more: at < 0 || (!rows.length && Boolean(page.next_cursor)) });
    } catch {
      // The rows stay as they are; the next look may succeed.
    }
  };
  const soon = () => {
    const state = looked.current;
    state.timer ??= setTimeout(() => {
      state.timer = undefined;
      look.current();
    }, Math.max(0, REST_MS - (Date.now() - state.at)));
  };
  useLive(soon, active && allowed("listWebhookEvents"));
  useEffect(() => {
    if (!active) return undefined;
    const timer = setInterval(() => look.current(), LOOK_MS);
    return () => {
      clearInterval(timer);
      clearTimeout(looked.current.timer);
      looked.current.timer = undefined;
    };
  }, [active]);
  useEffect(() => setFound({ rows: new Map(), fresh: 0 }), [shown]);
  return { now: (row) => found.rows.get(keyOf(row)) ?? row, fresh: found.fresh, more: found.more };
}

/** Above a list: a button that counts what is new and shows it. */
export function News({ fresh, more, onShow }) {
  const show = () => {
    onShow();
    scrollTo(0, 0);
  };
  return html`<div class="news" role="status">${fresh > 0
    ? html`<button type="button" class="small" onClick=${show}>${more ? t("More than {fresh} new", { fresh }) : count(fresh, "new", "new")}</button>`
    : html`<span class="muted">${t("Newest first")}</span>`}</div>`;
}
