// The way of a contact through an automation, as a timeline: of a run, or of a simulation.
import { duration, html, Listed, SIGNS, t, Time, useMemo } from "./ui.js";
import { href } from "./route.js";
import { filterText, stepText, toneOf } from "./automation.js";

/**
 * `steps` in their order; `nodes` are those of the automation as it is now; `messages` makes links of sent messages.
 */
export function Path({ steps, nodes, names, messages }) {
  const byId = useMemo(() => new Map((nodes ?? []).map((node) => [node.id, node])), [nodes]);
  return html`<${Listed.Provider} value=${true}><ol class="timeline">${steps.map((step, at) => html`<${Step} key=${at} step=${step} node=${byId.get(step.node_id)} names=${names} messages=${messages} before=${steps[at - 1]} />`)}</ol></${Listed.Provider}>`;
}

function Step({ step, node, names, messages, before }) {
  const tone = toneOf(step.outcome);
  const { title, text } = stepText(step, node, names);
  const apart = before && new Date(step.at) - new Date(before.at);
  return html`<li><span class="dot ${tone}" aria-hidden="true">${SIGNS[tone]}</span>
    ${apart >= 1000 && html`<p class="between">${t("{time} later", { time: duration(apart) })}</p>`}
    <div class="line"><strong dir="auto">${title}</strong>
      <${Time} at=${step.at} />
      ${node?.name && html`<span class="muted" dir="auto">${node.name}</span>`}
      ${step.node_id && !node && html`<span class="muted">${t("a step of another version")} <code>${step.node_id}</code></span>`}</div>
    ${text && !step.detail?.leaves && html`<p>${text}</p>`}
    <${Detail} step=${step} node=${node} names=${names} messages=${messages} /></li>`;
}

// Why a branch was taken: each leaf of the filter with its verdict, the number drawn, the event, the message.
function Detail({ step, node, names, messages }) {
  const { leaves, draw, message_id: message, event_id: event } = step.detail ?? {};
  return html`
    ${leaves && html`<ul class="plain">${leaves.map(({ pointer, held }) => html`<li><span aria-hidden="true">${held ? "✓" : "✗"}</span> ${leafText(node, pointer, names)} <span class="muted">${held ? t("holds") : t("does not hold")}</span></li>`)}</ul>`}
    ${draw !== undefined && html`<p class="muted">${t("Number drawn: {draw}", { draw: Number(draw).toFixed(4) })}</p>`}
    ${event && html`<p class="muted">${t("by the event")} <code>${event}</code></p>`}
    ${message && messages && html`<p><a href=${href(`messages/${message}`)}>${t("The message")}</a></p>`}`;
}

// The leaf itself, as the filter has it now; `/filter/and/0` names it.
function leafText(node, pointer, names) {
  const parts = pointer.split("/").filter(Boolean);
  const leaf = parts.reduce((found, part) => found?.[part], node?.config);
  if (!leaf?.type) return html`<code>${pointer}</code>`;
  return html`<span dir="auto">${filterText(leaf, names)}</span>`;
}
