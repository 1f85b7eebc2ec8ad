// What was sent to a webhook: each request with its answer, retries, replay.
import { allowed, call } from "../lib/api.js";
import { absolute, Action, Badge, Code, dialog, duration, Empty, Facts, html, Loaded, t, Time, useEffect, useReducer, useState, words } from "../lib/ui.js";
import { Filters, List } from "../lib/table.js";
import { href } from "../lib/route.js";

const STATUSES = [["pending", "pending"], ["delivered", "delivered"], ["failed", "failed"], ["held", "held"], ["expired", "expired"]];

// How often the list is read again while something is under way.
const AGAIN_MILLISECONDS = 3000;

const ERRORS = {
  timeout: "No answer within 15 seconds.",
  connection_failed: "No connection: is the receiver running, and does its firewall let us in?",
  tls_error: "The certificate of the receiver is not valid for its name, or has expired.",
  dns_error: "The name of the receiver could not be looked up.",
  blocked_address: "The name leads to a private address, which this server does not call.",
};

export default function Deliveries({ webhook, query, round, again }) {
  const [waiting, setWaiting] = useState(false);
  const [polls, poll] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    if (!waiting) return undefined;
    const timer = setInterval(() => document.visibilityState === "visible" && poll(), AGAIN_MILLISECONDS);
    return () => clearInterval(timer);
  }, [waiting]);
  const { status } = query;
  const isSoon = ({ status: now, next_attempt_at: at }) => now === "pending" && (!at || new Date(at) - Date.now() < 60000);
  return html`
    <${Filters} fields=${[{ name: "status", label: t("Status"), options: STATUSES.map(([value, text]) => [value, t(text)]) }]} />
    <${List} key=${status} id="listDeliveries" args=${{ path: { id: webhook.id }, query: { status } }} filters=${["status"]} words=${["delivery", "deliveries"]}
      nameOf=${(row) => `${row.event_type} ${absolute(row.created_at)}`} onChange=${again} caption=${t("Deliveries")}
      reloads=${round + polls} onRows=${(rows) => setWaiting(rows.some(isSoon))}
      columns=${[
        { label: t("Event"), cell: (row) => html`${t(row.event_type)}${row.is_test && row.event_type !== "test" && html` <span class="muted">${t("test")}</span>`}${row.replay_of && html` <span class="muted">${t("replay")}</span>`}` },
        { label: t("Status"), cell: (row) => html`<${State} delivery=${row} />` },
        { label: t("Answer"), cell: (row) => answerOf(row) },
        { label: t("Attempts"), numeric: true, cell: (row) => row.attempts },
        { label: t("Next try"), cell: (row) => row.status === "pending" && html`<${Time} at=${row.next_attempt_at} />` },
        { label: t("When"), cell: (row) => html`<${Time} at=${row.created_at} />` },
      ]}
      actions=${(row) => html`<button type="button" class="small" onClick=${() => open(webhook, row)}>${t("Details")}<span class="sr"> ${row.event_type} ${absolute(row.created_at)}</span></button>
        ${mayReplay(row) && html` <${Action} id="replayDelivery" className="small" args=${{ path: { delivery_id: row.id } }} onDone=${again} done=${t("Sent once more")}>${t("Replay")}<span class="sr"> ${row.event_type} ${absolute(row.created_at)}</span></${Action}>`}`}
      empty=${html`<${Empty} title=${t("Nothing was sent here yet")} text=${t("What was sent in the last 30 days stands here. Test sends a made-up event at once.")}
        example=${`messaging webhook test ${webhook.id}`} />`} />`;
}

// One that was refused and waits is not told like one that was not tried yet.
function State({ delivery: { status, attempts } }) {
  return status === "pending" && attempts > 0
    ? html`<${Badge} status="warning">${t("tried again later")}</${Badge}>`
    : html`<${Badge} status=${status} />`;
}

// What is under way goes on by itself.
function mayReplay({ status }) {
  return status !== "pending" && status !== "held";
}

