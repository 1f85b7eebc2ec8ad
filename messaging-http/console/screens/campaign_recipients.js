// Everybody whom a campaign matched, with what became of it for each.
import { Badge, html, t, Time, words } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { Filters, List } from "../lib/table.js";

// Outcome, how it is called, and the state whose colour it has.
const OUTCOMES = [
  ["delivered", "Delivered", "delivered"], ["opened", "Opened", "open"], ["clicked", "Clicked", "click"], ["waiting", "Waiting", "waiting"],
  ["bounced", "Bounced", "bounced"], ["complained", "Complained", "complained"], ["unsubscribed", "Unsubscribed", "unsubscribe"],
  ["failed", "Failed", "failed"], ["suppressed", "Suppressed", "suppressed"], ["no_consent", "Not agreed", "skipped"],
  ["no_address", "No address", "skipped"], ["excluded", "Left out", "skipped"],
  ["duplicate", "Same address", "skipped"], ["cancelled", "Cancelled", "cancelled"],
];

export default function CampaignRecipients({ campaign, query }) {
  const { id, variants } = campaign;
  const { outcome, variant } = query;
  return html`
    <${Filters} fields=${[
      { name: "outcome", label: t("Outcome"), options: OUTCOMES.map(([word, label]) => [word, t(label)]) },
      ...(variants.length ? [{ name: "variant", label: t("Variant"), options: variants.map(({ name }) => [name, name]) }] : []),
    ]} />
    <${List} id="listCampaignRecipients" caption=${t("Recipients")} args=${{ path: { id }, query: { outcome, variant } }}
      rowKey=${(row) => row.contact_id ?? row.message_id} rowHref=${linkOf} filters=${["outcome", "variant"]}
      columns=${[
        { label: t("To"), cell: (row) => html`<span class="address" dir="auto">${row.to ?? (row.contact_id ? t("no address") : t("erased"))}</span>` },
        { label: t("Outcome"), cell: (row) => html`<${Outcome} of=${row.outcome} />` },
        { label: t("Why"), wide: true, cell: (row) => html`<${Why} row=${row} />` },
        ...(variants.length ? [{ label: t("Variant"), cell: (row) => row.variant ?? html`<span class="muted">–</span>` }] : []),
        { label: t("When"), cell: (row) => html`<${Time} at=${row.at} />` },
      ]}
      actions=${(row) => row.message_id && row.contact_id && html`<a class="button small" href=${href(`contacts/${row.contact_id}`)}>${t("Contact")}<span class="sr"> ${row.to}</span></a>`}
      empty=${html`<p class="muted">${t("Nobody yet: the recipients are being counted.")}</p>`} />`;
}

// The message tells most; who got none is explained at the contact.
function linkOf({ message_id: message, contact_id: contact }) {
  if (message) return href(`messages/${message}`);
  return contact && href(`contacts/${contact}`);
}

function Outcome({ of }) {
  const [, label, status] = OUTCOMES.find(([word]) => word === of) ?? [of, words(of), of];
  return html`<${Badge} status=${status}>${t(label)}</${Badge}>`;
}

const TEXTS = {
  no_consent: "The contact has not agreed to marketing.",
  no_address: "The contact has no address for this channel.",
  excluded: "A list that is left out names the contact.",
  duplicate: "Another contact has the same address.",
  suppressed: "The address is suppressed; the contact says since when and why.",
};

function Why({ row }) {
  if (row.reason) return words(row.reason);
  return TEXTS[row.outcome] ? t(TEXTS[row.outcome]) : html`<span class="muted">–</span>`;
}
