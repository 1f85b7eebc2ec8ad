// What happened with a contact: messages and runs of automations, and on demand the product events.
import { allowed, call } from "../lib/api.js";
import { channelName, Written } from "../lib/contacts.js";
import { href } from "../lib/route.js";
import { announce, Badge, Failed, html, Listed, Loading, t, Time, useCall, useEffect, useState, words } from "../lib/ui.js";

const PAGE = 20;
// Runs are listed by automation; so many are asked, the newest first.
const AUTOMATIONS = 20;

/** Messages page by page: `{ rows, more, error, loading }`. */
function useMessages(contactId) {
  const [state, setState] = useState({ rows: [], loading: allowed("listMessages"), more: null });
  const load = async (cursor) => {
    setState((old) => ({ ...old, loading: true, error: null }));
    try {
      const page = await call("listMessages", { query: { contact_id: contactId, limit: PAGE, cursor } });
      setState((old) => ({ rows: [...(cursor ? old.rows : []), ...page.data], more: page.next_cursor, loading: false }));
    } catch (error) {
      setState((old) => ({ ...old, error, loading: false }));
    }
  };
  useEffect(() => { if (allowed("listMessages")) load(); }, [contactId]);
  return { ...state, load };
}

function useRuns(contactId) {
  const automations = useCall(allowed("listAutomationRuns") && "listAutomations", { query: { limit: AUTOMATIONS } }, { quiet: true });
  const [runs, setRuns] = useState([]);
  useEffect(() => {
    const abort = new AbortController();
    for (const { id, name, status } of automations.data?.data ?? []) {
      if (status === "draft") continue;
      call("listAutomationRuns", { path: { id }, query: { contact_id: contactId, limit: PAGE }, signal: abort.signal }).then(
        ({ data }) => setRuns((old) => [...old, ...data.map((run) => ({ ...run, name }))]),
        () => {},
      );
    }
    return () => abort.abort();
  }, [automations.data]);
  return runs;
}

export function Timeline({ contact }) {
  const messages = useMessages(contact.id);
  const runs = useRuns(contact.id);
  const [events, setEvents] = useState(null);
  const [busy, setBusy] = useState(false);
  const showEvents = async () => {
    setBusy(true);
    try {
      const found = await call("exportContact", { path: { id: contact.id } });
      setEvents(found.events);
      announce(t("Product events are shown"));
    } catch (error) {
      announce(error.message, { fault: true });
    }
    setBusy(false);
  };
  const items = [
    ...messages.rows.map((one) => ({ key: one.message_id, at: one.created_at, draw: () => html`<${Message} message=${one} />` })),
    ...runs.map((one) => ({ key: one.id, at: one.entered_at, draw: () => html`<${Run} run=${one} />` })),
    ...(events ?? []).map((one) => ({ key: one.event_id, at: one.occurred_at, draw: () => html`<${ProductEvent} event=${one} />` })),
  ].sort((one, other) => (one.at < other.at ? 1 : -1));
  return html`<section class="stack" aria-labelledby="timeline">
    <div class="head-line"><h2 id="timeline">${t("Timeline")}</h2>
      ${allowed("exportContact") && !events && html`<div class="actions"><button type="button" class="small" disabled=${busy} onClick=${showEvents}>${t("Show product events")}</button></div>`}</div>
    ${messages.error && html`<${Failed} error=${messages.error} retry=${() => messages.load()} />`}
    ${items.length > 0 && html`<${Listed.Provider} value=${true}><ol class="timeline">${items.map(({ key, draw }) => html`<li key=${key}>${draw()}</li>`)}</ol></${Listed.Provider}>`}
    ${messages.loading && html`<${Loading} />`}
    ${!items.length && !messages.loading && !messages.error && html`<p class="muted">${events ? t("Nothing happened yet.") : t("No message was sent to this contact yet, and no automation took it in.")}</p>`}
    ${messages.more && !messages.loading && html`<button type="button" onClick=${() => messages.load(messages.more)}>${t("Older messages")}</button>`}
  </section>`;
}

function Message({ message }) {
  return html`<span class="dot" aria-hidden="true">✉</span>
    <div class="line"><a href=${href(`messages/${message.message_id}`)} class="row-link"><${Written}>${message.subject || channelName(message.channel)}</${Written}></a>
      <${Badge} status=${message.status} /> <${Time} at=${message.created_at} /></div>
    <p class="muted">${message.explanation?.text}</p>`;
}

function Run({ run }) {
  return html`<span class="dot" aria-hidden="true">◇</span>
    <div class="line"><a href=${href(`automations/${run.automation_id}/runs/${run.id}`)} class="row-link"><${Written}>${run.name}</${Written}></a>
      <${Badge} status=${run.status} /> <${Time} at=${run.entered_at} /></div>
    <p class="muted">${run.exit_reason ? t("Automation, ended: {reason}", { reason: words(run.exit_reason) }) : t("Automation")}</p>`;
}

function ProductEvent({ event }) {
  const text = JSON.stringify(event.properties ?? {});
  return html`<span class="dot" aria-hidden="true">◆</span>
    <div class="line"><strong dir="auto">${event.name}</strong> <span class="muted">${t("product event")}</span> <${Time} at=${event.occurred_at} /></div>
    ${text !== "{}" && html`<p><code>${text.length > 300 ? `${text.slice(0, 300)}…` : text}</code></p>`}`;
}
