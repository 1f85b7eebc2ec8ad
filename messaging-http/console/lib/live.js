// Events as they come, and each as a line. One tab of the browser polls and tells the others.
import { call, isConnected, onConnection, workspace } from "./api.js";
import { Badge, html, Listed, t, Time, useEffect, useRef, useState, words } from "./ui.js";
import { href } from "./route.js";

const WAIT_SECONDS = 25;
const PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30000;

const listeners = new Set();
let stop;

// What the last poll came to, of whichever tab: `asking` at first, `listening`, `refused`, `failed`.
let state = "asking";
const watchers = new Set();

function become(next) {
  state = next;
  for (const watcher of watchers) watcher(next);
}

/** Whether events are heard of: `asking`, `listening`, `refused`, or `failed`. */
export function useListening() {
  const [shown, setShown] = useState(state);
  const [isThere, setIsThere] = useState(isConnected);
  useEffect(() => {
    setShown(state);
    watchers.add(setShown);
    const forget = onConnection(setIsThere);
    return () => {
      forget();
      watchers.delete(setShown);
    };
  }, []);
  return isThere ? shown : "failed";
}

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
  let isPolling = false;
  const tellOthers = (events) => channel.postMessage({ events, after: place.after, state });
  become("asking");
  channel.onmessage = ({ data }) => {
    // Another tab has begun to listen, and wants to know whether anything is heard.
    if (data === "asking") {
      if (isPolling) tellOthers([]);
      return;
    }
    place.after = data.after ?? place.after;
    become(data.state);
    if (data.events.length) tell(data.events);
  };
  channel.postMessage("asking");
  const onPoll = (next, events = []) => {
    const isNew = next !== state;
    become(next);
    if (events.length) tell(events);
    if (events.length || isNew) tellOthers(events);
  };
  // A tab that nobody sees neither polls nor keeps others from polling.
  let shown;
  const look = () => {
    shown?.abort();
    if (document.visibilityState !== "visible") return;
    shown = new AbortController();
    const { signal } = shown;
    const run = async () => {
      isPolling = true;
      await poll(signal, place, onPoll);
      isPolling = false;
    };
    // Locks exist only over https and on localhost; elsewhere each tab asks for itself.
    if (navigator.locks) navigator.locks.request(`messaging.events.${id}`, { signal }, run).catch(() => {});
    else run();
  };
  document.addEventListener("visibilitychange", look, { signal: ended.signal });
  // A poll that was open when the connection broke perhaps never ends.
  const forget = onConnection((isThere) => isThere && look());
  look();
  return () => {
    forget();
    ended.abort();
    shown?.abort();
    channel.close();
  };
}

async function poll(signal, place, onPoll) {
  let pause = PAUSE_MS;
  // The first one is answered at once, and tells whether anything is heard.
  let wait = 0;
  while (!signal.aborted) {
    const { after, since } = place;
    try {
      const page = await call("listWebhookEvents", { query: { after, since: after ? undefined : since, wait, limit: 100 }, quiet: true, signal });
      pause = PAUSE_MS;
      place.after = page.next_cursor ?? after;
      onPoll("listening", page.data);
      if (!wait) {
        wait = WAIT_SECONDS;
        continue;
      }
    } catch (error) {
      if (signal.aborted) return;
      wait = 0;
      // Who may not see events never will; others try again, ever more slowly.
      onPoll(error.status === 403 ? "refused" : "failed");
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
    bounce: [words(meta.bounce_class), meta.response],
    deferred: [meta.response],
    failed: [words(meta.reason), meta.message],
    suppressed: [words(meta.reason)],
    click: [meta.url],
    delivered: [meta.response],
    complaint: [words(meta.feedback_type)],
    unsubscribe: [words(meta.method)],
  }[type] ?? [];
  const machine = meta.machine ? [t("by a machine")] : [];
  return [...machine, ...said.filter(Boolean)].join(" · ");
}

/** A line of a list of events. */
export function EventLine({ event }) {
  const { data } = event;
  return html`<${Listed.Provider} value=${true}><li><${Time} at=${event.timestamp} /> <${Badge} status=${event.type} />
    <a href=${href(`messages/${data.message_id}`)}>${data.meta?.recipient ?? data.to ?? data.message_id}</a>
    <span class="muted">${told(event)}</span></li></${Listed.Provider}>`;
}
