// Changes of the tree of a document. A place is the path of a node below `mj-body`: the number of each child on the way.
// Every function answers a new tree; space between nodes stays with what it stands before.
import { attribute, isSpace, withAttribute, withChildren } from "./mjml.js";

const MOST_COLUMNS = 4;

const childrenOf = (node) => node.children ?? [];

/** The node at a place, or undefined. */
export function at(body, place) {
  return place.reduce((node, index) => node && childrenOf(node)[index], body);
}

/** The tree with another node in a place. */
export function replaced(body, place, node) {
  if (!place.length) return node;
  const [index, ...rest] = place;
  return changed(body, (children) => children.map((child, nth) => (nth === index ? replaced(child, rest, node) : child)));
}

function changed(node, change) {
  return withChildren(node, change(childrenOf(node)));
}

function under(body, place, change) {
  return replaced(body, place, changed(at(body, place), change));
}

/** The places of the nodes in an element that are no space. */
export function placesIn(body, place) {
  return childrenOf(at(body, place)).flatMap((child, index) => (isSpace(child) ? [] : [[...place, index]]));
}

/** All places of blocks in the order in which they stand. */
export function places(body, place = []) {
  return placesIn(body, place).flatMap((one) => (isHolder(at(body, one)) ? [one, ...places(body, one)] : [one]));
}

/** Whether blocks stand in a node. */
export function isHolder(node) {
  return ["mj-wrapper", "mj-section", "mj-group", "mj-column", "mj-hero"].includes(node.name);
}

/** Whether a node holds contents itself, not columns or sections. */
const isColumn = (node) => node?.name === "mj-column" || node?.name === "mj-hero";

export const isSection = (node) => node?.name === "mj-section";

/** The tree with other nodes in the place of one. */
export function spliced(body, place, nodes) {
  const index = place.at(-1);
  return under(body, place.slice(0, -1), (children) => [...children.slice(0, index), ...nodes, ...children.slice(index + 1)]);
}

const lineOf = (space) => (space.includes("\n") ? space.slice(space.lastIndexOf("\n")) : space);

/**
 * The tree with a new node before the one at a place, or at the end of its element: `{ body, place }`. It stands apart from
 * the others as they do from one another; `make` gets the space that its lines begin with.
 */
export function inserted(body, place, make) {
  const parent = place.slice(0, -1);
  const index = place.at(-1);
  const children = childrenOf(at(body, parent));
  const last = children.at(-1);
  const put = (from, space, added) => ({
    body: under(body, parent, (old) => [...old.slice(0, from), ...added(make(space.replace("\n", "")), { source: space }), ...old.slice(from)]),
    place: [...parent, from],
  });
  if (index < children.length) {
    const before = children[index - 1];
    return before && isSpace(before) ? put(index, lineOf(before.source), (node, space) => [node, space]) : put(index, "", (node) => [node]);
  }
  if (!last) {
    const space = `\n${"  ".repeat(parent.length + 2)}`;
    const { body: next } = put(0, space, (node, before) => [before, node, { source: space.slice(0, -2) }]);
    return { body: next, place: [...parent, 1] };
  }
  if (!isSpace(last)) return put(children.length, "", (node) => [node]);
  const first = children.find((child) => isSpace(child) && child !== last);
  const space = first ? lineOf(first.source) : `${lineOf(last.source)}${last.source.includes("\n") ? "  " : ""}`;
  const { body: next } = put(children.length - 1, space, (node, before) => [before, node]);
  return { body: next, place: [...parent, children.length] };
}

/** The tree with a new node behind the others of an element. */
export function appended(body, parent, make) {
  return inserted(body, [...parent, childrenOf(at(body, parent)).length], make);
}

/** The tree with a new node behind the one at a place. */
export function insertedAfter(body, place, make) {
  const parent = place.slice(0, -1);
  const nodes = placesIn(body, parent);
  const next = nodes[nodes.findIndex((one) => one.at(-1) === place.at(-1)) + 1];
  return next ? inserted(body, next, make) : appended(body, parent, make);
}

/** The tree with a tag of the template before a node and one after it; the place is that of the first one. */
export function wrapped(body, place, [opening, closing]) {
  const after = insertedAfter(body, place, () => ({ source: closing }));
  return inserted(after.body, place, () => ({ source: opening }));
}

/** The tree without the node at a place, and without the space before it. */
export function removed(body, place) {
  const parent = place.slice(0, -1);
  const index = place.at(-1);
  return under(body, parent, (children) => {
    const from = index > 0 && isSpace(children[index - 1]) ? index - 1 : index;
    return [...children.slice(0, from), ...children.slice(index + 1)];
  });
}

