// Domains: those that mail is sent from, and a new one. The page of one is `domain.js`.
import { allowed } from "../lib/api.js";
import { Badge, Empty, Head, html, t, Time } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { List } from "../lib/table.js";
import { go, href } from "../lib/route.js";
import Domain from "./domain.js";

export default function Domains({ segments, query }) {
  if (segments[0]) return html`<${Domain} id=${segments[0]} />`;
  const mayAdd = allowed("createSendingDomain");
  const adding = mayAdd && query.new;
  return html`
    <${Head} title=${t("Domains")} text=${t("The domains your mail comes from. Each proves by its DNS records that this server may send for it.")}>
      ${mayAdd && !adding && html`<a class="button primary" href=${href("domains", { new: 1 })}>${t("New domain")}</a>`}
    </${Head}>
    ${adding && html`<${NewDomain} />`}
    <${List} id="listSendingDomains" caption=${t("Domains")} rowHref=${(domain) => href(`domains/${domain.id}`)}
      columns=${[
        { label: t("Domain"), cell: (domain) => domain.domain },
        { label: t("Status"), cell: (domain) => html`<${Badge} status=${domain.status} />` },
        { label: t("Records found"), cell: (domain) => found(domain) },
        { label: t("Tracking host"), cell: (domain) => domain.tracking_subdomain ?? html`<span class="muted">${t("none")}</span>` },
        { label: t("Last checked"), cell: (domain) => html`<${Time} at=${domain.last_checked_at} />` },
      ]}
      empty=${!adding && html`<${Empty} title=${t("No domain yet")}
        text=${t("Add the domain you send from. You get the DNS records to publish; once they are found, mail can leave.")}
        action=${mayAdd && t("New domain")} href=${href("domains", { new: 1 })}
        example=${"messaging domain create --domain mail.example.com"} />`} />`;
}

/** The records of a domain, those that are there counted: `4 of 5`. */
function found({ dkim, spf, dmarc, return_path: returnPath, tracking }) {
  const records = [...dkim, spf, dmarc, returnPath, tracking].filter(Boolean);
  const wrong = records.filter(({ status }) => status === "failed").length;
  const there = records.filter(({ status }) => status === "verified").length;
  return html`${t("{there} of {all}", { there, all: records.length })}${wrong > 0 && html`, <span class="fault-text">${t("{wrong} wrong", { wrong })}</span>`}`;
}

function NewDomain() {
  return html`<section class="card" aria-labelledby="new-domain"><h2 id="new-domain">${t("New domain")}</h2>
    <${Form} id="createSendingDomain" submit=${t("Add domain")} done=${t("Added. Publish its records next.")}
      refusal=${({ code }) => code === "already_exists" && { text: t("This domain is here already: see the list below.") }}
      onDone=${(domain) => go(`domains/${domain.id}`)}
      extra=${html`<a class="button" href=${href("domains")}>${t("Cancel")}</a>`}>
      <${Field} name="domain" label=${t("Domain")} autocomplete="off" spellcheck=${false} placeholder="mail.example.com" autofocus
        help=${t("A domain whose DNS you can change. A part of your main domain, such as mail.example.com, keeps the reputation of your newsletters apart from that of your people's mail.")} />
      <${Field} name="tracking_subdomain" label=${t("Tracking host")} autocomplete="off" spellcheck=${false} placeholder="links"
        help=${t("Links that count clicks lead to this host: one word, or a name under the domain. Without one they lead to this server's own address.")} />
    </${Form}></section>`;
}
