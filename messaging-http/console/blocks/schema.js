// What rich text consists of, and the way from HTML to it and back. Nothing is lost on the way: tags of the template
// language, and elements that are not known here, are things within the text that say what they are and cannot be typed into.
import { Fragment, Schema } from "../vendor/prosemirror.js";
import { briefly, encoded, pieces } from "./language.js";
import { declarations, otherAttributes, read, said, styleOf } from "./rich.js";

// Attributes that a reading of the page itself must bring back, when somebody types where two pieces of text meet.
const kept = (names) => ({
  attrs: Object.fromEntries(names.map((name) => [name, { default: "" }])),
  to: (attrs) => Object.fromEntries(names.map((name) => [`data-${name}`, attrs[name]])),
  from: (dom) => Object.fromEntries(names.map((name) => [name, dom.getAttribute(`data-${name}`) ?? ""])),
});

const block = kept(["rest", "align", "bare"]);
const aligned = (attrs) => ({ ...block.to(attrs), ...(ALIGNMENTS.includes(attrs.align) && { class: `align-${attrs.align}` }) });
const source = kept(["source"]);
const link = kept(["href", "rest"]);
const color = kept(["color"]);

export const ALIGNMENTS = ["left", "center", "right"];

const thing = (className, inline) => ({
  inline, group: inline ? "inline" : "block", atom: true, selectable: true, attrs: source.attrs,
  toDOM: ({ attrs }) => [inline ? "code" : "pre", { ...source.to(attrs), class: className, contenteditable: "false", title: attrs.source }, briefly(attrs.source)],
  parseDOM: [{ tag: `${inline ? "code" : "pre"}.${className}`, getAttrs: source.from }],
});

const list = (tag) => ({
  content: "list_item+", group: "block", attrs: { rest: { default: "" } },
  toDOM: ({ attrs }) => [tag, { "data-rest": attrs.rest }, 0],
  parseDOM: [{ tag, getAttrs: (dom) => ({ rest: dom.getAttribute("data-rest") ?? "" }) }],
});

const mark = (tag, others = []) => ({
  attrs: { tag: { default: tag } },
  toDOM: () => [tag, 0],
  parseDOM: [tag, ...others].map((one) => ({ tag: one })),
});

export const schema = new Schema({
  nodes: {
    doc: { content: "block+" },
    paragraph: {
      content: "inline*", group: "block", attrs: block.attrs,
      toDOM: ({ attrs }) => ["p", aligned(attrs), 0],
      parseDOM: [{ tag: "p", getAttrs: block.from }],
    },
    heading: {
      content: "inline*", group: "block", defining: true, attrs: { ...block.attrs, level: { default: 2 } },
      toDOM: ({ attrs }) => [`h${attrs.level}`, aligned(attrs), 0],
      parseDOM: [1, 2, 3, 4, 5, 6].map((level) => ({ tag: `h${level}`, getAttrs: (dom) => ({ ...block.from(dom), level }) })),
    },
    bullet_list: list("ul"),
    ordered_list: list("ol"),
    list_item: {
      content: "paragraph block*", defining: true, attrs: { rest: { default: "" } },
      toDOM: ({ attrs }) => ["li", { "data-rest": attrs.rest }, 0],
      parseDOM: [{ tag: "li", getAttrs: (dom) => ({ rest: dom.getAttribute("data-rest") ?? "" }) }],
    },
    raw_block: thing("raw-block", false),
    text: { group: "inline" },
    expression: thing("expression", true),
    raw_inline: thing("raw-inline", true),
    hard_break: {
      inline: true, group: "inline", selectable: false, attrs: { source: { default: "<br />" } },
      toDOM: () => ["br"], parseDOM: [{ tag: "br" }],
    },
  },
  marks: {
    link: {
      inclusive: false, attrs: link.attrs,
      // Nothing to follow: the address is shown, never used.
      toDOM: ({ attrs }) => ["span", { ...link.to(attrs), class: "rich-link", title: attrs.href }, 0],
      parseDOM: [{ tag: "span.rich-link", getAttrs: link.from }],
    },
    color: {
      attrs: color.attrs,
      toDOM: ({ attrs }) => {
        const dom = document.createElement("span");
        dom.className = "rich-color";
        dom.dataset.color = attrs.color;
        dom.style.color = attrs.color;
        return { dom, contentDOM: dom };
      },
      parseDOM: [{ tag: "span.rich-color", getAttrs: color.from }],
    },
    strong: mark("strong", ["b"]),
    em: mark("em", ["i"]),
    underline: mark("u"),
  },
});

