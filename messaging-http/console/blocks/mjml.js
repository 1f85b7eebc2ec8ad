// MJML as a tree whose text is the source itself: written again it is the same byte for byte, and a change touches only
// what it changes. What is not known here stays as it was written.
import { decoded, encoded, tagEnd } from "./language.js";

/** Elements that hold other elements of MJML; the content of all others is a text here. */
const HOLDERS = ["mj-body", "mj-wrapper", "mj-section", "mj-group", "mj-column", "mj-hero", "mj-social"];

/** Elements within one another, at most. */
const DEEPEST = 64;

const NAME = /[a-zA-Z][\w:.-]*/y;

class Broken extends Error {
  constructor(message, at) {
    super(message);
    this.at = at;
  }
}

/**
 * Reads a source: `{ before, body, after }`, where body is the element `mj-body`, or `{ fault: { message, line } }` when
 * its elements do not match.
 *
 * A node is `{ source }`, or an element `{ name, open, children | inner, close }`; nodes are never changed.
 */
export function parse(source) {
  try {
    const at = bodyStart(source);
    if (at < 0) throw new Broken("There is no mj-body.", 0);
    const [body, end] = element(source, at, 0);
    return { before: source.slice(0, at), body, after: source.slice(end) };
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    return { fault: { message: error.message, line: source.slice(0, error.at).split("\n").length } };
  }
}

/** Reads a part of what stands in `mj-body`: `{ nodes }` or `{ fault }`. */
export function parsePart(source) {
  try {
    const [nodes, end] = content(source, 0, 0, null);
    if (end < source.length) throw new Broken("An element ends that did not begin.", end);
    return { nodes };
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    return { fault: { message: error.message, line: source.slice(0, error.at).split("\n").length } };
  }
}

/** The source of a node, or of a whole document. */
export function write(node) {
  if (node.body) return node.before + write(node.body) + node.after;
  if (node.source !== undefined) return node.source;
  return node.open + (node.children ? node.children.map(write).join("") : node.inner) + node.close;
}

/** Whether a node is only space between others. */
export function isSpace(node) {
  return node.source !== undefined && !node.source.trim();
}

function bodyStart(source) {
  for (let at = 0; at < source.length; at += 1) {
    if (source[at] === "{") at = Math.max(at, tagEnd(source, at) - 1);
    else if (source.startsWith("<!--", at)) at = endOf(source, "-->", at) - 1;
    else if (/^<mj-body[\s/>]/.test(source.slice(at, at + 9))) return at;
  }
  return -1;
}

function endOf(source, close, from) {
  const found = source.indexOf(close, from);
  return found < 0 ? source.length : found + close.length;
}

// What stands in an element up to its end, or to the end of the source: nodes, and where the end begins.
function content(source, from, depth, name) {
  const nodes = [];
  let at = from;
  while (at < source.length) {
    if (source.startsWith("</", at)) {
      if (name !== null || depth) return [nodes, at];
      throw new Broken("An element ends that did not begin.", at);
    }
    const [node, end] = one(source, at, depth);
    nodes.push(node);
    at = end;
  }
  return [nodes, at];
}

function one(source, at, depth) {
  if (source[at] === "{") {
    const end = tagEnd(source, at);
    if (end > 0) return [{ source: source.slice(at, end) }, end];
  }
  if (source[at] === "<") {
    if (source.startsWith("<!--", at)) return upTo(source, at, endOf(source, "-->", at));
    if (source.startsWith("<![CDATA[", at)) return upTo(source, at, endOf(source, "]]>", at));
    if (source.startsWith("<!", at) || source.startsWith("<?", at)) return upTo(source, at, endOf(source, ">", at));
    NAME.lastIndex = at + 1;
    if (NAME.test(source)) return element(source, at, depth + 1);
  }
  // A text up to the next tag; space before and after it stands apart.
  let end = at + 1;
  if (/\s/.test(source[at])) {
    while (end < source.length && /\s/.test(source[end])) end += 1;
    return upTo(source, at, end);
  }
  while (end < source.length && source[end] !== "<" && tagEnd(source, end) < 0) end += 1;
  const text = source.slice(at, end);
  return upTo(source, at, at + text.trimEnd().length);
}

const upTo = (source, at, end) => [{ source: source.slice(at, end) }, end];

function element(source, at, depth) {
  if (depth > DEEPEST) throw new Broken(`Elements nest more than ${DEEPEST} deep.`, at);
  NAME.lastIndex = at + 1;
  const [name] = NAME.exec(source);
  const begun = openEnd(source, at);
  const open = source.slice(at, begun);
  if (open.endsWith("/>")) return [{ name, open, inner: "", close: "" }, begun];
  if (HOLDERS.includes(name)) {
    const [children, end] = content(source, begun, depth, name);
    const close = closeAt(source, end, name);
    if (!close) throw new Broken(`${name} does not end before another element does.`, Math.min(end, source.length));
    return [{ name, open, children, close }, end + close.length];
  }
  const end = textEnd(source, begun, name);
  const close = closeAt(source, end, name);
  if (!close) throw new Broken(`${name} has no end.`, at);
  return [{ name, open, inner: source.slice(begun, end), close }, end + close.length];
}

