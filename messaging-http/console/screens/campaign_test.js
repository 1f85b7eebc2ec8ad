// A test of a campaign: the saved draft, to members and contacts, before everybody gets it.
import { me } from "../lib/api.js";
import { html, t, useState } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { href } from "../lib/route.js";

// To oneself, if that is an address to which something can be sent.
function mine(channel) {
  const { email } = me().user;
  return channel === "email" && /@.+\./.test(email) ? email : "";
}

const listed = (text) => text.split(/[\s,;]+/).filter(Boolean);

export function CampaignTest({ campaign, close }) {
  const [sent, setSent] = useState(null);
  const { channel, variants } = campaign;
  if (sent) {
    const [first] = sent.message_ids;
    return html`<p>${t("The test is on its way.")}</p>
      <div class="actions"><a class="button primary" href=${href(`messages/${first}`)} onClick=${() => close()}>${t("See what becomes of it")}</a>
        <button type="button" onClick=${() => close()}>${t("Close")}</button></div>`;
  }
  return html`
    <p class="muted">${t("What was saved goes out marked as a test. Nothing is tracked, and no figure counts it.")}</p>
    <${Form} id="testCampaign" path=${{ id: campaign.id }} submit=${t("Send")} initial=${{ to: mine(channel), contact_id: "", variant: variants[0]?.name ?? "" }} onDone=${setSent}
      body=${({ to, contact_id: contact, variant }) => ({ to: listed(to), ...(contact && { contact_id: contact }), ...(variant && { variant }) })}>
      <${Field} name="to" label=${t("To")} required help=${t("Addresses of members of the workspace or of contacts, up to 20, with commas between them.")} />
      ${variants.length > 0 && html`<${Field} name="variant" label=${t("Variant")} kind="select" options=${variants.map(({ name }) => [name, name])} />`}
      <${Field} name="contact_id" label=${t("As contact")} help=${t("The id of the contact whose data is used; left empty, the newest of the audience.")} />
    </${Form}>`;
}
