// Why the server refused to send, where that is about the settings and not about the form: what helps stands beside it.
import { allowed } from "../lib/api.js";
import { Action, Badge, Code, html, Loaded, t, useCall, useState } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { channelName } from "../lib/channels.js";

/** A refusal in the words of this screen: `{ text, help }`, or null where the server's words do. */
export function refusalOf(failure, values, domains) {
  switch (failure.code) {
    case "sender_domain_not_verified":
      return unverified(values, domains);
    case "sender_missing":
      return { text: t("Say in From who sends it."), help: html`<${Usable} domains=${domains} />` };
    case "channel_not_configured":
      return {
        text: t("Nothing carries {channel} yet.", { channel: channelName(values.channel) }),
        help: html`<p>${t("Set up a provider for it, or the sandbox to try it out.")} <a href=${href("channels")}>${t("Open Channels")}</a></p>`,
      };
    case "contact_address_missing":
      return {
        text: t("The contact has no address on this channel."),
        help: html`<p>${t("Enter it in To, or at the contact.")} ${values.contact_id && html`<a href=${href(`contacts/${values.contact_id}`)}>${t("Open the contact")}</a>`}</p>`,
      };
    default:
      return null;
  }
}

// The domain that would cover the sender, the longest first, with the records that it lacks.
function unverified(values, domains) {
  const wanted = values.from_email?.split("@").at(-1)?.toLowerCase();
  const [domain] = (domains ?? []).filter((one) => wanted === one.domain || wanted?.endsWith(`.${one.domain}`))
    .sort((one, other) => other.domain.length - one.domain.length);
  if (!domain) {
    return {
      text: wanted ? t("{domain} is not a domain of this workspace.", { domain: wanted }) : t("The sender is of no domain of this workspace."),
      help: html`<${Usable} domains=${domains} wanted=${wanted} />`,
    };
  }
  return {
    text: t("{domain} is not verified yet.", { domain: domain.domain }),
    help: html`<p>${t("Publish these records at your DNS provider, then verify them.")} <a href=${href(`domains/${domain.id}`)}>${t("Open the domain")}</a></p>
      ${allowed("listSendingDomainRecords") && html`<${Records} domain=${domain} />`}<${Usable} domains=${domains} />`,
  };
}

function Usable({ domains, wanted }) {
  const verified = (domains ?? []).filter(({ status }) => status === "verified").map(({ domain }) => domain);
  return html`
    ${verified.length > 0 && html`<p>${t("Mail can be sent from {domains}.", { domains: verified.join(", ") })}</p>`}
    ${(wanted || !verified.length) && allowed("createSendingDomain") && html`<p><a href=${href("domains", { new: 1, domain: wanted })}>${t("Add a domain")}</a></p>`}`;
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
