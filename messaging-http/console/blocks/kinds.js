// The kinds of blocks: how each is known in MJML, what it is called, what can be set, and what a new one looks like.
import { t } from "../lib/ui.js";
import { attribute, attributes, isSpace, parsePart } from "./mjml.js";
import { encoded, pieces } from "./language.js";
import { read, words } from "./rich.js";

/** Marks a section that shows a product. */
const PRODUCT = "product-row";

/** What can be added, with what it is called. */
export const ADDED = [
  ["heading", "Heading"], ["text", "Text"], ["image", "Image"], ["button", "Button"], ["columns", "Columns"],
  ["divider", "Divider"], ["spacer", "Space"], ["social", "Social links"], ["product", "Product row"], ["raw", "Code"],
];

const NAMES = {
  ...Object.fromEntries(ADDED), section: "Section", column: "Column", group: "Group", wrapper: "Frame", hero: "Banner", body: "Whole email", other: "Block",
  tag: "Template code", comment: "Remark", element: "Code",
};

const KINDS = {
  "mj-image": "image", "mj-button": "button", "mj-divider": "divider", "mj-spacer": "spacer", "mj-social": "social", "mj-raw": "raw",
  "mj-column": "column", "mj-group": "group", "mj-wrapper": "wrapper", "mj-hero": "hero", "mj-body": "body",
};

/** The kind of a node. */
export function kindOf(node) {
  if (node.source !== undefined) return node.source.startsWith("{") ? "tag" : node.source.startsWith("<!--") ? "comment" : "raw";
  if (node.name === "mj-text") return isHeading(node.inner) ? "heading" : "text";
  if (node.name === "mj-section") {
    if ((attribute(node, "css-class") ?? "").split(/\s+/).includes(PRODUCT)) return "product";
    return (node.children ?? []).filter((child) => child.name === "mj-column").length > 1 ? "columns" : "section";
  }
  return KINDS[node.name] ?? "element";
}

function isHeading(inner) {
  const nodes = read(inner.trim());
  return nodes?.length === 1 && /^h[1-6]$/.test(nodes[0].name ?? "");
}

/** What people read for the kind of a node. */
export function nameOf(node) {
  const kind = kindOf(node);
  return kind === "element" && node.name?.startsWith("mj-") ? node.name.slice(3).replaceAll("-", " ") : t(NAMES[kind]);
}

/** A few words that tell a block from others of its kind. */
export function summaryOf(node) {
  const kind = kindOf(node);
  if (node.source !== undefined) return short(node.source);
  if (["heading", "text", "button"].includes(kind)) return short(words(node.inner));
  if (kind === "image") return short(attribute(node, "alt") || attribute(node, "src") || "");
  if (kind === "social") return short((node.children ?? []).filter((child) => child.name).map((child) => words(child.inner ?? "") || attribute(child, "name") || "").filter(Boolean).join(", "));
  if (kind === "spacer") return attribute(node, "height") ?? "20px";
  if (kind === "columns") return t("{number} columns", { number: node.children.filter((child) => child.name === "mj-column").length });
  if (kind === "raw" || kind === "element") return short((node.inner ?? "").replace(/\s+/g, " ").trim());
  return "";
}

const short = (text) => (text.length > 80 ? `${text.slice(0, 79)}…` : text);

// ---- new blocks ----

const LINE = "\n";

const SOURCES = {
  heading: () => `<mj-text font-size="24px" line-height="1.3"><h2 style="margin: 0">${t("A heading")}</h2></mj-text>`,
  text: () => `<mj-text line-height="1.5"><p style="margin: 0">${t("Write your text here.")}</p></mj-text>`,
  image: () => "<mj-image />",
  button: () => `<mj-button href="https://example.com/" background-color="#2f52cc" color="#ffffff" border-radius="6px">${t("Open")}</mj-button>`,
  divider: () => '<mj-divider border-width="1px" border-color="#d5d9e0" />',
  spacer: () => '<mj-spacer height="24px" />',
  social: () => [
    '<mj-social mode="horizontal" align="center" icon-size="0px" text-padding="4px 12px" color="#2f52cc">',
    `  <mj-social-element href="https://example.com/" alt="">${t("Our page")}</mj-social-element>`,
    "</mj-social>",
  ].join(LINE),
  raw: () => ["<mj-raw>", "  <!-- HTML -->", "</mj-raw>"].join(LINE),
  columns: () => section("", [
    column(['<mj-text line-height="1.5">', `  <p style="margin: 0">${t("The first column.")}</p>`, "</mj-text>"]),
    column(['<mj-text line-height="1.5">', `  <p style="margin: 0">${t("The second column.")}</p>`, "</mj-text>"]),
  ]),
  product: () => section(` css-class="${PRODUCT}"`, [
    column(["<mj-image />"], ' width="35%"'),
    column([
      `<mj-text line-height="1.5"><p style="margin: 0"><strong>${t("Name of the product")}</strong></p><p style="margin: 0">${t("A sentence about it.")}</p></mj-text>`,
      '<mj-text font-weight="700">€ 29</mj-text>',
      `<mj-button href="https://example.com/" align="left" background-color="#2f52cc" color="#ffffff" border-radius="6px">${t("Look at it")}</mj-button>`,
    ], ' width="65%"'),
  ]),
};

const indented = (lines) => lines.flatMap((line) => line.split(LINE)).map((line) => `  ${line}`);
const column = (lines, more = "") => [`<mj-column${more}>`, ...indented(lines), "</mj-column>"].join(LINE);
const section = (more, columns) => [`<mj-section${more}>`, ...indented(columns), "</mj-section>"].join(LINE);

/** Whether a new block of a kind is a section of its own. */
export function isWhole(kind) {
  return kind === "columns" || kind === "product";
}

