// A template: its source with a preview beside it, and its versions.
import { allowed } from "../lib/api.js";
import { Action, confirm, dialog, Head, html, Loaded, t, Tabs, useCall, useState } from "../lib/ui.js";
import { go, href } from "../lib/route.js";
import { useHeading } from "../lib/focus.js";
import { channelName } from "../lib/channels.js";
import { Later } from "../lib/later.js";
import TemplateEditor from "./template_editor.js";

export default function Template({ id, query }) {
  const found = useCall("getTemplate", { path: { id } });
  // What a write answered is newer than what was loaded.
  const [answered, setAnswered] = useState(null);
  useHeading(Boolean(found.data));
  const tab = query.tab === "versions" ? "versions" : "edit";
  // Who made it for a step of an automation goes back there.
  const [back, backText] = /^automations\/[\w-]+$/.test(query.for ?? "") ? [href(query.for), t("Automation")] : [href("templates"), t("Templates")];
  return html`${!found.data && html`<${Head} title=${t("Template")} back=${back} backText=${backText} />`}<${Loaded} of=${found}>${(loaded) => {
    const template = answered?.id === id ? answered : loaded;
    return html`
      <${Head} title=${template.name} back=${back} backText=${backText}
        badge=${html`<span class="badge">${channelName(template.channel)}</span> <span class="muted">${t("version {version}", { version: template.version })}</span>`}>
        <${Buttons} template=${template} />
      </${Head}>
      <${Tabs} current=${tab} tabs=${[
        { id: "edit", label: t("Content"), href: href(`templates/${id}`, { for: query.for }) },
        { id: "versions", label: t("Versions"), href: href(`templates/${id}`, { tab: "versions", for: query.for }) },
      ]} />
      ${tab === "edit"
        ? html`<${TemplateEditor} key=${id} template=${template} contactId=${query.contact_id} onSaved=${setAnswered} />`
        : html`<${Later} load=${() => import("./template_versions.js")} template=${template} onReverted=${setAnswered} />`}`;
  }}</${Loaded}>`;
}

function Buttons({ template }) {
  const { id, name, channel } = template;
  const before = () => confirm({
    title: t("Delete {name}?", { name }),
    text: t("Its {versions} versions are lost. Messages that were sent with it stay as they are.", { versions: template.version }),
    action: t("Delete"), name,
  });
  const test = async () => {
    const { TestSend } = await import("./template_test.js");
    dialog((close) => html`<${TestSend} template=${template} close=${close} />`, { title: t("Send a test") });
  };
  return html`
    ${allowed("sendMessage") && html`<button type="button" onClick=${test}>${t("Send a test")}</button>`}
    ${allowed("createCampaign") && html`<a class="button" href=${href("campaigns", { new: 1, channel, template_id: id })}>${t("Use in a campaign")}</a>`}
    <${Action} id="deleteTemplate" args=${{ path: { id } }} before=${before} done=${t("{name} is deleted", { name })}
      onDone=${() => go("templates")}>${t("Delete")}</${Action}>`;
}
