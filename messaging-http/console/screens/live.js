// Live: events as they come, with pause and filters. It begins with those of the last minutes.
import { allowed, call, onConnection } from "../lib/api.js";
import { absolute, Badge, Code, count, Empty, Failed, Head, html, t, useEffect, useMemo, useReducer, useRef, useState, words } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { Filters, isFiltered } from "../lib/table.js";
import { told, useListening, useLive } from "../lib/live.js";
import { CHANNELS, channelName } from "../lib/channels.js";

const KEPT = 500;
const BEFORE_MS = 600000;
const PAGE = 200;
const PAGES = 4;
const SHORTEST_MS = 1000;
const TYPES = ["sent", "delivered", "deferred", "bounce", "complaint", "open", "click", "unsubscribe", "failed", "suppressed", "cancelled"];

export default function Live({ query }) {
  const [events, setEvents] = useState(null);
  // Since when all that happened is shown, or why that is not known.
  const [begun, setBegun] = useState({});
  const [round, again] = useReducer((n) => n + 1, 0);
  const listening = useListening();
  const [paused, setPaused] = useState(false);
  const [waiting, setWaiting] = useState(0);
  const held = useRef([]);
  const add = (fresh) => setEvents((old) => merged(fresh, old ?? []));
  useLive((fresh) => {
    if (paused) {
      held.current = merged(fresh, held.current);
      setWaiting(held.current.length);
    } else {
      add(fresh);
    }
  });
  useEffect(() => {
    const abort = new AbortController();
    lately(abort.signal).then(
      ({ data, ...rest }) => {
        setBegun(rest);
        add(data);
      },
      (error) => !abort.signal.aborted && setBegun({ error }),
    );
    return () => abort.abort();
  }, [round]);
  useEffect(() => (begun.error && !begun.error.status ? onConnection((isThere) => isThere && again()) : undefined), [begun]);
  const pause = () => {
    if (paused) add(held.current.toReversed());
    held.current = [];
    setWaiting(0);
    setPaused(!paused);
  };
  const shown = useMemo(() => (events ?? []).filter((event) => fits(event, query)), [events, JSON.stringify(query)]);
  return html`
    <${Head} title=${t("Live")} text=${t("Events as they come, the newest on top.")}>
      <button type="button" aria-pressed=${paused} onClick=${pause}>${paused ? t("Resume") : t("Pause")}</button>
    </${Head}>
    <${Filters} fields=${[
      { name: "type", label: t("Event"), options: TYPES.map((type) => [type, t(words(type))]) },
      { name: "channel", label: t("Channel"), options: CHANNELS.map((channel) => [channel, channelName(channel)]) },
      { name: "text", label: t("Text") },
    ]} />
    <p class="news muted" role="status">${paused
      ? t("Paused. {waiting} since then.", { waiting: count(waiting, "event", "events") })
      : html`${listening === "listening" && html`<span class="pulse" aria-hidden="true">●</span> `}${t(HEARD[listening])}${shown.length > 0 ? `, ${t("{shown} shown", { shown: count(shown.length, "event", "events") })}` : ""}${begun.since ? ` · ${t("all since {time}", { time: absolute(begun.since, TIME) })}` : ""}`}</p>
    ${begun.error && html`<${Failed} error=${begun.error} retry=${again} />`}
    ${begun.isCut && html`<p class="notice warning">${t("More happens than can be shown from before: some events before {time} are left out. Messages lists all.", { time: absolute(begun.until, TIME) })} <a href=${href("messages")}>${t("Messages")}</a></p>`}
    ${events && !shown.length && html`<${Nothing} filtered=${isFiltered(query, ["type", "channel", "text"])} since=${begun.since} />`}
    ${shown.length > 0 && html`<ol class="tail events" aria-label=${t("Events")}>${shown.map((event) => html`<${Line} key=${event.id} event=${event} />`)}</ol>`}`;
}

const TIME = { dateStyle: "medium", timeStyle: "medium" };
const HEARD = { asking: "Connecting", listening: "Listening", refused: "Not listening: your role may not see events", failed: "Not listening: the server does not answer. It is tried again" };

/**
 * What happened lately: `{ data, since }`, all of it since then. The stream begins with the oldest, so where the last ten
 * minutes are more than a few pages, a later beginning is looked for; `isCut` where even a second has more.
 */
async function lately(signal) {
  const now = Date.now();
  for (let span = BEFORE_MS; ; span /= 4) {
    const since = new Date(now - span).toISOString();
    const data = [];
    let after;
    for (let page = 0; page < PAGES; page += 1) {
      const { data: more, next_cursor: next } = await call("listWebhookEvents", { query: { after, since: after ? undefined : since, wait: 0, limit: PAGE }, signal });
      data.push(...more);
      if (more.length < PAGE || !next) return { data, since };
      after = next;
    }
    if (span <= SHORTEST_MS) return { data, isCut: true, until: new Date(now).toISOString() };
  }
}

// Newest first, each once: another tab may tell what this one has asked for itself.
function merged(fresh, old) {
  const known = new Set(old.map(({ id }) => id));
  const all = [...fresh.filter(({ id }) => !known.has(id)).toReversed(), ...old];
  return all.sort((one, other) => other.timestamp.localeCompare(one.timestamp)).slice(0, KEPT);
}

function fits(event, { type, channel, text }) {
  if (type && event.type !== type) return false;
  if (channel && event.data.channel !== channel) return false;
  return !text || JSON.stringify(event).toLowerCase().includes(text.toLowerCase());
}

function Line({ event }) {
  const { data, timestamp, type } = event;
  const at = new Date(timestamp);
  const [open, setOpen] = useState(false);
  return html`<li class=${data.meta?.machine ? "machine" : ""}>
    <time class="mono" datetime=${timestamp} title=${absolute(at)}>${absolute(at, { dateStyle: "short", timeStyle: "medium" })}</time>
    <span><${Badge} status=${type} /></span> <a dir="auto" href=${href(`messages/${data.message_id}`)}>${data.meta?.recipient ?? data.to ?? data.message_id}</a>
    <span class="muted">${channelName(data.channel)}</span> <span class="muted told" dir="auto">${told(event)}</span>
    <button type="button" class="quiet small" aria-expanded=${open} aria-label=${t("Payload of {type} at {time}", { type: words(type), time: absolute(at, { timeStyle: "medium" }) })} onClick=${() => setOpen(!open)}>{ }</button>
    ${open && html`<${Code} text=${JSON.stringify(event, null, 2)} label=${t("Payload")} />`}
  </li>`;
}

function Nothing({ filtered, since }) {
  if (filtered) {
    return html`<div class="empty"><p class="empty-title">${t("Nothing matches yet")}</p>
      <p><a class="button" href=${href("live")}>${t("Clear filters")}</a></p></div>`;
  }
  // What happened before is not known where it could not be asked.
  if (!since) return null;
  return html`<${Empty} title=${t("Nothing happened since {time}", { time: absolute(since, TIME) })} text=${t("Events of messages appear here by themselves, as they do on the command line:")}
    action=${allowed("sendMessage") && t("Send a message")} href=${href("send")}
    example=${"messaging message watch"} />`;
}
