// The answer to "where is my message?": one sentence of the server, the words of the other side, and what helps.
import { allowed, seesAddresses } from "../lib/api.js";
import { Action, Code, confirm, html, t, Time, useCall, useState } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { cureOf, maySendAgain } from "../lib/cure.js";
import { nextStep } from "./message_timeline.js";

const TONES = { delivered: "good", sent: "good", deferred: "warning", complained: "warning", bounced: "fault", failed: "fault" };
const TELLING = { deferred: "deferred", bounced: "bounce", failed: "failed", complained: "complaint" };

export function Answer({ message, to, attempts, onDone }) {
  const { explanation, status } = message;
  const [after, setAfter] = useState(null);
  const held = message.hold && message.hold.reason !== "scheduled";
  const tone = held ? "warning" : TONES[status] ?? "";
  return html`<section class="notice answer ${tone}" aria-label=${t("Where it is and why")}>
    <p class="lead">${explanation.text}</p>
    <${Words} message=${message} to=${to} attempts=${attempts} />
    <p class="muted">${t("Last change:")} <${Time} at=${explanation.since} />${explanation.next_attempt_at && html` · ${nextStep(message)} <${Time} at=${explanation.next_attempt_at} />`}</p>
    ${status === "suppressed" && !after && html`<${Cause} message=${message} to=${to} />`}
    ${after
      ? html`<p>${after} ${maySendAgain(message) && html`<a href=${href("send", { like: message.message_id })}>${t("Send again")}</a>`}</p>`
      : html`<${Cure} cure=${cureOf(message, to)} onDone=${(said) => { setAfter(said); onDone(); }} />`}
  </section>`;
}

// The server's sentence quotes nobody; what the other side wrote stands below it, as theirs.
function Words({ message, to, attempts }) {
  const kind = TELLING[message.status];
  const event = message.events.findLast((one) => one.kind === kind && (!one.meta.recipient || !to || one.meta.recipient === to));
  const { response, message: said, mx } = event?.meta ?? {};
  const words = response ?? said;
  if (!words) return null;
  const who = mx ?? attempts?.[0]?.mx ?? (message.channel === "email" ? t("The other side") : t("The provider"));
  return html`<p class="words"><span>${said && !response ? t("In detail:") : t("{who} says:", { who })}</span> <q dir="auto">${words}</q></p>`;
}

// Since when the address is on the list, and after which message.
function Cause({ message, to }) {
  const { meta = {} } = message.events.findLast(({ kind }) => kind === "suppressed") ?? {};
  const { channel } = message;
  // A masked address finds nothing.
  const isListed = message.explanation.code === "suppressed" && seesAddresses();
  const listed = useCall(isListed && to && allowed("listSuppressions") && "listSuppressions", { query: { address: to, channel } }, { quiet: true });
  const status = { bounce: "bounced", complaint: "complained" }[meta.reason];
  const causes = useCall(isListed && status && to && allowed("listMessages") && "listMessages", { query: { to, channel, status, limit: 1 } }, { quiet: true });
  const [entry] = listed.data?.data ?? [];
  const [cause] = causes.data?.data ?? [];
  if (!entry && !cause) return null;
  return html`<p>${entry && html`${t("On the list since")} <${Time} at=${entry.created_at} />${entry.source === "api" ? t(", put there by a person or program") : ""}${entry.detail ? ` (${entry.detail})` : ""}`}${entry && cause && ", "}
    ${cause && html`<a href=${href(`messages/${cause.message_id}`)}>${meta.reason === "bounce" ? t("after this bounce") : t("after this complaint")}</a>`}.</p>`;
}

function Cure({ cure, onDone }) {
  if (!cure) return null;
  const { text, command, button, link, isCure, operation, path, body, title, asks, action, done, after } = cure;
  const mayCall = operation && allowed(operation);
  const before = asks && (() => confirm({ title, text: asks, action, back: t("Leave it") }));
  return html`
    ${text && html`<p>${text}</p>`}
    ${command && html`<${Code} text=${command} label=${t("Command")} />`}
    ${operation && !mayCall && html`<p>${t("{cure}: an editor or admin of the workspace can do that.", { cure: button })}</p>`}
    ${mayCall && html`<${Action} id=${operation} args=${{ path, body }} before=${before} done=${done} className="primary" onDone=${() => onDone(after)}>${button}</${Action}>`}
    ${link && html`<p><a class="button ${isCure ? "primary" : ""}" href=${link}>${button}</a></p>`}`;
}
