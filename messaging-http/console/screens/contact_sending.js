// "Would it be sent?": what stands between this contact and a message, by the rules that sending uses.
import { allowed } from "../lib/api.js";
import { CHANNELS } from "../lib/contacts.js";
import { changeQuery, href } from "../lib/route.js";
import { Badge, html, Loaded, t, Time, useCall } from "../lib/ui.js";

// Where a reason is cured.
const cureAt = (code, contact, campaign) => ({
  no_consent: ["Change the consent", href(`contacts/${contact.id}`, { edit: 1 })],
  no_address: ["Add an address", href(`contacts/${contact.id}`, { edit: 1 })],
  channel_not_configured: ["Set up the channel", href("channels")],
  sender_domain_not_verified: ["See the domains", href("domains")],
  excluded: ["See the campaign", campaign && href(`campaigns/${campaign}`)],
  not_in_audience: ["See the campaign", campaign && href(`campaigns/${campaign}`)],
  duplicate: ["See the campaign", campaign && href(`campaigns/${campaign}`)],
  held: ["See the system", href("system")],
}[code] ?? []);

export function Sending({ contact, query }) {
  const channel = query.channel ?? "email";
  const campaign = query.campaign_id;
  const campaigns = useCall(allowed("listCampaigns") && "listCampaigns", { query: { limit: 200 } }, { quiet: true });
  const found = useCall(allowed("explainContact") && "explainContact", {
    path: { id: contact.id },
    query: campaign ? { campaign_id: campaign, channel: query.channel } : { channel },
  });
  return html`<section class="card" aria-labelledby="sending"><h2 id="sending">${t("Would it be sent?")}</h2>
    <p class="help">${t("What would happen to a message to this contact right now.")}</p>
    <div class="filters">
      <label><span>${t("Channel")}</span><select value=${campaign && !query.channel ? "" : channel} onChange=${(event) => changeQuery({ channel: event.target.value, campaign_id: null })}>
        ${campaign && !query.channel && html`<option value="" selected>${t("Of the campaign")}</option>`}
        ${CHANNELS.map(([value, text]) => html`<option value=${value} selected=${!campaign && value === channel}>${t(text)}</option>`)}</select></label>
      <label><span>${t("Campaign")}</span><select value=${campaign ?? ""} onChange=${(event) => changeQuery({ campaign_id: event.target.value, channel: event.target.value ? null : query.channel })}>
        <option value="">${t("Any campaign")}</option>
        ${(campaigns.data?.data ?? []).map(({ id, name }) => html`<option value=${id} selected=${id === campaign}>${name}</option>`)}</select></label>
    </div>
    <${Loaded} of=${found} skeleton=${3}>${(answer) => {
      const marketing = campaign ? t("This campaign") : t("Marketing");
      // The same for both kinds is said once.
      const isSame = JSON.stringify(answer.reasons) === JSON.stringify(answer.transactional.reasons);
      return html`
        <${Verdict} title=${isSame ? t("{kind} and transactional", { kind: marketing }) : marketing} of=${answer} contact=${contact} campaign=${campaign} />
        ${!isSame && html`<${Verdict} title=${t("Transactional")} of=${answer.transactional} contact=${contact} campaign=${campaign} />`}`;
    }}</${Loaded}>
  </section>`;
}

const sentence = (text) => (text ? text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".") : "");

function Verdict({ title, of: { would_send: isSent, reasons }, contact, campaign }) {
  return html`<div><h3>${title} <${Badge} status=${isSent ? "ok" : "failed"}>${isSent ? t("Would be sent") : t("Would not be sent")}</${Badge}></h3>
    ${reasons.length > 0 && html`<ul>${reasons.map(({ code, text, since, cure }) => {
      const [label, link] = cureAt(code, contact, campaign);
      return html`<li key=${code}>${sentence(text && t(text))} ${since && html`<span class="muted">${t("Since")} <${Time} at=${since} />.</span>`} ${sentence(cure && t(cure))}
        ${link && html` <a href=${link}>${t(label)}</a>`}</li>`;
    })}</ul>`}</div>`;
}
