// The secret of a webhook, when it was made or replaced.
import { Copy, html, t } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { useFirstFocus, useFocusBack } from "../lib/focus.js";
import { Receiver } from "./webhook_receiver.js";

/** A secret, which is shown this once. */
export function Secret({ webhook, isRotated, onClose }) {
  const part = useFirstFocus("button");
  useFocusBack();
  return html`<section ref=${part} class="notice good" aria-labelledby="secret"><h2 id="secret">${t("The secret of this webhook")}</h2>
    <p><bdi>${webhook.url}</bdi></p>
    <p><code>${webhook.secret}</code> <${Copy} text=${webhook.secret} label=${html`${t("Copy")}<span class="sr"> ${t("secret")}</span>`} /></p>
    <p>${t("Requests are signed with it, so that your receiver knows they come from here. It is shown only now; a lost one is replaced by a new one.")}
      ${isRotated && ` ${t("For 24 hours requests are signed with the old one too.")}`}</p>
    <div class="actions">${!isRotated && html`<a class="button" href=${href(`webhooks/${webhook.id}`)}>${t("To the webhook")}</a>`}
      <button type="button" onClick=${onClose}>${t("I have kept it")}</button></div>
    ${!isRotated && html`<details><summary>${t("A receiver for it")}</summary><${Receiver} /></details>`}
  </section>`;
}
