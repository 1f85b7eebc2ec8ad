// What a campaign sends to whom, by which rules.
import { allowed } from "../lib/api.js";
import { Facts, html, number, t, Time, useCall } from "../lib/ui.js";
import { href } from "../lib/route.js";

export default function CampaignFacts({ campaign }) {
  const { template_id: template, audience, settings, kind } = campaign;
  const found = useCall(allowed("getTemplate") && "getTemplate", { path: { id: template } }, { quiet: true });
  const lists = useCall(allowed("listLists") && "listLists", { query: { limit: 200 } }, { quiet: true });
  const segments = useCall(allowed("listSegments") && "listSegments", { query: { limit: 200 } }, { quiet: true });
  const named = (ids, from) => ids.map((id) => from.data?.data.find((one) => one.id === id)?.name ?? id);
  const texts = (names) => (names.length ? html`<span>${names.map((name) => html`<span class="tag" dir="auto" key=${name}>${name}</span>`)}</span>` : null);
  const { quiet_hours: quiet, frequency_cap: cap, rate_limit: rate, utm } = settings;
  const caps = cap && [cap.per_day && t("{number} a day", { number: number(cap.per_day) }), cap.per_week && t("{number} a week", { number: number(cap.per_week) })].filter(Boolean).join(", ");
  return html`<section class="card" aria-labelledby="facts"><h2 id="facts">${t("Settings")}</h2>
    <${Facts} pairs=${[
      [t("Template"), html`<a href=${href(`templates/${template}`)} dir="auto">${found.data?.name ?? template}</a>`],
      [t("Subject"), kind === "ab_test" ? null : campaign.subject_override ?? found.data?.subject],
      [t("Sender"), campaign.from_email ?? found.data?.from_email],
      [t("Audience"), texts([...named(audience.list_ids, lists), ...named(audience.segment_ids, segments)])],
      [t("Left out"), texts(named(audience.exclude_list_ids, lists))],
      [t("Quiet hours"), quiet && t("{start} to {end}, by each recipient's clock", quiet)],
      [t("At most"), caps || null],
      [t("Messages a minute"), rate && t("at most {number}", { number: number(rate) })],
      [t("Link tags"), utm && Object.values(utm).filter(Boolean).join(" / ")],
      [t("Note"), campaign.warnings.length ? campaign.warnings.map(({ message }) => message).join(" ") : null],
      [t("Archive"), campaign.archive_url && html`<a href=${campaign.archive_url} target="_blank" rel="noopener">${t("As everybody may read it")}</a>`],
      [t("Started"), campaign.started_at && html`<${Time} at=${campaign.started_at} />`],
      [t("Finished"), campaign.completed_at && html`<${Time} at=${campaign.completed_at} />`],
    ]} /></section>`;
}
