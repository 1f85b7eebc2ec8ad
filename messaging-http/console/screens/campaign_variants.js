// The variants of a campaign beside each other: rates, how probable it is that each is the best, and the choice of one.
import { Action, Badge, confirm, html, number, percent, t } from "../lib/ui.js";
import { Table } from "../lib/table.js";

const VERDICTS = { clear: ["good", "Clear"], likely: ["busy", "Likely"], open: ["wait", "Open"] };
const TONES = { good: "ok", busy: "running", wait: "waiting" };

export default function CampaignVariants({ campaign, figures, onDone }) {
  const { variants, winner_variant: winner, phase, settings } = campaign;
  const byClicks = settings.ab_test?.winner_metric === "click_rate";
  const subject = (name) => variants.find((one) => one.name === name)?.subject;
  const best = figures.variants.reduce((first, one) => (one.probability_best > first.probability_best ? one : first), figures.variants[0]);
  return html`<section class="stack" aria-labelledby="variants"><h2 id="variants">${t("Variants")}</h2>
    <${Table} caption=${t("Variants")} rows=${figures.variants} rowKey=${(row) => row.name} columns=${[
      { label: t("Variant"), cell: (row) => html`<span><strong dir="auto">${row.name}</strong> ${row.name === winner && html`<${Badge} status="ok">${t("winner")}</${Badge}>`}
        ${subject(row.name) && html`<br /><span class="muted" dir="auto">${subject(row.name)}</span>`}</span>` },
      { label: t("Sent"), numeric: true, cell: (row) => number(row.sent) },
      { label: t("Delivered"), numeric: true, cell: (row) => number(row.delivered) },
      { label: t("Opened"), numeric: true, cell: (row) => share(row.unique_opens, row.open_rate) },
      { label: t("Clicked"), numeric: true, cell: (row) => share(row.unique_clicks, row.click_rate) },
      { label: byClicks ? t("True click rate") : t("True open rate"), numeric: true, cell: (row) => html`<span class="nowrap">${t("{low} to {high}", { low: percent(row.interval[0]), high: percent(row.interval[1]) })}</span>` },
      { label: t("Probably best"), numeric: true, cell: (row) => html`<span>${percent(row.probability_best)} ${row === best && html`<${Verdict} of=${row.verdict} />`}</span>` },
    ]} actions=${phase === "waiting_winner" ? (row) => html`<${Declare} campaign=${campaign} name=${row.name} onDone=${onDone} />` : undefined} />
    <p class="help">${t("The true rate lies in its range with a probability of 95 %. The best one is clear from 95 %, likely from 80 %; below that the difference may be chance.")}</p>
  </section>`;
}

const share = (people, rate) => html`<span class="nowrap">${number(people)} <span class="muted">${percent(rate)}</span></span>`;

function Verdict({ of }) {
  const [tone, word] = VERDICTS[of] ?? VERDICTS.open;
  return html`<${Badge} status=${TONES[tone]}>${t(word)}</${Badge}>`;
}

function Declare({ campaign, name, onDone }) {
  const before = () => confirm({
    title: t("{name} is the winner?", { name }),
    text: t("The {waiting} recipients who have not been sent to get variant {name}. This cannot be taken back.", { waiting: number(campaign.waiting), name }),
    action: t("Send it to the others"),
  });
  return html`<${Action} id="declareWinner" className="small" args=${{ path: { id: campaign.id }, body: { variant: name } }} before=${before} onDone=${onDone}
    done=${t("{name} is the winner", { name })}>${t("Choose {name}", { name })}</${Action}>`;
}
