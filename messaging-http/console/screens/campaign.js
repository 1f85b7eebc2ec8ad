// A campaign: a draft to be finished, or what became of it.
import { allowed } from "../lib/api.js";
import { Action, confirm, dialog, Head, html, Loaded, t, useCall, useEffect, useState } from "../lib/ui.js";
import { go, href } from "../lib/route.js";
import { channelName } from "../lib/channels.js";
import { CampaignTest } from "./campaign_test.js";
import { CancelCampaign, PauseOrResume, State } from "../lib/campaign.js";
import { Later } from "../lib/later.js";

const LOOK_MS = 3000;

export default function Campaign({ id, query }) {
  const [every, setEvery] = useState(0);
  const found = useCall("getCampaign", { path: { id } }, { every });
  // What an action answered is newer than what was loaded, until the next look.
  const [answered, setAnswered] = useState(null);
  useEffect(() => {
    setAnswered(null);
    setEvery(["sending", "scheduled"].includes(found.data?.status) ? LOOK_MS : 0);
  }, [found.data]);
  const onDone = (answer) => {
    setAnswered(answer);
    found.reload();
  };
  return html`${!found.data && html`<${Head} title=${t("Campaign")} back=${href("campaigns")} backText=${t("Campaigns")} />`}<${Loaded} of=${found}>${(loaded) => {
    const campaign = answered ?? loaded;
    return html`
      <${Head} title=${campaign.name} back=${href("campaigns")} backText=${t("Campaigns")}
        badge=${html`<${State} campaign=${campaign} /> <span class="muted">${channelName(campaign.channel)}</span>`}>
        <${Buttons} campaign=${campaign} onDone=${onDone} />
      </${Head}>
      ${campaign.status === "draft"
        ? html`<${Later} key="draft" load=${() => import("./campaign_draft.js")} campaign=${campaign} onDone=${onDone} />`
        : html`<${Later} key="running" load=${() => import("./campaign_running.js")} campaign=${campaign} query=${query} onDone=${onDone} />`}`;
  }}</${Loaded}>`;
}

function Buttons({ campaign, onDone }) {
  const { id, name, status, started_at: started } = campaign;
  const path = { id };
  const mayGo = status === "draft" || status === "cancelled";
  const mayChange = !started && ["scheduled", "paused"].includes(status);
  const test = () => dialog((close) => html`<${CampaignTest} campaign=${campaign} close=${close} />`, { title: t("Send a test of {name}", { name }) });
  const before = () => confirm({ title: t("Delete {name}?", { name }), text: t("The campaign and its figures are lost. Its messages stay in Messages."), action: t("Delete"), name: status === "draft" ? undefined : name });
  return html`
    <${PauseOrResume} campaign=${campaign} onDone=${onDone} />
    ${mayChange && html`<${Action} id="unscheduleCampaign" args=${{ path }} onDone=${onDone} done=${t("It is a draft again")}>${t("Back to draft")}</${Action}>`}
    <${CancelCampaign} campaign=${campaign} onDone=${onDone} />
    ${allowed("testCampaign") && html`<button type="button" data-operation="testCampaign" onClick=${test}>${t("Send a test")}</button>`}
    <${Action} id="duplicateCampaign" args=${{ path }} onDone=${({ id: copy }) => go(`campaigns/${copy}`)} done=${t("The copy is a draft")}>${t("Duplicate")}</${Action}>
    ${mayGo && html`<${Action} id="deleteCampaign" args=${{ path }} before=${before} onDone=${() => go("campaigns")} done=${t("{name} is deleted", { name })}>${t("Delete")}</${Action}>`}`;
}
