// What a block looks like, roughly: drawn of elements that are known here, never of its HTML. Its texts have the colours of
// the console, so that they can be read in it; nothing is loaded but images of the server itself.
import { html, t } from "../lib/ui.js";
import { attribute } from "./mjml.js";
import { briefly, decoded, pieces } from "./language.js";
import { kindOf } from "./kinds.js";
import { declarations, read, said, words } from "./rich.js";
import { shownAt } from "../lib/own_images.js";

const SAME = ["p", "h1", "h2", "h3", "h4", "ul", "ol", "li", "strong", "b", "em", "i", "u", "s", "br", "blockquote"];
const ALIGNS = ["left", "center", "right"];
// Headings of a mail are no headings of the page.
const LOOKS = { h1: "drawn-h1", h2: "drawn-h2", h3: "drawn-h3", h4: "drawn-h3" };

const color = (value) => (/^(?:#[0-9a-fA-F]{3,8}|[a-zA-Z]{3,20}|(?:rgb|hsl)a?\([\d\s.,%/]{1,40}\))$/.test(value ?? "") ? value : undefined);
const aligned = (value) => (ALIGNS.includes(value) ? value : undefined);

/** A look of a block; `defaults` are those of its document. */
export function Drawing({ node, defaults = {} }) {
  const kind = kindOf(node);
  const set = (name) => attribute(node, name) ?? defaults[node.name]?.[name] ?? defaults["mj-all"]?.[name];
  const style = { textAlign: aligned(set("align")) };
  switch (kind) {
    case "heading": case "text": return html`<div class="drawn ${kind === "text" ? "drawn-text" : ""}" dir="auto" style=${style}>${rich(node.inner)}</div>`;
    case "button": {
      const back = color(set("background-color")) ?? "#414141";
      return html`<div class="drawn" style=${{ textAlign: style.textAlign ?? "center" }}><span class="drawn-button" dir="auto" style=${{ background: back, color: color(set("color")) ?? "#ffffff" }}>${tagged(words(node.inner))}</span></div>`;
    }
    case "image": {
      const shown = shownAt(attribute(node, "src"));
      const alt = attribute(node, "alt");
      return html`<div class="drawn" style=${{ textAlign: style.textAlign ?? "center" }}>${shown
        ? html`<img class="drawn-image" src=${shown} alt=${alt ?? ""} loading="lazy" />`
        : html`<span class="drawn-frame" dir="auto">${attribute(node, "src") ? alt || attribute(node, "src") : t("No image is chosen yet.")}</span>`}</div>`;
    }
    case "divider": return html`<div class="drawn"><hr class="drawn-line" style=${{ borderColor: color(set("border-color")) }} /></div>`;
    case "social": return html`<div class="drawn" style=${{ textAlign: style.textAlign ?? "center" }}>${(node.children ?? []).filter((child) => child.name).map((child, nth) => html`<span key=${nth} class="drawn-link" dir="auto">${decoded(words(child.inner ?? "")) || attribute(child, "name")}</span>`)}</div>`;
    case "raw": case "element": case "tag": case "comment":
      return html`<pre class="drawn drawn-code" dir="ltr">${flush(node.source ?? `${node.open}${node.inner ?? ""}${node.close}`).slice(0, 400)}</pre>`;
    default: return null;
  }
}

// Without the space that all lines but the first begin with.
function flush(source) {
  const [first, ...rest] = source.split("\n");
  const least = Math.min(...rest.filter((line) => line.trim()).map((line) => /^\s*/.exec(line)[0].length));
  return [first, ...rest.map((line) => line.slice(least))].join("\n");
}

function rich(source) {
  const nodes = read(source);
  return nodes ? nodes.map(one) : tagged(words(source));
}

function one(node, key) {
  if (node.text !== undefined) return node.text;
  if (node.tag !== undefined) return node.tag.startsWith("<!--") ? null : html`<code class="expression" key=${key} title=${node.tag}>${briefly(node.tag)}</code>`;
  const style = declarations(said(node, "style"));
  const value = (name) => style.find(([key]) => key === name)?.[1];
  const look = { textAlign: aligned(value("text-align")) };
  const inside = node.children.map(one);
  if (node.name === "a") return html`<span key=${key} class="drawn-link" title=${said(node, "href")} style=${look}>${inside}</span>`;
  if (LOOKS[node.name]) return html`<p key=${key} class=${LOOKS[node.name]} style=${look}>${inside}</p>`;
  if (node.name === "br") return html`<br key=${key} />`;
  if (node.name === "img") return html`<span key=${key} class="drawn-frame">${said(node, "alt") ?? t("Image")}</span>`;
  if (["script", "style", "head", "title"].includes(node.name)) return html`<code key=${key}>${node.open}</code>`;
  if (!SAME.includes(node.name)) return html`<span key=${key} style=${look}>${inside}</span>`;
  return html`<${node.name} key=${key} style=${look}>${inside}</${node.name}>`;
}

const tagged = (text) => pieces(text).map(({ tag, text: piece }, nth) => (tag ? html`<code class="expression" key=${nth} title=${piece}>${briefly(piece)}</code>` : decoded(piece)));