/** A new block of a kind, whose lines begin with this space. `inSection` puts it into a section of its own. */
export function made(kind, space, inSection) {
  const own = SOURCES[kind]();
  const lines = inSection ? section("", [column([own])]) : own;
  return parsePart(lines.replaceAll(LINE, `${LINE}${space}`)).nodes[0];
}

/** A new column. */
export function madeColumn() {
  return parsePart("<mj-column></mj-column>").nodes[0];
}

/** A new link among social ones. */
export function madeSocial() {
  return parsePart(`<mj-social-element href="https://example.com/" alt="">${encoded(t("Our page"))}</mj-social-element>`).nodes[0];
}

/** A document with one text. */
export function beginning() {
  return `<mjml>
  <mj-head>
    <mj-attributes>
      <mj-all font-family="Helvetica, Arial, sans-serif" />
      <mj-text font-size="16px" line-height="1.5" color="#1a1f2b" />
    </mj-attributes>
  </mj-head>
  <mj-body background-color="#ffffff" width="600px">
    <mj-section>
      <mj-column>
        <mj-text><p style="margin: 0">${t("Hello")} {{ contact.attributes.first_name | default("there") }},</p></mj-text>
      </mj-column>
    </mj-section>
    <mj-section>
      <mj-column>
        <mj-text font-size="13px" color="#565f6f" align="center"><a href="{{ unsubscribe_url }}">${t("Unsubscribe")}</a></mj-text>
      </mj-column>
    </mj-section>
  </mj-body>
</mjml>
`;
}

// ---- what can be set ----

const ALIGN = { name: "align", label: "Alignment", kind: "choice", options: [["left", "Left"], ["center", "Centre"], ["right", "Right"]] };
const SPACE = { name: "padding", label: "Space around", placeholder: "10px 25px" };
const color = (name, label) => ({ name, label, kind: "color" });
const BACKGROUND = color("background-color", "Background");
const LINK = { name: "href", label: "Link", kind: "value", type: "url", placeholder: "https://example.com/" };

/** The settings of a kind of block, each an attribute of its element. */
export const SETTINGS = {
  heading: [ALIGN, color("color", "Colour"), { name: "font-size", label: "Size", placeholder: "24px" }, SPACE],
  text: [ALIGN, color("color", "Colour"), { name: "font-size", label: "Size", placeholder: "16px" }, { name: "line-height", label: "Height of lines", placeholder: "1.5" }, SPACE],
  image: [LINK, ALIGN, { name: "width", label: "Width", placeholder: "300px" }, { name: "border-radius", label: "Round corners", placeholder: "0px" }, SPACE],
  button: [LINK, ALIGN, color("background-color", "Colour of the button"), color("color", "Colour of its text"), { name: "border-radius", label: "Round corners", placeholder: "6px" }, { name: "font-size", label: "Size", placeholder: "16px" }, SPACE],
  divider: [color("border-color", "Colour"), { name: "border-width", label: "Thickness", placeholder: "1px" }, { name: "border-style", label: "Line", kind: "choice", options: [["solid", "Solid"], ["dashed", "Dashed"], ["dotted", "Dotted"]] }, SPACE],
  spacer: [{ name: "height", label: "Height", placeholder: "24px" }],
  social: [ALIGN, color("color", "Colour"), { name: "mode", label: "Arranged", kind: "choice", options: [["horizontal", "Side by side"], ["vertical", "One below the other"]] }, SPACE],
  section: [BACKGROUND, SPACE],
  columns: [BACKGROUND, SPACE],
  product: [BACKGROUND, SPACE],
  column: [{ name: "width", label: "Width", placeholder: "50%" }, BACKGROUND, { name: "vertical-align", label: "Its content stands", kind: "choice", options: [["top", "At the top"], ["middle", "In the middle"], ["bottom", "At the bottom"]] }, SPACE],
  wrapper: [BACKGROUND, SPACE],
  hero: [BACKGROUND, SPACE],
  body: [BACKGROUND, { name: "width", label: "Width", placeholder: "600px" }],
};

/** Tags of the template that a block can be put between, with what that does. */
export const WRAPS = [
  ["Show it under a condition", ['{% if contact.attributes.plan == "pro" %}', "{% endif %}"]],
  ["Repeat it for each item", ["{% for item in order.items %}", "{% endfor %}"]],
];

/** Whether a node shows something, and is no part of the code around others. */
export function isShown(node) {
  return !isSpace(node) && !["tag", "comment"].includes(kindOf(node));
}

// ---- what stands in the head ----

/** What elements are like unless they say otherwise, as `mj-attributes` has it: `{ "mj-button": { color: "…" } }`. */
export function defaultsOf(before) {
  const inner = /<mj-attributes\s*>([\s\S]*?)<\/mj-attributes\s*>/.exec(before)?.[1];
  const { nodes = [] } = inner ? parsePart(inner) : {};
  const found = {};
  for (const { name, open } of nodes) {
    if (!name) continue;
    found[name] = { ...found[name], ...Object.fromEntries(attributes(open).map((one) => [one.name, one.value])) };
  }
  return found;
}

/** A source as it reads without any values: fallbacks and names in the place of the tags of the template. */
export function asExample(source) {
  return pieces(source).map(({ tag, text }) => {
    if (!tag) return text;
    if (!text.startsWith("{{")) return "";
    const fallback = /default\(\s*(?:"([^"]*)"|'([^']*)'|(\d+))/.exec(text);
    return encoded(fallback ? fallback[1] ?? fallback[2] ?? fallback[3] : /([\w]+)\W*$/.exec(text)?.[1]?.replaceAll("_", " ") ?? "", '"');
  }).join("");
}
