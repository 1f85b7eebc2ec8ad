// Webhooks: the addresses that are told of events, and a new one. The page of one is `webhook.js`.
import { allowed } from "../lib/api.js";
import { Badge, Empty, Head, html, t, Time, useReducer, useState } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { Later } from "../lib/later.js";
import { List } from "../lib/table.js";
import { go, href } from "../lib/route.js";
import { EventsField, EventTags } from "./webhook_events.js";
import { Receiver } from "./webhook_receiver.js";
import { Secret } from "./webhook_secret.js";

export default function Webhooks({ segments, query }) {
  const [made, setMade] = useState(null);
  const [round, again] = useReducer((n) => n + 1, 0);
  if (segments[0]) return html`<${Later} load=${() => import("./webhook.js")} id=${segments[0]} query=${query} />`;
  const mayAdd = allowed("createWebhook");
  const adding = mayAdd && query.new && !made;
  const created = (webhook) => {
    setMade(webhook);
    again();
    go("webhooks");
  };
  return html`
    <${Head} title=${t("Webhooks")} text=${t("Addresses of yours that are told what becomes of messages, within seconds.")}>
      ${mayAdd && !adding && html`<a class="button primary" href=${href("webhooks", { new: 1 })} onClick=${() => setMade(null)}>${t("New webhook")}</a>`}
    </${Head}>
    ${made && html`<${Secret} webhook=${made} onClose=${() => setMade(null)} />`}
    ${adding && html`<${NewWebhook} onDone=${created} />`}
    <${List} id="listWebhooks" caption=${t("Webhooks")} reloads=${round} rowHref=${(webhook) => href(`webhooks/${webhook.id}`)}
      columns=${[
        { label: t("Address"), cell: (webhook) => html`<bdi>${webhook.url}</bdi>` },
        { label: t("Events"), wide: true, cell: (webhook) => html`<${EventTags} events=${webhook.events} />` },
        { label: t("Status"), cell: (webhook) => html`<${Badge} status=${webhook.status} />` },
        { label: t("Created"), cell: (webhook) => html`<${Time} at=${webhook.created_at} />` },
      ]}
      empty=${!adding && html`<${Empty} title=${t("No webhook yet")}
          text=${t("A webhook tells your program of deliveries, bounces, complaints, clicks. All you need is a receiver such as this one.")}
          action=${mayAdd && t("New webhook")} href=${href("webhooks", { new: 1 })}
          example=${"messaging webhook create --url https://example.com/hook --events bounce,complaint"} />
        <${Receiver} />`} />`;
}

function NewWebhook({ onDone }) {
  return html`<section class="card" aria-labelledby="new-webhook"><h2 id="new-webhook">${t("New webhook")}</h2>
    <${Form} id="createWebhook" initial=${{ events: ["*"] }} submit=${t("Create webhook")} done=${t("Created. Keep its secret now.")} onDone=${onDone}
      body=${({ url = "", events, is_paused: isPaused }) => ({ url, events, ...(isPaused ? { status: "paused" } : {}) })}
      extra=${html`<a class="button" href=${href("webhooks")}>${t("Cancel")}</a>`}>
      <${Field} name="url" type="url" label=${t("Address")} placeholder="https://example.com/hooks/messaging" autocomplete="off" spellcheck=${false} autofocus
        help=${t("An https address that answers POST with 2xx within 15 seconds.")} />
      <${EventsField} />
      <${Field} name="is_paused" kind="checkbox" label=${t("Begin paused")} help=${t("Events are kept for 7 days, until you resume.")} />
    </${Form}></section>`;
}
