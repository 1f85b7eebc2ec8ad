// The HTML inside of texts as a tree: `{ text }`, `{ tag }` for a tag of the template language or a comment, and elements
// `{ name, open, attributes, children, close, source }`.
import { attributes } from "./mjml.js";
import { decoded, encoded, tagEnd } from "./language.js";

const VOID = ["br", "hr", "img", "wbr", "input", "col"];
const NAME = /<([a-zA-Z][\w:-]*)/y;
const DEEPEST = 32;

/** Reads HTML; null where its elements do not match. */
export function read(html) {
  const root = { children: [] };
  const open = [root];
  let at = 0;
  while (at < html.length) {
    const into = open.at(-1).children;
    const end = html[at] === "{" ? tagEnd(html, at) : html.startsWith("<!--", at) ? commentEnd(html, at) : -1;
    if (end > 0) {
      into.push({ tag: html.slice(at, end) });
      at = end;
    } else if (html.startsWith("</", at)) {
      const close = /^<\/([a-zA-Z][\w:-]*)\s*>/.exec(html.slice(at, at + 80));
      const element = open.pop();
      if (!close || element === root || element.name !== close[1].toLowerCase()) return null;
      element.close = close[0];
      at += close[0].length;
      element.source = html.slice(element.at, at);
    } else if (begins(html, at)) {
      const [, name] = begins(html, at);
      const after = openEnd(html, at);
      if (after < 0 || open.length > DEEPEST) return null;
      const source = html.slice(at, after);
      const element = { name: name.toLowerCase(), open: source, attributes: attributes(source), children: [], close: "", source, at };
      into.push(element);
      if (!source.endsWith("/>") && !VOID.includes(element.name)) open.push(element);
      at = after;
    } else {
      let next = at + 1;
      while (next < html.length && html[next] !== "<" && (html[next] !== "{" || tagEnd(html, next) < 0)) next += 1;
      into.push({ text: decoded(html.slice(at, next)) });
      at = next;
    }
  }
  return open.length === 1 ? root.children : null;
}

function begins(html, at) {
  NAME.lastIndex = at;
  return NAME.exec(html);
}

function commentEnd(html, at) {
  const end = html.indexOf("-->", at);
  return end < 0 ? html.length : end + 3;
}

function openEnd(html, at) {
  let quote = "";
  for (let place = at + 1; place < html.length; place += 1) {
    const skip = html[place] === "{" ? tagEnd(html, place) : -1;
    if (skip > 0) place = skip - 1;
    else if (quote) {
      if (html[place] === quote) quote = "";
    } else if (html[place] === '"' || html[place] === "'") quote = html[place];
    else if (html[place] === ">") return place + 1;
  }
  return -1;
}

/** What an attribute of an element says, or undefined. */
export function said(element, name) {
  return element.attributes.find((one) => one.name.toLowerCase() === name)?.value;
}

/** The declarations of a style: `[[name, value]]`. */
export function declarations(style = "") {
  return style.split(";").map((one) => {
    const colon = one.indexOf(":");
    return colon < 0 ? [] : [one.slice(0, colon).trim().toLowerCase(), one.slice(colon + 1).trim()];
  }).filter(([name, value]) => name && value);
}

/** Declarations as the value of a style. */
export function styleOf(pairs) {
  return pairs.map(([name, value]) => `${name}: ${value}`).join("; ");
}

/** The attributes of an element but those named, written behind its name. */
export function otherAttributes(element, names) {
  return element.attributes.filter(({ name }) => !names.includes(name.toLowerCase()))
    .map(({ name, value, quote }) => (quote === null ? ` ${name}` : ` ${name}="${encoded(value, '"')}"`)).join("");
}

const ELEMENTS = /^(?:p|h[1-6]|ul|ol|li|div|br|table|tr|hr)$/;

/** The words of HTML on one line, for who reads a list of blocks. */
export function words(html) {
  const nodes = read(html);
  const say = (node) => (node.text ?? node.tag ?? (ELEMENTS.test(node.name) ? ` ${node.children.map(say).join("")} ` : node.children.map(say).join("")));
  return (nodes ? nodes.map(say).join("") : html.replace(/<[^>]*>/g, " ")).replace(/\s+/g, " ").trim();
}
