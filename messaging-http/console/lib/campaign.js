// What the screens of campaigns share: how their state is called, how fast they send, and the buttons that stop them.
import { Action, Badge, confirm, html, number, t, useRef } from "./ui.js";

const PHASES = { testing: "sending the test", waiting_winner: "waiting for a winner", winner: "sending the winner" };

const SPAN_MS = 60000;
const SHORTEST_MS = 4000;

/** The state of a campaign as a badge. */
export function State({ campaign: { status, phase } }) {
  return html`<${Badge} status=${status}>${t((status === "sending" && PHASES[phase]) || status)}</${Badge}>`;
}

/** How many of the recipients have been handed to sending, and of how many; null before that is known. */
export function done({ recipients, waiting }) {
  return recipients === null ? null : { of: recipients, value: Math.max(0, recipients - waiting) };
}

/**
 * Messages a minute, as seen from here: `pace(campaign)` is called with every state that comes and answers a number, or
 * null as long as too little was seen.
 */
export function usePace() {
  const seen = useRef(new Map());
  return ({ id, status, phase, waiting }) => {
    if (status !== "sending" || phase === "waiting_winner") {
      seen.current.delete(id);
      return null;
    }
    const now = Date.now();
    const states = (seen.current.get(id) ?? []).filter((one) => now - one.at < SPAN_MS);
    if (states.at(-1)?.waiting !== waiting || !states.length) states.push({ at: now, waiting });
    seen.current.set(id, states);
    const passed = now - states[0].at;
    return passed < SHORTEST_MS ? null : Math.round(((states[0].waiting - waiting) * 60000) / passed);
  };
}

/** The pace in words. */
export function paceWords(pace) {
  if (pace === null) return "";
  return pace > 0 ? t("{number} a minute", { number: number(pace) }) : t("nothing at the moment");
}

/** Pause, or resume, in one click; among other campaigns the button tells which one. */
export function PauseOrResume({ campaign, onDone, className, isNamed }) {
  const { id, name, status } = campaign;
  const whose = isNamed && html`<span class="sr"> ${name}</span>`;
  if (status === "sending" || status === "scheduled") {
    return html`<${Action} id="pauseCampaign" className=${className} args=${{ path: { id } }} onDone=${onDone}
      done=${t("{name} is paused", { name })}>${t("Pause")}${whose}</${Action}>`;
  }
  if (status !== "paused") return null;
  return html`<${Action} id="scheduleCampaign" className=${className} args=${{ path: { id }, body: {} }} onDone=${onDone}
    done=${t("{name} goes on", { name })}>${t("Resume")}${whose}</${Action}>`;
}

/** Cancel, after the effect was told. */
export function CancelCampaign({ campaign, onDone }) {
  const { id, name, status, waiting, recipients } = campaign;
  const text = recipients === null
    ? t("Nobody has been sent to, and nobody will be. A cancelled campaign cannot be started again.")
    : t("{waiting} of {recipients} recipients have not been sent to, and never will be. What was sent stays sent. A cancelled campaign cannot be started again.", { waiting: number(waiting), recipients: number(recipients) });
  const before = () => confirm({ title: t("Cancel {name}?", { name }), text, action: t("Cancel the campaign"), name: recipients === null ? undefined : name });
  if (!["scheduled", "sending", "paused"].includes(status)) return null;
  return html`<${Action} id="cancelCampaign" args=${{ path: { id } }} before=${before} onDone=${onDone}
    done=${t("{name} is cancelled", { name })}>${t("Cancel campaign")}</${Action}>`;
}
