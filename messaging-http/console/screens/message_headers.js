// The headers of a mail, and whether those who vouch for it have the domain that the reader sees.
import { allowed } from "../lib/api.js";
import { Badge, html, t, useCall } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { decodeWords, headersOf } from "../lib/mime.js";

export function Headers({ content, attempts, source }) {
  const full = source ? headersOf(/^[\s\S]*?(?=\r?\n\r?\n|$)/.exec(source)[0]) : content.headers;
  return html`
    <${Alignment} headers=${full} attempts=${attempts} />
    <h3>${source ? t("As they went out") : t("As they were written")}</h3>
    <table class="rows headers"><caption class="sr">${t("Headers")}</caption>
      <thead><tr><th scope="col">${t("Name")}</th><th scope="col">${t("Value")}</th></tr></thead>
      <tbody>${full.map(([name, value]) => html`<tr><th scope="row" data-label=${t("Name")}>${name}</th>
        <td data-label=${t("Value")}><span class="wrapped" dir="auto">${decodeWords(String(value))}</span></td></tr>`)}</tbody></table>`;
}

const value = (headers, name) => headers.find(([known]) => known.toLowerCase() === name)?.[1];
const domainOf = (address) => /@([^\s>]+)>?\s*$/.exec(address ?? "")?.[1]?.toLowerCase();
const isWithin = (one, other) => one === other || one.endsWith(`.${other}`);

// Receivers want the signature or the return path to have the domain of From, or one above or below it.
function Alignment({ headers, attempts }) {
  const from = domainOf(value(headers, "from"));
  const signed = headers.filter(([name]) => name.toLowerCase() === "dkim-signature").map(([, text]) => /\bd=([^;\s]+)/.exec(text)?.[1]?.toLowerCase()).filter(Boolean);
  const said = attempts?.flatMap(({ transcript }) => transcript).find((line) => /^> MAIL FROM:</i.test(line));
  const path = domainOf(/<([^>]*)>/.exec(said ?? "")?.[1]);
  const domains = useCall(!signed.length && allowed("listSendingDomains") && "listSendingDomains", { query: { limit: 200 } }, { quiet: true });
  const [covering] = (domains.data?.data ?? []).filter(({ domain }) => from && isWithin(from, domain)).sort((one, other) => other.domain.length - one.domain.length);
  if (!from) return null;
  const aligned = (domain) => {
    if (domain === from) return ["ok", t("the domain of From")];
    return isWithin(domain, from) || isWithin(from, domain) ? ["ok", t("belongs to the domain of From")] : ["fault", t("another domain than From")];
  };
  const rows = [
    [t("From"), from, null],
    ...(signed.length
      ? [...new Set(signed)].map((domain) => [t("Signature (DKIM)"), domain, aligned(domain)])
      : [[t("Signature (DKIM)"), covering?.domain ?? null, covering && aligned(covering.domain)]]),
    [t("Return path (SPF)"), path ?? null, path && aligned(path)],
  ];
  return html`<h3>${t("Alignment")}</h3>
    <p class="muted">${t("Receivers trust a mail more when it is signed and returned in the domain that its reader sees in From.")}</p>
    <table class="rows"><caption class="sr">${t("Alignment")}</caption>
      <thead><tr><th scope="col">${t("Who")}</th><th scope="col">${t("Domain")}</th><th scope="col">${t("Aligned")}</th></tr></thead>
      <tbody>${rows.map(([who, domain, told]) => html`<tr><th scope="row" data-label=${t("Who")}>${who}</th>
        <td data-label=${t("Domain")}>${domain ? html`<code>${domain}</code>` : html`<span class="muted">${t("not known: it did not leave over SMTP")}</span>`}</td>
        <td data-label=${t("Aligned")}>${told ? html`<${Badge} status=${told[0]}>${told[1]}</${Badge}>` : html`<span class="muted">–</span>`}</td></tr>`)}</tbody></table>
    ${covering && html`<p><a href=${href(`domains/${covering.id}`)}>${t("Records of {domain}", { domain: covering.domain })}</a></p>`}`;
}
