// An event of the stream, as a line.
import { Badge, html, t } from "./ui.js";
import { href } from "./route.js";
import { Time } from "./time.js";

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
