// The headers of a mail, and whether those who vouch for it have the domain that the reader sees.
import { allowed } from "../lib/api.js";
import { Table } from "../lib/table.js";
import { Badge, html, t, useCall } from "../lib/ui.js";
import { href } from "../lib/route.js";
import { decodeWords, headersOf } from "../lib/mime.js";

export function Headers({ content, attempts, source }) {
  const full = source ? headersOf(/^[\s\S]*?(?=\r?\n\r?\n|$)/.exec(source)[0]) : content.headers;
  return html`
    <${Alignment} headers=${full} attempts=${attempts} />
    <h3>${source ? t("As they went out") : t("As they were written")}</h3>
    <${Table} className="headers" caption=${t("Headers")} rows=${full} columns=${[
      { label: t("Name"), cell: ([name]) => name },
      { label: t("Value"), cell: ([, text]) => html`<span class="wrapped" dir="auto">${decodeWords(String(text))}</span>` },
    ]} />`;
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
  return html`<h3>${t("Domain alignment")}</h3>
    <p class="muted">${t("Receivers trust a mail more when it is signed and returned in the domain that its reader sees in From.")}</p>
    <${Table} caption=${t("Domain alignment")} rows=${rows} columns=${[
      { label: t("Who"), cell: ([who]) => who },
      { label: t("Domain"), cell: ([, domain]) => (domain ? html`<code>${domain}</code>` : html`<span class="muted">${t("not known: it did not leave over SMTP")}</span>`) },
      { label: t("Aligned"), cell: ([, , told]) => told && html`<${Badge} status=${told[0]}>${told[1]}</${Badge}>` },
    ]} />
    ${covering && html`<p><a href=${href(`domains/${covering.id}`)}>${t("Records of {domain}", { domain: covering.domain })}</a></p>`}`;
}
