// What happened to a message: its events and the attempts to deliver it in one line of time, with the time between.
import { absolute, Badge, duration, html, Listed, Loaded, SIGNS, t, Time, words } from "../lib/ui.js";

// An attempt and what it led to are written down within this time.
const TOGETHER_MS = 3000;
const OUTCOMES = ["sent", "delivered", "deferred", "bounce", "failed"];
const TONES = { queued: "wait", delivered: "good", sent: "good", bounce: "bad", failed: "bad", deferred: "warn", complaint: "warn", unsubscribe: "warn", open: "good", click: "good" };

export function Timeline({ message, attempts }) {
  return html`
    ${attempts.error && html`<${Loaded} of=${{ ...attempts, data: undefined }} />`}
    <${Listed.Provider} value=${true}><ol class="timeline">${steps(message, attempts.data?.data ?? []).map((step, at, all) => html`
      <${Step} key=${step.key} step=${step} before=${all[at - 1]} events=${message.events} several=${severalRecipients(message)} />`)}
      ${message.explanation.next_attempt_at && html`<li class="machine"><span class="dot" aria-hidden="true">○</span>
        <div class="line"><strong>${nextStep(message)}</strong> <${Time} at=${message.explanation.next_attempt_at} /></div></li>`}</ol></${Listed.Provider}>`;
}

/** What is planned for a message that waits. */
export function nextStep(message) {
  if (message.scheduled_for) return t("Sent");
  if (message.status !== "deferred" || message.hold) return t("Looked at again");
  const tries = message.events.filter(({ kind, meta }) => kind === "deferred" && meta.attempt).map(({ meta }) => meta.attempt);
  return t("Try {number}", { number: Math.max(0, ...tries) + 1 });
}

function severalRecipients({ events }) {
  return new Set(events.map(({ meta }) => meta.recipient).filter(Boolean)).size > 1;
}

/** Events and attempts in their order; an attempt stands before the events that it led to. */
export function steps(message, attempts) {
  const events = message.events.map((event, at) => ({ key: `${event.kind}${at}`, at: Date.parse(event.at), event }));
  // Handed over and taken in one moment is one step.
  const shown = events.filter(({ event, at }) => !(event.kind === "sent" && events.some((other) => other.event.kind === "delivered"
    && other.event.meta.recipient === event.meta.recipient && Math.abs(other.at - at) < 1000)));
  const merged = [...shown];
  for (const attempt of [...attempts].sort((one, other) => one.at.localeCompare(other.at))) {
    const at = Date.parse(attempt.at);
    const place = merged.findIndex((step) => !step.taken && OUTCOMES.includes(step.event?.kind) && Math.abs(step.at - at) < TOGETHER_MS);
    const step = { key: `attempt${attempt.attempt}${attempt.at}`, at, attempt };
    if (place < 0) {
      merged.push(step);
      merged.sort((one, other) => one.at - other.at);
    } else {
      for (const other of merged) if (OUTCOMES.includes(other.event?.kind) && Math.abs(other.at - at) < TOGETHER_MS) other.taken = true;
      merged.splice(place, 0, { ...step, at: merged[place].at });
    }
  }
  return merged;
}

function Step({ step, before, events, several }) {
  const between = before ? step.at - before.at : 0;
  const gap = between > 0 && html`<span class="between">${t("{time} later", { time: duration(between) })}</span>`;
  return step.attempt ? html`<${Attempt} attempt=${step.attempt} gap=${gap} />` : html`<${Event} event=${step.event} gap=${gap} events=${events} several=${several} />`;
}

function Event({ event, gap, events, several }) {
  const { kind, at, meta } = event;
  const tone = meta.machine ? "off" : TONES[kind] ?? "off";
  return html`<li class=${meta.machine ? "machine" : ""}>
    <span class="dot ${tone}" aria-hidden="true">${SIGNS[tone]}</span>
    <div class="line"><strong>${name(event)}</strong> <${Time} at=${at} /> ${gap}</div>
    ${several && meta.recipient && html`<p class="muted" dir="auto">${meta.recipient}</p>`}
    ${details(event).map((text) => html`<p class="muted" dir="auto">${text}</p>`)}
    ${meta.machine && html`<p class="muted">${machine(event, events)}</p>`}
  </li>`;
}

