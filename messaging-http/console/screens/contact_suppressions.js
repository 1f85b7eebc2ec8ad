// Why addresses of a contact are not written to.
import { seesAddresses } from "../lib/api.js";
import { Cause, liftText } from "../lib/cause.js";
import { addressFor, channelName, reasonName, REASONS } from "../lib/contacts.js";
import { keepFocus } from "../lib/focus.js";
import { Action, confirm, Facts, Fragment, html, Loaded, t, Time, useCall } from "../lib/ui.js";

export function Suppressions({ contact, reload }) {
  return html`<section class="card" aria-labelledby="suppressions"><h2 id="suppressions">${t("Suppressions")}</h2>
    ${contact.suppressed_channels.length
      ? contact.suppressed_channels.map((channel) => html`<${Channel} key=${channel} contact=${contact} channel=${channel} reload=${reload} />`)
      : html`<p>${t("None: no address of this contact is on the suppression list.")}</p>`}</section>`;
}

function Channel({ contact, channel, reload }) {
  const address = addressFor(contact, channel);
  const isKnown = typeof address === "string" && seesAddresses();
  const found = useCall(isKnown && "listSuppressions", { query: { channel, address } });
  if (!isKnown) return html`<p><strong>${channelName(channel)}</strong> <span class="muted">${t("The reason is seen with the right pii:read.")}</span></p>`;
  return html`<${Loaded} of=${found} skeleton=${2}>${(page) => page.data.map((one) => html`<${Fragment} key=${one.id}>
    <h3>${channelName(channel)}</h3>
    <p>${t(REASONS.find(([value]) => value === one.reason)?.[2] ?? "")}</p>
    <${Facts} pairs=${[
      [t("Reason"), reasonName(one.reason)],
      [t("Since"), html`<${Time} at=${one.created_at} />`],
      [t("Detail"), one.detail],
      [t("Cause"), html`<${Cause} suppression=${one} now />`],
    ]} />
    <${Action} id="deleteSuppression" args=${{ path: { id: one.id } }} className="small" done=${t("The address is off the list")} onDone=${() => { reload(); keepFocus(); }}
      before=${() => confirm({ title: t("Take the address off the list?"), text: liftText(one), action: t("Take off the list") })}>${t("Take off the list")}</${Action}>
  </${Fragment}>`)}</${Loaded}>`;
}
