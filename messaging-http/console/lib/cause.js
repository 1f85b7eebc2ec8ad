// A suppression and the message that caused it, looked for when somebody asks.
import { html, t, useEffect, useState } from "./ui.js";
import { causeOf, hasCause, Written } from "./contacts.js";
import { href } from "./route.js";

const SOURCES = { api: "By hand or by a program", system: "What became of a message", recipient: "The recipient" };

/** The message that put an address on the list; with `now` it is looked for at once, else on a click. */
export function Cause({ suppression, now }) {
  const [state, setState] = useState({});
  const look = async () => {
    setState({ busy: true });
    try {
      setState({ message: await causeOf(suppression) });
    } catch (error) {
      setState({ error });
    }
  };
  const known = hasCause(suppression);
  useEffect(() => { if (now && known) look(); }, [suppression.id]);
  if (!known) {
    return html`<span class="muted">${t(SOURCES[suppression.source] ?? "–")}</span>`;
  }
  const { message, error, busy } = state;
  if (error) return html`<span>${error.message} <button type="button" class="link" onClick=${look}>${t("Try again")}</button></span>`;
  if (message === null) return html`<span class="muted">${t("The message is no longer kept.")}</span>`;
  if (message) return html`<a class="row-link" href=${href(`messages/${message.message_id}`)}><${Written}>${message.subject || t("The message")}</${Written}></a>`;
  return html`<button type="button" class="link" disabled=${busy} onClick=${look}>${busy ? t("One moment") : t("Find the message")}<span class="sr"> ${suppression.address}</span></button>`;
}

/** Asks before an address may be written to again; says what that means for the reason. */
export function liftText({ reason, address }) {
  const meanings = {
    bounce: t("Messages to {address} bounced. If the address still does not exist, the next message bounces again, which harms your reputation, and the address comes back onto the list."),
    invalid: t("{address} was marked as not working. If it still does not work, the next message bounces, which harms your reputation."),
    complaint: t("The owner of {address} reported a message as spam. Send again only if they asked you to: another complaint harms all your mail."),
    unsubscribe: t("The owner of {address} unsubscribed. Marketing may reach them again only if they agreed to it since; their consent is not changed by this."),
    manual: t("Messages to {address} are sent again from now on."),
  };
  return (meanings[reason] ?? meanings.manual).replace("{address}", address);
}
