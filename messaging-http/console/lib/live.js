// Events as they come, and each as a line. One tab of the browser polls and tells the others.
import { call, workspace } from "./api.js";
import { Badge, html, t, Time, useEffect, useRef } from "./ui.js";
import { href } from "./route.js";

const WAIT_SECONDS = 25;
const PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30000;

const listeners = new Set();
let stop;

/** Calls back with events as they come: `listen(events => …)` answers how to end that. */
export function listen(listener) {
  listeners.add(listener);
  stop ??= begin();
  return () => {
    listeners.delete(listener);
    if (!listeners.size) {
      stop();
      stop = undefined;
    }
  };
}

/** Hears events as long as the component is drawn. */
export function useLive(onEvents, active = true) {
  const heard = useRef(onEvents);
  heard.current = onEvents;
  useEffect(() => (active ? listen((events) => heard.current(events)) : undefined), [active]);
}

function tell(events) {
  for (const listener of listeners) listener(events);
}

function begin() {
  const ended = new AbortController();
  const id = workspace().workspace_id;
  const channel = new BroadcastChannel(`messaging.events.${id}`);
  // Where to go on: after the last event that this tab saw, whoever asked for it.
  const place = { after: undefined, since: new Date().toISOString() };
  channel.onmessage = ({ data }) => {
    place.after = data.after;
    tell(data.events);
  };
  const onEvents = (events) => {
    tell(events);
    channel.postMessage({ events, after: place.after });
  };
  // A tab that nobody sees neither polls nor keeps others from polling.
  let shown;
  const look = () => {
    shown?.abort();
    if (document.visibilityState !== "visible") return;
    shown = new AbortController();
    const { signal } = shown;
    const run = () => poll(signal, place, onEvents);
    // Locks exist only over https and on localhost; elsewhere each tab asks for itself.
    if (navigator.locks) navigator.locks.request(`messaging.events.${id}`, { signal }, run).catch(() => {});
    else run();
  };
  document.addEventListener("visibilitychange", look, { signal: ended.signal });
  look();
  return () => {
    ended.abort();
    shown?.abort();
    channel.close();
  };
}

async function poll(signal, place, onEvents) {
  let pause = PAUSE_MS;
  while (!signal.aborted) {
    const { after, since } = place;
    try {
      const page = await call("listWebhookEvents", { query: { after, since: after ? undefined : since, wait: WAIT_SECONDS, limit: 100 }, quiet: true, signal });
      pause = PAUSE_MS;
      place.after = page.next_cursor ?? after;
      if (page.data.length) onEvents(page.data);
    } catch (error) {
      if (signal.aborted) return;
      // Who may not see events never will; others try again, ever more slowly.
      if (error.status === 403) return;
      pause = Math.max((error.retryAfter ?? 0) * 1000, Math.min(pause * 2, LONGEST_PAUSE_MS));
    }
    await sleep(pause, signal);
  }
}

function sleep(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}

// ---- one of them ----

/** What an event says beyond its kind. */
export function told({ type, data }) {
  const { meta = {} } = data;
  const said = {
    bounce: [meta.bounce_class?.replaceAll("_", " "), meta.response],
    deferred: [meta.response],
    failed: [meta.reason?.replaceAll("_", " "), meta.message],
    suppressed: [meta.reason?.replaceAll("_", " ")],
    click: [meta.url],
    delivered: [meta.response],
    complaint: [meta.feedback_type],
    unsubscribe: [meta.method?.replaceAll("_", " ")],
  }[type] ?? [];
  const machine = meta.machine ? [t("by a machine")] : [];
  return [...machine, ...said.filter(Boolean)].join(" · ");
}

/** A line of a list of events. */
export function EventLine({ event }) {
  const { data } = event;
  return html`<li><${Time} at=${event.timestamp} /> <${Badge} status=${event.type} />
    <a href=${href(`messages/${data.message_id}`)}>${data.meta?.recipient ?? data.to ?? data.message_id}</a>
    <span class="muted">${told(event)}</span></li>`;
}
