// Segments: rows, and three examples to begin with. One of them, or a new one, is drawn by segment.js.
import { allowed } from "../lib/api.js";
import { EXAMPLES } from "../lib/filter.js";
import { href } from "../lib/route.js";
import { List } from "../lib/table.js";
import { Badge, Empty, Head, html, Loading, number, t, Time, useEffect, useState } from "../lib/ui.js";
import { Written } from "../lib/contacts.js";

export default function Segments({ segments, query }) {
  const isNew = !segments[0] && query.new && allowed("createSegment");
  return segments[0] || isNew ? html`<${One} id=${segments[0]} query=${query} />` : html`<${All} />`;
}

function One({ id, query }) {
  const [module, setModule] = useState(null);
  useEffect(() => { import("./segment.js").then(setModule); }, []);
  if (!module) return html`<${Loading} />`;
  return id ? html`<${module.default} id=${id} query=${query} />` : html`<${module.NewSegment} key=${query.example ?? ""} query=${query} />`;
}

function All() {
  return html`
    <${Head} title=${t("Segments")} text=${t("Groups that fill themselves: everybody who meets your conditions is in.")}>
      ${allowed("createSegment") && html`<a class="button primary" href=${href("segments", { new: 1 })}>${t("New segment")}</a>`}
    </${Head}>
    <${List} id="listSegments" caption=${t("Segments")} rowHref=${(row) => href(`segments/${row.id}`)}
      columns=${[
        { label: t("Name"), cell: (row) => html`<${Written}>${row.name}</${Written}>` },
        { label: t("Contacts"), numeric: true, cell: (row) => (row.size === null ? "–" : number(row.size)) },
        { label: t("Kind"), cell: (row) => (row.kind === "static" ? t("Fixed") : t("Up to date")) },
        { label: t("Status"), cell: (row) => html`<${Badge} status=${row.status} />` },
        { label: t("Counted"), cell: (row) => html`<${Time} at=${row.calculated_at} />` },
      ]}
      empty=${html`<${NoSegments} />`} />`;
}

const CALL = `messaging segment create --name Pro --json-body - <<'JSON'
{"filter": {"type": "attribute", "key": "plan", "op": "eq", "value": "pro"}}
JSON`;

function NoSegments() {
  const text = t("A segment is a group like “customers who ordered twice this month”. It follows what your contacts do, and campaigns and automations can aim at it.");
  if (!allowed("createSegment")) return html`<${Empty} title=${t("No segments yet")} text=${text} />`;
  return html`<${Empty} title=${t("No segments yet")} text=${text} action=${t("New segment")} href=${href("segments", { new: 1 })}
      example=${CALL} />
    <${Examples} />`;
}

/** The examples, each a link to a new segment that is filled with it. */
function Examples() {
  return html`<section class="stack" aria-labelledby="examples"><h2 id="examples">${t("Begin with an example")}</h2>
    <div class="grid">${EXAMPLES.map(({ name, text }, nth) => html`<div class="card" key=${nth}><h3>${t(name)}</h3><p>${t(text)}</p>
      <p><a href=${href("segments", { new: 1, example: nth + 1 })}>${t("Use this")}<span class="sr"> ${t(name)}</span></a></p></div>`)}</div></section>`;
}
