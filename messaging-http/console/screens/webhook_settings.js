// The settings of a webhook: address, events, secret, removal.
import { allowed, call } from "../lib/api.js";
import { absolute, Action, announce, confirm, Facts, html, number, t } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { go } from "../lib/route.js";
import { EventsField, EventTags } from "./webhook_events.js";
import { Receiver } from "./webhook_receiver.js";

export default function Settings({ webhook, onChange, onSecret }) {
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
      .then((pages) => ({ number: pages.reduce((sum, page) => sum + page.data.length, 0), isMore: pages.some((page) => page.next_cursor) }), () => null);
    const sure = await confirm({
      title: t("Delete this webhook?"), action: t("Delete"), name: new URL(webhook.url).host,
      text: `${waiting === null ? t("What waits for it is never sent.") : waiting.number ? t("{number} that wait are never sent.", { number: waiting.isMore ? t("{number} or more deliveries", { number: number(waiting.number) }) : number(waiting.number) }) : t("Nothing waits for it.")} ${t("The record of its deliveries is lost.")}`,
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
