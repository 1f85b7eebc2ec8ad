// One webhook: its state and what may be done with it. Its deliveries and settings are modules of their own.
import { allowed } from "../lib/api.js";
import { Action, announce, Badge, dialog, Head, html, Loaded, number, t, Tabs, useCall, useReducer, useState } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { Later } from "../lib/later.js";
import { href } from "../lib/route.js";
import { EVENT_NAMES } from "./webhook_events.js";
import { Secret } from "./webhook_secret.js";

export default function Webhook({ id, query }) {
  const webhook = useCall("getWebhook", { path: { id } });
  // What a write answered takes the place of what was loaded.
  const [answer, setAnswer] = useState(null);
  const [secret, setSecret] = useState(null);
  const [round, again] = useReducer((n) => n + 1, 0);
  const shown = answer ?? webhook.data;
  const tab = query.tab === "settings" ? "settings" : "deliveries";
  const path = `webhooks/${id}`;
  return html`
    <${Head} title=${shown ? shortOf(shown.url) : t("Webhook")} back=${href("webhooks")} backText=${t("Webhooks")} badge=${shown && html`<${Badge} status=${shown.status} />`}>
      ${shown && html`<${Buttons} webhook=${shown} onChange=${setAnswer} onDeliveries=${again} />`}
    </${Head}>
    ${secret && html`<${Secret} webhook=${secret} isRotated onClose=${() => setSecret(null)} />`}
    <${Loaded} of=${{ ...webhook, data: shown }}>${(one) => html`
      <${Told} webhook=${one} />
      <${Tabs} current=${tab} tabs=${[
        { id: "deliveries", label: t("Deliveries"), href: href(path) },
        { id: "settings", label: t("Settings"), href: href(path, { tab: "settings" }) },
      ]} />
      ${tab === "deliveries"
        ? html`<${Later} key="deliveries" load=${() => import("./webhook_deliveries.js")} webhook=${one} query=${query} round=${round} again=${again} />`
        : html`<${Later} key="settings" load=${() => import("./webhook_settings.js")} webhook=${one} onChange=${setAnswer} onSecret=${setSecret} />`}`}</${Loaded}>`;
}

// Host and path are what tells webhooks apart; the whole address stands in the settings.
function shortOf(url) {
  const { host, pathname } = new URL(url);
  const text = host + (pathname === "/" ? "" : pathname);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

function Told({ webhook }) {
  const texts = {
    paused: t("Paused: events are kept, each for 7 days, and sent oldest first when you resume."),
    disabled: t("Switched off by the server: the address answered 410, or nothing but failures for 5 days. Events of the time since are not recorded. Put the receiver right, then resume."),
  };
  const text = texts[webhook.status];
  return text ? html`<div class="notice ${webhook.status === "disabled" ? "fault" : "warning"}" role="status"><p>${text}</p></div>` : null;
}

function Buttons({ webhook, onChange, onDeliveries }) {
  const args = { path: { id: webhook.id } };
  return html`
    ${allowed("testWebhook") && html`<button type="button" data-operation="testWebhook" onClick=${() => ask(TestForm, t("Send a test"), webhook).then((done) => done && onDeliveries())}>${t("Test")}</button>`}
    ${allowed("replayWebhook") && html`<button type="button" data-operation="replayWebhook" onClick=${() => ask(ReplayForm, t("Replay"), webhook).then((done) => done && onDeliveries())}>${t("Replay")}</button>`}
    ${webhook.status === "active"
      ? html`<${Action} id="pauseWebhook" args=${args} onDone=${onChange} done=${t("Paused")}>${t("Pause")}</${Action}>`
      : html`<${Action} id="resumeWebhook" className="primary" args=${args} onDone=${onChange} done=${t("Resumed")}>${t("Resume")}</${Action}>`}`;
}

function ask(Asked, title, webhook) {
  return dialog((close) => html`<${Asked} webhook=${webhook} close=${close} />`, { title });
}

function TestForm({ webhook, close }) {
  return html`<p class="muted">${t("One request with a made-up event, also while the webhook is paused.")}</p>
    <${Form} id="testWebhook" path=${{ id: webhook.id }} initial=${{ event_type: "test" }} submit=${t("Send")} done=${t("Sent. Its answer appears in the list.")} onDone=${() => close(true)}>
      <${Field} name="event_type" kind="select" required autofocus label=${t("Event")} options=${["test", ...EVENT_NAMES].map((name) => [name, t(name)])} />
    </${Form}>`;
}

function ReplayForm({ webhook, close }) {
  const [yesterday] = useState(() => new Date(Date.now() - 86400000).toISOString());
  return html`<p>${t("Sends events of a span once more. Your receiver gets them with the same webhook-id as before, by which it knows repeats.")}</p>
    <${Form} id="replayWebhook" path=${{ id: webhook.id }} initial=${{ since: yesterday, status: "failed" }} submit=${t("Replay")}
      onDone=${({ replayed }) => { announce(replayed ? t("{number} sent once more", { number: number(replayed) }) : t("There was nothing to replay in that span. What is still being tried goes on by itself.")); close(true); }}>
      <${Field} name="status" kind="select" required autofocus label=${t("Which")} options=${[["failed", t("those that your receiver never got")], ["all", t("all events, also those it has got")]]} />
      <div class="row-of-fields"><${Field} name="since" kind="datetime" label=${t("From")} required /><${Field} name="until" kind="datetime" label=${t("Until")} help=${t("Empty: now.")} /></div>
    </${Form}>`;
}