function answerOf({ response_status: status, error, duration_ms: took }) {
  if (!status && !error) return html`<span class="muted">–</span>`;
  const text = status ? String(status) : t(words(error));
  return html`${error ? html`<strong class="fault-text">${text}</strong>` : text}${took !== null && html` <span class="muted nowrap">${duration(took)}</span>`}`;
}

// ---- one delivery ----

function open(webhook, delivery) {
  return dialog((close) => html`<${Delivery} webhook=${webhook} delivery=${delivery} close=${close} />`, { title: t("Delivery of the event “{event}”", { event: delivery.event_type }), wide: true });
}

function Delivery({ webhook, delivery, close }) {
  const { status, error, attempts, response_status: code, response_body: body } = delivery;
  return html`
    <${Facts} pairs=${[
      [t("Status"), html`<${State} delivery=${delivery} />`],
      [t("What happened"), error === "http_status" ? t("The receiver answered {code}; anything but 2xx counts as failed.", { code }) : error && t(ERRORS[error] ?? words(error))],
      [t("Attempts"), String(attempts)],
      [t("Next try"), status === "pending" && delivery.next_attempt_at && absolute(delivery.next_attempt_at)],
      [t("When"), absolute(delivery.created_at)],
      [t("Delivered"), delivery.delivered_at && absolute(delivery.delivered_at)],
      [t("Replay of"), delivery.replay_of && html`<code>${delivery.replay_of}</code>`],
      ["ID", html`<code>${delivery.id}</code>`],
    ].filter(([, value]) => value)} />
    <h3>${t("Request")}</h3>
    <${Request} webhook=${webhook} delivery=${delivery} close=${close} />
    <h3>${t("Answer")}</h3>
    ${code
      ? html`<p>HTTP ${code}${delivery.duration_ms !== null && html` <span class="muted">${t("after {time}", { time: duration(delivery.duration_ms) })}</span>`}</p>
        ${body ? html`<${Code} text=${body} label=${t("Answer")} />` : html`<p class="muted">${t("Without a body.")}</p>`}`
      : html`<p class="muted">${attempts ? t("There was none.") : t("Not sent yet.")}</p>`}`;
}

/** The request. Its body is the event, which stands in the stream of events; that of a test is kept nowhere. */
function Request({ webhook, delivery, close }) {
  const { event_id: id, is_test: isTest } = delivery;
  const [found, setFound] = useState({ loading: !isTest && allowed("listWebhookEvents") });
  const look = () => findEvent(id).then((event) => setFound({ data: { event } }), (error) => setFound({ error }));
  useEffect(() => { if (found.loading) look(); }, [found.loading]);
  const head = [`POST ${webhook.url}`, "Content-Type: application/json", `webhook-id: ${id}`, "webhook-timestamp: …", "webhook-signature: v1,…"].join("\n");
  if (isTest) return html`<${Code} text=${head} label=${t("Request")} /><p class="muted">${t("The body of a test is not kept.")}</p>`;
  return html`<${Loaded} of=${{ ...found, reload: () => setFound({ loading: true }) }}>${({ event }) => html`
    <${Code} text=${event ? `${head}\n\n${JSON.stringify(event, null, 2)}` : head} label=${t("Request")} />
    ${event?.data.message_id && html`<p><a href=${href(`messages/${event.data.message_id}`)} onClick=${() => close()}>${t("The message")}</a></p>`}
    ${!event && html`<p class="muted">${t("The event is no longer kept.")}</p>`}
    ${event && !webhook.pii && html`<p class="muted">${t("In the request itself addresses are masked.")}</p>`}`}</${Loaded}>`;
}

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

// The first ten characters of an id are its time, by which the event is found in the stream.
async function findEvent(id) {
  const time = [...id.split("_")[1].slice(0, 10)].reduce((sum, letter) => sum * 32 + ALPHABET.indexOf(letter), 0);
  const { data } = await call("listWebhookEvents", { query: { since: new Date(time - 1000).toISOString(), limit: 200, wait: 0 }, quiet: true });
  return data.find((event) => event.id === id) ?? null;
}