/** The place that gets the focus once the node at a place is removed: the one after it, before it, or around it. */
export function neighbour(body, place) {
  const parent = place.slice(0, -1);
  const nodes = placesIn(body, parent).map((one) => one.at(-1));
  const nth = nodes.indexOf(place.at(-1));
  const hasSpace = place.at(-1) > 0 && isSpace(at(body, [...parent, place.at(-1) - 1]));
  if (nth + 1 < nodes.length) return [...parent, nodes[nth + 1] - (hasSpace ? 2 : 1)];
  return nth > 0 ? [...parent, nodes[nth - 1]] : parent.length ? parent : null;
}

/** The tree with a node one step up (-1) or down (1): `{ body, place }`, or null where there is no further step. */
export function moved(body, place, step) {
  const parent = place.slice(0, -1);
  const nodes = placesIn(body, parent);
  const nth = nodes.findIndex((one) => one.at(-1) === place.at(-1));
  const other = nodes[nth + step];
  if (other) {
    const [one, two] = [at(body, place), at(body, other)];
    return { body: replaced(replaced(body, place, two), other, one), place: other };
  }
  // At the edge of a column the content goes on to the column before or after it.
  if (!isColumn(at(body, parent))) return null;
  const columns = places(body).filter((one) => isColumn(at(body, one)));
  const target = columns[columns.findIndex((one) => String(one) === String(parent)) + step];
  return target ? movedTo(body, place, step < 0 ? { end: target } : { start: target }) : null;
}

/**
 * The tree with a node in another place: `{ before }` or `{ after }` another node, or at the `{ start }` or `{ end }` of an
 * element. Null where it cannot stand there.
 */
export function movedTo(body, place, { before, after, start, end }) {
  const target = before ?? after ?? start ?? end;
  const node = at(body, place);
  const isWithin = place.every((index, nth) => target[nth] === index);
  if (isWithin) return null;
  const parent = before || after ? target.slice(0, -1) : target;
  if (!fits(body, node, parent)) return null;
  // A mark stands for the node while it is taken away, so that places stay true.
  const mark = { source: "", mark: true };
  const marked = replaced(body, place, mark);
  const first = start && placesIn(marked, start)[0];
  const put = before ? inserted(marked, before, () => node)
    : after ? insertedAfter(marked, after, () => node)
      : first ? inserted(marked, first, () => node) : appended(marked, parent, () => node);
  const old = find(put.body, (one) => one === mark);
  const next = removed(put.body, old);
  return { body: next, place: find(next, (one) => one === node) };
}

function find(node, test, place = []) {
  if (test(node)) return place;
  for (const [index, child] of childrenOf(node).entries()) {
    const found = find(child, test, [...place, index]);
    if (found) return found;
  }
  return null;
}

const ABOVE = ["mj-section", "mj-wrapper", "mj-hero"];

// Sections stand in the body, columns in sections, contents in columns; what is not known stays beside its like.
function fits(body, node, parent) {
  const { name } = at(body, parent);
  if (ABOVE.includes(node.name)) return name === "mj-body" || (name === "mj-wrapper" && node.name === "mj-section");
  if (node.name === "mj-column" || node.name === "mj-group") return name === "mj-section" || (name === "mj-group" && node.name === "mj-column");
  if (node.name?.startsWith("mj-") && node.name !== "mj-raw") return isColumn(at(body, parent));
  return name !== "mj-section" && name !== "mj-group";
}

/** The columns of a section, as places. */
export function columnsOf(body, place) {
  return placesIn(body, place).filter((one) => at(body, one).name === "mj-column");
}

/** The tree with so many columns in a section. What stood in those that go is added to the last one that stays. */
export function withColumns(body, place, wanted, make) {
  let next = body;
  const many = Math.max(1, Math.min(MOST_COLUMNS, wanted));
  while (columnsOf(next, place).length < many) next = appended(next, place, make).body;
  while (columnsOf(next, place).length > many) {
    const columns = columnsOf(next, place);
    const [last, before] = [columns.at(-1), columns.at(-2)];
    for (const child of placesIn(next, last).map((one) => at(next, one))) next = appended(next, before, () => child).body;
    next = removed(next, last);
  }
  // Widths that were given no longer make a whole.
  for (const column of columnsOf(next, place)) {
    if (attribute(at(next, column), "width")) next = replaced(next, column, withAttribute(at(next, column), "width", undefined));
  }
  return next;
}

/** Where a new block goes if the one at a place is chosen: `{ after }` or `{ end }` of an element; null for a new section. */
export function spot(body, chosen, isWhole) {
  const node = chosen && at(body, chosen);
  if (!node || !chosen.length) return isWhole ? { end: [] } : null;
  if (isWhole) {
    // Sections do not stand in one another.
    const depth = at(body, chosen.slice(0, 1)).name === "mj-wrapper" && chosen.length > 1 ? 2 : 1;
    return { after: chosen.slice(0, depth) };
  }
  if (isColumn(node)) return { end: chosen };
  if (isColumn(at(body, chosen.slice(0, -1)))) return { after: chosen };
  const within = places(body, chosen).filter((one) => isColumn(at(body, one)));
  return within.length ? { end: within.at(-1) } : null;
}
