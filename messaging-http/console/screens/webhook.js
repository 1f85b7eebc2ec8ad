// One webhook: its deliveries, its state, its settings.
import { allowed, call } from "../lib/api.js";
import { Action, announce, Badge, confirm, dialog, Facts, Head, html, Loaded, t, Tabs, useCall, useReducer, useState } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { go, href } from "../lib/route.js";
import { absolute, number, Time } from "../lib/time.js";
import { Deliveries } from "./webhook_deliveries.js";
import { EVENT_NAMES, EventsField, EventTags } from "./webhook_events.js";
import { Receiver } from "./webhook_receiver.js";
import { Secret } from "./webhooks.js";

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
        ? html`<${Deliveries} webhook=${one} query=${query} round=${round} again=${again} />`
        : html`<${Settings} webhook=${one} onChange=${setAnswer} onSecret=${setSecret} />`}`}</${Loaded}>`;
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
    ${allowed("replayWebhook") && html`<button type="button" data-operation="replayWebhook" onClick=${() => ask(ReplayForm, t("Replay"), webhook).then((done) => done && onDeliveries())}>${t("Replay")}…</button>`}
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
      onDone=${({ replayed }) => { announce(replayed ? t("{number} sent once more", { number: number(replayed) }) : t("There was nothing to replay in that span.")); close(true); }}>
      <${Field} name="status" kind="select" required autofocus label=${t("Which")} options=${[["failed", t("those that your receiver never got")], ["all", t("all events, also those it has got")]]} />
      <div class="row-of-fields"><${Field} name="since" kind="datetime" label=${t("From")} required /><${Field} name="until" kind="datetime" label=${t("Until")} help=${t("Empty: now.")} /></div>
    </${Form}>`;
}

// ---- settings ----

function Settings({ webhook, onChange, onSecret }) {
  const facts = html`<${Facts} pairs=${[
    [t("Address"), html`<bdi>${webhook.url}</bdi>`],
    [t("Events"), html`<${EventTags} events=${webhook.events} />`],
    [t("Recipients"), webhook.pii ? t("shown in full") : t("masked, because whoever made it may not see them")],
    [t("Created"), absolute(webhook.created_at)],
    [t("Changed"), absolute(webhook.updated_at)],
    ["ID", html`<code>${webhook.id}</code>`],
  ]} />`;
  if (!allowed("updateWebhook")) return facts;
  return html`${facts}
    <section class="stack" aria-labelledby="change"><h2 id="change">${t("Change")}</h2>
      <${Form} key=${webhook.updated_at} id="updateWebhook" path=${{ id: webhook.id }} initial=${{ url: webhook.url, events: webhook.events }} onDone=${onChange} done=${t("Saved")}>
        <${Field} name="url" type="url" label=${t("Address")} required autocomplete="off" spellcheck=${false} help=${t("What still waits goes to the new address.")} />
        <${EventsField} />
      </${Form}></section>
    <section class="stack" aria-labelledby="rotate"><h2 id="rotate">${t("Secret")}</h2>
      <p class="muted">${t("A new secret takes the place of a lost one, or of one that others may know. For 24 hours requests are signed with both.")}</p>
      <div class="actions"><${Action} id="rotateWebhookSecret" args=${{ path: { id: webhook.id } }} onDone=${(next) => { onSecret(next); scrollTo(0, 0); }}
        before=${() => confirm({ title: t("Make a new secret?"), action: t("Make a new secret"), text: t("Your receiver needs the new one within 24 hours; then the old one signs no more.") })}
        done=${t("The new secret is shown on top.")}>${t("Rotate secret")}</${Action}></div></section>
    <section class="stack" aria-labelledby="example"><h2 class="sr" id="example">${t("Example")}</h2><details><summary>${t("A receiver in a few lines")}</summary><${Receiver} /></details></section>
    <${Removal} webhook=${webhook} />`;
}

function Removal({ webhook }) {
  if (!allowed("deleteWebhook")) return null;
  const remove = async () => {
    // What waits is lost with it, so it is counted first.
    const waiting = await Promise.all(["pending", "held"].map((status) => call("listDeliveries", { path: { id: webhook.id }, query: { status, limit: 200 }, quiet: true })))
      .then((pages) => pages.reduce((sum, page) => sum + page.data.length, 0), () => 0);
    const sure = await confirm({
      title: t("Delete this webhook?"), action: t("Delete"), name: new URL(webhook.url).host,
      text: `${waiting ? t("{number} that wait are never sent.", { number: waiting >= 200 ? t("200 or more deliveries") : number(waiting) }) : t("Nothing waits for it.")} ${t("The record of its deliveries is lost.")}`,
    });
    if (!sure) return;
    try {
      await call("deleteWebhook", { path: { id: webhook.id } });
      announce(t("Deleted"));
      go("webhooks");
    } catch (error) {
      announce(error.message, { fault: true });
    }
  };
  return html`<section class="stack" aria-labelledby="removal"><h2 id="removal">${t("Delete webhook")}</h2>
    <div class="actions"><button type="button" class="danger" data-operation="deleteWebhook" onClick=${remove}>${t("Delete")}</button></div></section>`;
}
