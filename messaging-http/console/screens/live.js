// Live: events as they come, with pause and filters. It begins with those of the last minutes.
import { allowed, call } from "../lib/api.js";
import { absolute, Badge, Code, count, Empty, Head, html, t, useEffect, useMemo, useRef, useState, words } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { Filters, isFiltered } from "../lib/table.js";
import { told, useLive } from "../lib/live.js";
import { CHANNELS, channelName } from "../lib/channels.js";

const KEPT = 500;
const BEFORE_MS = 600000;
const TYPES = ["sent", "delivered", "deferred", "bounce", "complaint", "open", "click", "unsubscribe", "failed", "suppressed", "cancelled"];

export default function Live({ query }) {
  const [events, setEvents] = useState(null);
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
    const since = new Date(Date.now() - BEFORE_MS).toISOString();
    // A full page would be the oldest events of the span, not the newest; then only new ones are shown.
    call("listWebhookEvents", { query: { since, wait: 0, limit: 200 } }).then(({ data }) => add(data.length < 200 ? data : []), () => add([]));
  }, []);
  const pause = () => {
    if (paused) add(held.current.toReversed());
    held.current = [];
    setWaiting(0);
    setPaused(!paused);
  };
  const shown = useMemo(() => (events ?? []).filter((event) => fits(event, query)), [events, JSON.stringify(query)]);
  return html`
    <${Head} title=${t("Live")} text=${t("Events as they come, the newest on top. It begins with the last ten minutes.")}>
      <button type="button" aria-pressed=${paused} onClick=${pause}>${paused ? t("Resume") : t("Pause")}</button>
    </${Head}>
    <${Filters} fields=${[
      { name: "type", label: t("Event"), options: TYPES.map((type) => [type, t(words(type))]) },
      { name: "channel", label: t("Channel"), options: CHANNELS.map((channel) => [channel, channelName(channel)]) },
      { name: "text", label: t("Text") },
    ]} />
    <p class="news muted" role="status">${paused
      ? t("Paused. {waiting} since then.", { waiting: count(waiting, t("event"), t("events")) })
      : html`<span class="pulse" aria-hidden="true">●</span> ${t("Listening")}${shown.length > 0 ? `, ${t("{shown} shown", { shown: count(shown.length, t("event"), t("events")) })}` : ""}`}</p>
    ${events && !shown.length && html`<${Nothing} filtered=${isFiltered(query, ["type", "channel", "text"])} />`}
    ${shown.length > 0 && html`<ol class="tail events" aria-label=${t("Events")}>${shown.map((event) => html`<${Line} key=${event.id} event=${event} />`)}</ol>`}`;
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
    <time class="mono" datetime=${timestamp} title=${absolute(at)}>${new Intl.DateTimeFormat(undefined, { timeStyle: "medium" }).format(at)}</time>
    <span><${Badge} status=${type} /></span> <a dir="auto" href=${href(`messages/${data.message_id}`)}>${data.meta?.recipient ?? data.to ?? data.message_id}</a>
    <span class="muted">${channelName(data.channel)}</span> <span class="muted told" dir="auto">${told(event)}</span>
    <button type="button" class="quiet small" aria-expanded=${open} aria-label=${t("Payload of {type} at {time}", { type: words(type), time: absolute(at, { timeStyle: "medium" }) })} onClick=${() => setOpen(!open)}>{ }</button>
    ${open && html`<${Code} text=${JSON.stringify(event, null, 2)} label=${t("Payload")} />`}
  </li>`;
}

function Nothing({ filtered }) {
  if (filtered) {
    return html`<div class="empty"><p class="empty-title">${t("Nothing matches yet")}</p>
      <p><a class="button" href=${href("live")}>${t("Clear filters")}</a></p></div>`;
  }
  return html`<${Empty} title=${t("Nothing happened in the last ten minutes")} text=${t("Events of messages appear here by themselves, as they do on the command line:")}
    action=${allowed("sendMessage") && t("Send a message")} href=${href("send")}
    example=${"messaging message watch"} />`;
}