// ---- from HTML ----

const { nodes, marks } = schema;
const MARKS = { strong: marks.strong, b: marks.strong, em: marks.em, i: marks.em, u: marks.underline };

/** The document of a text's HTML; null where its elements do not match. */
export function toDocument(html) {
  const tree = read(html);
  if (!tree) return null;
  const blocks = blocksOf(tree);
  return nodes.doc.create(null, blocks.length ? blocks : [nodes.paragraph.create({ bare: "1" })]);
}

// Blocks of what stands in a text or in an item of a list; what stands between blocks without an element of its own is a
// paragraph that is bare.
function blocksOf(tree) {
  const found = [];
  let run = [];
  const hasBlocks = tree.some((node) => isBlock(node));
  const end = () => {
    const isEmpty = run.every((node) => node.text !== undefined && !node.text.replace(/[ \t\n\r\f]+/g, ""));
    // Between blocks, code of the template is a block as well.
    const isCode = hasBlocks && run.every((node) => node.tag?.match(/^(?:\{[%#]|<!--)/) || (node.text !== undefined && !node.text.trim()));
    if (!isEmpty && isCode) found.push(...run.filter((node) => node.tag).map((node) => nodes.raw_block.create({ source: node.tag })));
    else if (!isEmpty) found.push(nodes.paragraph.create({ bare: "1" }, inline(run)));
    run = [];
  };
  for (const node of tree) {
    if (!isBlock(node)) {
      run.push(node);
      continue;
    }
    end();
    found.push(blockOf(node));
  }
  end();
  return found;
}

const INLINE = ["a", "abbr", "b", "big", "br", "code", "del", "em", "font", "i", "img", "ins", "kbd", "mark", "q", "s", "small", "span", "strike", "strong", "sub", "sup", "u", "wbr"];
const isBlock = (node) => node.name !== undefined && !INLINE.includes(node.name);

function blockOf(node) {
  const { name } = node;
  if (name === "p" || /^h[1-6]$/.test(name)) {
    if (node.children.some(isBlock)) return nodes.raw_block.create({ source: node.source });
    const style = declarations(said(node, "style"));
    const align = style.find(([key]) => key === "text-align")?.[1] ?? "";
    const isOurs = ALIGNMENTS.includes(align);
    const others = isOurs ? style.filter(([key]) => key !== "text-align") : style;
    const rest = `${otherAttributes(node, isOurs ? ["style"] : [])}${isOurs && others.length ? ` style="${encoded(styleOf(others), '"')}"` : ""}`;
    const attrs = { rest, align: isOurs ? align : "" };
    return name === "p" ? nodes.paragraph.create(attrs, inline(node.children)) : nodes.heading.create({ ...attrs, level: Number(name[1]) }, inline(node.children));
  }
  if (name === "ul" || name === "ol") {
    const items = node.children.filter((child) => !(child.text !== undefined && !child.text.trim()));
    const made = items.map((item) => (item.name === "li" ? itemOf(item) : null));
    if (made.length && made.every(Boolean)) return nodes[name === "ul" ? "bullet_list" : "ordered_list"].create({ rest: otherAttributes(node, []) }, made);
  }
  return nodes.raw_block.create({ source: node.source });
}

function itemOf(item) {
  const blocks = blocksOf(item.children);
  if (!blocks.length) blocks.push(nodes.paragraph.create({ bare: "1" }));
  if (blocks[0].type !== nodes.paragraph) return null;
  return nodes.list_item.create({ rest: otherAttributes(item, []) }, blocks);
}

function inline(tree, active = []) {
  const found = collected(tree, active);
  // Space at the ends of a line is not seen.
  trim(found, 0, /^ /);
  trim(found, found.length - 1, / $/);
  return Fragment.fromArray(joined(found));
}

function trim(found, index, space) {
  const node = found[index];
  if (!node?.isText || !space.test(node.text)) return;
  const text = node.text.replace(space, "");
  found.splice(index, 1, ...(text ? [schema.text(text, node.marks)] : []));
}

function joined(found) {
  return found.reduce((all, node) => {
    const last = all.at(-1);
    if (node.isText && last?.isText && node.sameMarkup(last)) all.splice(-1, 1, schema.text(last.text + node.text, last.marks));
    else all.push(node);
    return all;
  }, []);
}

function collected(tree, active) {
  return tree.flatMap((node) => {
    if (node.tag) return [nodes[node.tag.startsWith("<") ? "raw_inline" : "expression"].create({ source: node.tag }, null, active)];
    if (node.text !== undefined) {
      const text = node.text.replace(/[ \t\n\r\f]+/g, " ");
      return text ? [schema.text(text, active)] : [];
    }
    if (node.name === "br") return [nodes.hard_break.create({ source: node.source }, null, active)];
    const own = markOf(node);
    if (own) return collected(node.children, own.addToSet(active));
    const raw = (text) => nodes.raw_inline.create({ source: text }, null, active);
    return [raw(node.open), ...collected(node.children, active), ...(node.close ? [raw(node.close)] : [])];
  });
}

function markOf(node) {
  if (MARKS[node.name]) return node.attributes.length ? null : MARKS[node.name].create({ tag: node.name });
  if (node.name === "a" && said(node, "href") !== undefined) return marks.link.create({ href: said(node, "href"), rest: otherAttributes(node, ["href"]) });
  if (node.name === "span" && node.attributes.length === 1) {
    const style = declarations(said(node, "style"));
    if (style.length === 1 && style[0][0] === "color") return marks.color.create({ color: style[0][1] });
  }
  return null;
}

// ---- and back ----

/** The HTML of a document. */
export function toHtml(doc) {
  const { firstChild } = doc;
  if (doc.childCount === 1 && firstChild.attrs.bare && !firstChild.attrs.align) return line(firstChild);
  return doc.children.map((node) => htmlOf(node)).join("\n");
}

function htmlOf(node) {
  switch (node.type.name) {
    case "raw_block": return node.attrs.source;
    case "heading": return element(`h${node.attrs.level}`, node);
    case "bullet_list": case "ordered_list": {
      const tag = node.type === nodes.bullet_list ? "ul" : "ol";
      return `<${tag}${node.attrs.rest}>${node.children.map((item) => `<li${item.attrs.rest}>${itemHtml(item)}</li>`).join("")}</${tag}>`;
    }
    default: return element("p", node);
  }
}

// The first paragraph of an item needs no element.
function itemHtml(item) {
  const [first, ...rest] = item.children;
  const isPlain = !first.attrs.align && (first.attrs.bare || !first.attrs.rest);
  return (isPlain && !(rest.length && rest.some((node) => node.type === nodes.paragraph)) ? line(first) : htmlOf(first)) + rest.map(htmlOf).join("");
}

function element(tag, node) {
  const { align, rest } = node.attrs;
  return `<${tag}${align ? withAlign(rest, align) : rest}>${line(node)}</${tag}>`;
}

function withAlign(rest, align) {
  const style = / style="([^"]*)"/.exec(rest);
  return style ? rest.replace(style[0], () => ` style="text-align: ${align}; ${style[1]}"`) : ` style="text-align: ${align}"${rest}`;
}

const OPENING = {
  link: ({ href, rest }) => `<a href="${encoded(href, '"')}"${rest}>`,
  color: ({ color: value }) => `<span style="color: ${encoded(value.replace(/[;{}"]/g, ""), '"')}">`,
};
const CLOSING = { link: "a", color: "span" };

// The marks that begin or end between two pieces, the outer ones first.
function line(node) {
  let html = "";
  let open = [];
  const closeTo = (depth) => {
    for (const one of open.slice(depth).reverse()) html += `</${CLOSING[one.type.name] ?? one.attrs.tag}>`;
    open = open.slice(0, depth);
  };
  node.forEach((child) => {
    let same = 0;
    while (same < open.length && child.marks[same] && open[same].eq(child.marks[same])) same += 1;
    closeTo(same);
    for (const one of child.marks.slice(same)) {
      html += OPENING[one.type.name]?.(one.attrs) ?? `<${one.attrs.tag}>`;
      open.push(one);
    }
    html += child.isText ? textHtml(child.text) : child.attrs.source;
  });
  closeTo(0);
  return html;
}

// Two spaces in a row are seen as two.
function textHtml(text) {
  return pieces(text).map((piece) => (piece.tag ? piece.text : encoded(piece.text).replace(/ {2}/g, " &nbsp;"))).join("");
}
