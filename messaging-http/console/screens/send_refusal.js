// Why the server refused to send, where that is about the settings and not about the form: what helps stands beside it.
import { allowed } from "../lib/api.js";
import { Action, Badge, Code, html, Loaded, t, useCall, useState } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { channelName } from "../lib/channels.js";

export function Refusal({ failure, values, domains }) {
  const notice = (children) => html`<section class="notice warning" aria-label=${t("What helps")}>${children}</section>`;
  switch (failure.code) {
    case "sender_domain_not_verified":
    case "sender_missing":
      return notice(html`<${Domain} values=${values} domains=${domains} code=${failure.code} />`);
    case "channel_not_configured":
      return notice(html`<p>${t("Nothing carries {channel} yet: set up a provider, or the sandbox to try it out.", { channel: channelName(values.channel) })} <a href=${href("channels")}>${t("Open Channels")}</a></p>`);
    case "contact_address_missing":
      return notice(html`<p>${t("The contact has no address on this channel. Enter it in To, or at the contact.")} ${values.contact_id && html`<a href=${href(`contacts/${values.contact_id}`)}>${t("Open the contact")}</a>`}</p>`);
    default:
      return null;
  }
}

// The domain that would cover the sender, the longest first, with the records that it lacks.
function Domain({ values, domains, code }) {
  const wanted = values.from_email?.split("@").at(-1)?.toLowerCase();
  const [domain] = (domains ?? []).filter((one) => wanted === one.domain || wanted?.endsWith(`.${one.domain}`))
    .sort((one, other) => other.domain.length - one.domain.length);
  const verified = (domains ?? []).filter(({ status }) => status === "verified");
  const use = verified.length > 0 && html`<p>${t("Verified are: {domains}.", { domains: verified.map((one) => one.domain).join(", ") })}</p>`;
  if (code === "sender_missing") {
    return html`<p>${t("Say in From who sends it.")}</p>${use || html`<p><a href=${href("domains", { new: 1 })}>${t("Add a domain")}</a></p>`}`;
  }
  if (!domain) {
    return html`<p>${wanted ? t("{domain} is not a domain of this workspace.", { domain: wanted }) : t("The sender is of no domain of this workspace.")}
      ${allowed("createSendingDomain") && html` <a href=${href("domains", { new: 1, domain: wanted })}>${t("Add a domain")}</a>`}</p>${use}`;
  }
  return html`<p>${t("{domain} is not verified yet. Publish these records, then verify it.", { domain: domain.domain })} <a href=${href(`domains/${domain.id}`)}>${t("Open the domain")}</a></p>
    ${allowed("listSendingDomainRecords") && html`<${Records} domain=${domain} />`}${use}`;
}

function Records({ domain }) {
  const found = useCall("listSendingDomainRecords", { path: { id: domain.id } }, { quiet: true });
  const [status, setStatus] = useState(domain.status);
  return html`<${Loaded} of=${found} skeleton=${2}>${({ data }) => html`
    <ul class="plain records">${data.filter((one) => one.required && one.status !== "verified").map((one) => html`<li>
      <p><${Badge} status=${one.status} /> ${one.type} <code class="wrapped">${one.host}</code></p><${Code} text=${one.value} label=${t("Value of {host}", { host: one.host })} /></li>`)}</ul>
    <${Action} id="verifySendingDomain" args=${{ path: { id: domain.id } }} done=${t("The records were looked up")}
      onDone=${(answer) => { setStatus(answer.status); found.reload(); }}>${t("Verify")}</${Action}>
    ${status === "verified" && html`<p>${t("The domain is verified: send again.")}</p>`}`}</${Loaded}>`;
}