// Where the tag that begins at `at` ends; a sign in a value or in a tag of the template is none.
function openEnd(source, at) {
  let quote = "";
  for (let place = at + 1; place < source.length; place += 1) {
    const skip = source[place] === "{" ? tagEnd(source, place) : -1;
    if (skip > 0) place = skip - 1;
    else if (quote) {
      if (source[place] === quote) quote = "";
    } else if (source[place] === '"' || source[place] === "'") quote = source[place];
    else if (source[place] === ">") return place + 1;
  }
  throw new Broken("A tag has no end.", at);
}

function closeAt(source, at, name) {
  const end = source.indexOf(">", at);
  const close = end < 0 ? "" : source.slice(at, end + 1);
  return close.startsWith("</") && close.slice(2, -1).trim() === name ? close : null;
}

// Where the end tag of an element begins whose content is a text; elements of the same name may be in it.
function textEnd(source, from, name) {
  let open = 1;
  for (let at = from; at < source.length; at += 1) {
    const skip = source[at] === "{" ? tagEnd(source, at) : source.startsWith("<!--", at) ? endOf(source, "-->", at) : -1;
    if (skip > 0) at = skip - 1;
    else if (source[at] === "<" && closeAt(source, at, name)) {
      open -= 1;
      if (!open) return at;
    } else if (source.startsWith(`<${name}`, at) && /[\s/>]/.test(source[at + name.length + 1] ?? "")) {
      const end = openEnd(source, at);
      if (!source.slice(at, end).endsWith("/>")) open += 1;
      at = end - 1;
    }
  }
  return source.length;
}

// ---- attributes ----

/**
 * The attributes of an opening tag: `[{ name, value, start, from, to, quote }]`, each with where it begins and where
 * its value stands in the tag.
 */
export function attributes(open) {
  const found = [];
  NAME.lastIndex = 1;
  NAME.test(open);
  let at = NAME.lastIndex;
  while (at < open.length) {
    const skip = open[at] === "{" ? tagEnd(open, at) : -1;
    NAME.lastIndex = at;
    const named = skip < 0 && NAME.exec(open);
    if (!named) {
      at = Math.max(at + 1, skip);
      continue;
    }
    const [name] = named;
    const start = at;
    const given = /^\s*=\s*/.exec(open.slice(at + name.length));
    at += name.length;
    if (!given) {
      found.push({ name, value: "", start, from: at, to: at, quote: null });
      continue;
    }
    at += given[0].length;
    const quote = open[at] === '"' || open[at] === "'" ? open[at] : "";
    const from = at + quote.length;
    let to = from;
    while (to < open.length) {
      const over = open[to] === "{" ? tagEnd(open, to) : -1;
      if (over > 0) to = over;
      else if (quote ? open[to] === quote : /[\s>]/.test(open[to])) break;
      else to += 1;
    }
    found.push({ name, value: decoded(open.slice(from, to)), start, from, to, quote });
    at = to + quote.length;
  }
  return found;
}

/** What an attribute says, or undefined. */
export function attribute(node, name) {
  return node.open === undefined ? undefined : attributes(node.open).find((one) => one.name === name)?.value;
}

/** The element with another value of an attribute; undefined takes the attribute away. */
export function withAttribute(node, name, value) {
  const { open } = node;
  const known = attributes(open).find((one) => one.name === name);
  if (known && value === undefined) {
    const before = open.slice(0, known.start).trimEnd();
    return { ...node, open: before + open.slice(known.to + (known.quote?.length ?? 0)) };
  }
  if (value === undefined) return node;
  if (known?.quote) return { ...node, open: open.slice(0, known.from) + encoded(value, known.quote) + open.slice(known.to) };
  const quoted = `"${encoded(value, '"')}"`;
  if (known) return { ...node, open: open.slice(0, known.from) + (known.quote === null ? "=" : "") + quoted + open.slice(known.to) };
  const end = /\s*\/?>$/.exec(open).index;
  return { ...node, open: `${open.slice(0, end)} ${name}=${quoted}${open.slice(end)}` };
}

/** The element with another content, as a source; one that was written without an end gets one. */
export function withInner(node, inner) {
  const isShort = !node.close;
  return { ...node, inner, open: isShort ? node.open.replace(/\s*\/>$/, ">") : node.open, close: isShort ? `</${node.name}>` : node.close };
}

/** The same for children. */
export function withChildren(node, children) {
  const { inner: _, ...rest } = withInner(node, "");
  return { ...rest, children };
}
