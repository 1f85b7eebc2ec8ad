// All campaigns that have started, with their figures; what people did and what machines did apart.
import { allowed } from "../lib/api.js";
import { Badge, Empty, html, number, percent, t, Time } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { List } from "../lib/table.js";

export default function AnalyticsCampaigns() {
  const share = (part, rate) => (row) => html`<span class="nowrap">${number(row[part])} <span class="muted">${row.delivered > 0 ? percent(row[rate]) : ""}</span></span>`;
  return html`
    <p class="muted">${t("Every campaign that has started, whenever that was. Opened and clicked are people; opens by machines, such as scanners and programs that load pictures beforehand, stand beside them.")}</p>
    <${List} id="listAnalyticsCampaigns" caption=${t("Campaigns")} rowKey=${(row) => row.campaign_id} rowHref=${(row) => href(`campaigns/${row.campaign_id}`)} columns=${[
      { label: t("Campaign"), cell: (row) => html`<span dir="auto">${row.name}</span>` },
      { label: t("Started"), cell: (row) => html`<span><${Badge} status=${row.status} /> <${Time} at=${row.started_at} /></span>` },
      { label: t("Sent"), numeric: true, cell: (row) => number(row.sent) },
      { label: t("Delivered"), numeric: true, cell: (row) => number(row.delivered) },
      { label: t("Opened"), numeric: true, cell: share("unique_opens", "open_rate") },
      { label: t("By machines"), numeric: true, cell: (row) => number(row.machine_opens) },
      { label: t("Clicked"), numeric: true, cell: share("unique_clicks", "click_rate") },
      { label: t("Bounced"), numeric: true, cell: (row) => number(row.bounces) },
      { label: t("Unsubscribed"), numeric: true, cell: (row) => number(row.unsubscribes) },
    ]}
    empty=${html`<${Empty} title=${t("No campaign has started yet")} text=${t("Once one is sent, its figures stand here.")}
      action=${allowed("createCampaign") && t("New campaign")} href=${href("campaigns", { new: 1 })} />`} />`;
}