const NAMES = {
  queued: "Accepted", sent: "Handed over", delivered: "Delivered", deferred: "Deferred", bounce: "Bounced", complaint: "Reported as unwanted",
  open: "Opened", click: "Clicked", unsubscribe: "Unsubscribed", failed: "Failed", suppressed: "Suppressed", cancelled: "Cancelled",
};

function name({ kind, meta }) {
  if (meta.machine) return kind === "open" ? t("Opened by a machine") : t("Clicked by a machine");
  return t(NAMES[kind] ?? words(kind));
}

function details({ kind, meta }) {
  const code = [meta.smtp_code, meta.provider_code].filter(Boolean).join(" ");
  // The text of an answer often begins with its enhanced code.
  const response = meta.response && [code, meta.response.startsWith(meta.enhanced_code) ? "" : meta.enhanced_code, meta.response].filter(Boolean).join(" ");
  const kindOf = meta.bounce_class && t("{type} bounce: {class}", { type: meta.bounce_type, class: words(meta.bounce_class) });
  return [
    kindOf,
    meta.reason && t("Reason: {reason}", { reason: words(meta.reason) }),
    meta.message,
    response,
    kind === "click" && meta.url,
    meta.feedback_type && t("Kind of report: {kind}", { kind: words(meta.feedback_type) }),
    meta.method && t("By {method}", { method: words(meta.method) }),
    meta.ambiguous && t("The answer to an earlier try was lost, so it may have arrived twice."),
    meta.source && t("By {method}", { method: words(meta.source) }),
    !meta.machine && meta.user_agent,
  ].filter(Boolean);
}

// The API tells that it was a machine; what gives it away is in the event and those around it.
function machine(event, events) {
  const agent = event.meta.user_agent ?? "";
  const at = Date.parse(event.at);
  const delivered = events.findLast(({ kind, at: then }) => kind === "delivered" && then <= event.at);
  const links = new Set(events.filter((one) => one.kind === "click" && Math.abs(Date.parse(one.at) - at) <= 1000).map(({ meta }) => meta.url));
  const why = [];
  if (!agent || /^Mozilla\/5\.0$/.test(agent)) why.push(t("it names no browser"));
  else if (!/^Mozilla\/5\.0 \(/.test(agent) || /bot|proxy|scan|preview|check/i.test(agent)) why.push(t("it calls itself {agent}", { agent }));
  if (event.kind === "click" && delivered && at - Date.parse(delivered.at) <= 2000) why.push(t("it came within 2 seconds of delivery"));
  if (links.size >= 3) why.push(t("it followed {number} links in a second", { number: links.size }));
  return t("Not counted as a person: {why}.", { why: why.join(t(" and ")) || t("it behaves like the scanners that look through mail before people do") });
}

// ---- attempts ----

const SIDES = { ">": ["ours", "→", "we"], "<": ["theirs", "←", "they"], "*": ["note", "·", ""] };

function Attempt({ attempt, gap }) {
  const { attempt: number, mx, remote_addr: address, tls, transcript, outcome, provider } = attempt;
  return html`<li class="attempt"><span class="dot busy" aria-hidden="true">◐</span>
    <div class="line"><strong>${t("Attempt {number}", { number })}</strong> ${mx && html`<code>${mx}</code>`} <${Badge} status=${outcome} /> ${gap}</div>
    <p class="muted">${[
      address && t("address {address}", { address }),
      provider && t("by {provider}", { provider }),
      tls ? t("encrypted: {tls}", { tls }) : t("not encrypted"),
    ].filter(Boolean).join(" · ")}</p>
    ${transcript.length > 0 && html`<details><summary>${t("What was said ({lines} lines)", { lines: transcript.length })}</summary>
      <ol class="dialog-lines" tabindex="0" aria-label=${t("Dialog of attempt {number} at {time}", { number, time: absolute(attempt.at) })}>${transcript.map((line) => html`<${Said} line=${line} />`)}</ol></details>`}
  </li>`;
}

function Said({ line }) {
  const [side, sign, who] = SIDES[line[0]] ?? SIDES["*"];
  const isRefusal = side === "theirs" && /^[45]/.test(line.slice(2));
  return html`<li class="${side} ${isRefusal ? "refusal" : ""}"><span aria-hidden="true">${sign}</span><span class="at">${t(who)}</span><span>${SIDES[line[0]] ? line.slice(2) : line}</span></li>`;
}
