// Filters of segments as a tree of rows, and back. A row keeps the condition in the API's own form, so that what the
// rows cannot show survives.
import { dayOf } from "./ui.js";

let made = 0;
const fresh = () => { made += 1; return `row-${made}`; };

/** How the parts of a group are joined. */
export const MODES = [["all", "all of these"], ["any", "any of these"], ["none", "none of these"], ["not_all", "not all of these"]];

/** A row for one condition. */
export function leaf(condition) {
  return { id: fresh(), condition };
}

/** A group of rows. */
export function group(mode, items = []) {
  return { id: fresh(), mode, items };
}

/** A filter as a tree; its root is always a group. */
export function treeOf(filter) {
  if (!filter || !Object.keys(filter).length) return group("all");
  const node = nodeOf(filter);
  return node.items ? node : group("all", [node]);
}

function nodeOf(filter) {
  if (Array.isArray(filter?.and)) return group("all", filter.and.map(nodeOf));
  if (Array.isArray(filter?.or)) return group("any", filter.or.map(nodeOf));
  if (filter?.not !== undefined) {
    const inner = nodeOf(filter.not);
    if (inner.mode === "any") return { ...inner, mode: "none" };
    if (inner.mode === "all") return { ...inner, mode: "not_all" };
    return group("none", [inner]);
  }
  return leaf(filter ?? {});
}

/**
 * A tree as a filter, and where its rows stand in it: `{ filter, places: [[pointer, row id]] }`. Rows whose ids are in
 * `without` are left out, with the groups that they leave empty.
 */
export function filterOf(tree, without = new Set()) {
  const places = [];
  const filter = written(tree, "/filter", places, without, true);
  return { filter: filter ?? {}, places };
}

// Whether something remains of a row.
const remains = (row, without) => !without.has(row.id) && (!row.items || row.items.length === 0 || row.items.some((item) => remains(item, without)));

function written(row, pointer, places, without, isRoot = false) {
  places.push([pointer, row.id]);
  if (!row.items) return row.condition;
  const items = row.items.filter((item) => remains(item, without));
  // Nothing in the root means everybody; the server says what it thinks of other empty groups.
  if (isRoot && !items.length) return {};
  const list = (word, at) => ({ [word]: items.map((item, nth) => written(item, `${at}/${word}/${nth}`, places, without)) });
  switch (row.mode) {
    case "any": return list("or", pointer);
    case "none":
      return { not: items.length === 1 ? written(items[0], `${pointer}/not`, places, without) : list("or", `${pointer}/not`) };
    case "not_all": return { not: list("and", `${pointer}/not`) };
    default: return list("and", pointer);
  }
}

/** The row that a pointer is about: the one that stands nearest above it. */
export function rowAt(places, pointer) {
  const fitting = places.filter(([place]) => pointer === place || pointer.startsWith(`${place}/`));
  return fitting.sort(([one], [other]) => other.length - one.length)[0]?.[1];
}

/** The tree with one row changed by `change(row)`, which answers what stands there instead; null takes it out. */
export function withRow(tree, id, change) {
  if (tree.id === id) return change(tree);
  if (!tree.items) return tree;
  return { ...tree, items: tree.items.map((item) => withRow(item, id, change)).filter(Boolean) };
}

/** How many conditions a tree has. */
export function leavesOf(tree) {
  return tree.items ? tree.items.reduce((sum, item) => sum + leavesOf(item), 0) : 1;
}

// ---- kinds of conditions ----

/** What a condition can be about, and how a new one of it begins. */
export const TYPES = [
  ["attribute", "Attribute", { type: "attribute", key: "", op: "eq", value: "" }],
  ["event", "Product event", { type: "event", name: "" }],
  ["message", "Message", { type: "message", event: "open" }],
  ["list", "List", { type: "list", op: "member", id: "" }],
  ["segment", "Segment", { type: "segment", op: "member", id: "" }],
  ["tag", "Tag", { type: "tag", op: "has_any", values: [] }],
  ["contact", "Contact field", { type: "contact", field: "email", op: "exists" }],
  ["consent", "Consent", { type: "consent", channel: "marketing_email", value: true }],
  ["suppression", "Suppression", { type: "suppression", channel: "email", value: false }],
];

/** A new condition of a type. */
export function begun(type) {
  const [, , condition] = TYPES.find(([name]) => name === type);
  return structuredClone(condition);
}

const ANY = [["exists", "is set"], ["not_exists", "is not set"]];

/** What can be asked of values of a kind: `[op, words, what the value is]`. */
export const OPS = {
  string: [
    ["eq", "is", "text"], ["neq", "is not", "text"], ["in", "is one of", "texts"], ["not_in", "is none of", "texts"],
    ["contains", "contains", "text"], ["not_contains", "does not contain", "text"],
    ["starts_with", "begins with", "text"], ["ends_with", "ends with", "text"], ...ANY,
  ],
  number: [
    ["eq", "is", "number"], ["neq", "is not", "number"], ["gt", "is more than", "number"], ["gte", "is at least", "number"],
    ["lt", "is less than", "number"], ["lte", "is at most", "number"], ["between", "is between", "numbers"], ...ANY,
  ],
  boolean: [["eq", "is", "boolean"], ["neq", "is not", "boolean"], ...ANY],
  date: [
    ["last", "is within the last", "duration"], ["next", "is within the next", "duration"], ["older_than", "is longer ago than", "duration"],
    ["on", "is on", "date"], ["before", "is before", "date"], ["after", "is after", "date"], ["between", "is between", "dates"],
    ["anniversary", "has its yearly day", "offset"], ...ANY,
  ],
  array: [["contains", "contains", "text"], ["not_contains", "does not contain", "text"], ...ANY],
};

export const KINDS = [["string", "Text"], ["number", "Number"], ["boolean", "Yes or no"], ["date", "Date"], ["array", "List"]];

const ONLY_DATES = ["on", "before", "after", "last", "next", "older_than", "anniversary"];
const DECLARED = { string: "string", number: "number", boolean: "boolean", date: "date", datetime: "date", string_array: "array" };

/** The kind that a test asks for: a declared field's, else what its operator and value tell. */
export function kindOf({ op, value }, declared) {
  if (DECLARED[declared]) return DECLARED[declared];
  if (ONLY_DATES.includes(op)) return "date";
  if (op === "between") return typeof value?.[0] === "string" ? "date" : "number";
  if (["gt", "gte", "lt", "lte"].includes(op)) return "number";
  const one = Array.isArray(value) ? value[0] : value;
  if (typeof one === "number") return "number";
  return typeof one === "boolean" ? "boolean" : "string";
}

const kindOfValue = (value) => ({ number: "number", boolean: "boolean" }[typeof value] ?? (Array.isArray(value) ? "string_array" : undefined));

/** Fields by what contacts hold: `[{ key, type }]`; texts may be dates and are left open. */
export function fieldsOf(contacts) {
  const found = new Map();
  for (const { attributes = {} } of contacts) {
    for (const [key, value] of Object.entries(attributes)) if (value !== null) found.set(key, { key, type: kindOfValue(value) });
  }
  return [...found.values()];
}

/** A test of another attribute: what was asked stays where values of the new one are of the same kind. */
export function withKey(test, key, before, after) {
  if (!after || kindOf(test, before) === kindOf(test, after)) return { ...test, key };
  const kind = kindOf(test, after);
  const [op] = OPS[kind][0];
  return { type: test.type, key, op, value: emptyValue(kind, op) };
}

/** What a test's value is at the beginning, for an operator of a kind. */
export function emptyValue(kind, op) {
  const shape = OPS[kind].find(([name]) => name === op)?.[2];
  return {
    text: "", texts: [], number: undefined, numbers: [0, 100], boolean: true, date: today(), dates: [today(-30), today()],
    duration: { value: 30, unit: "days" }, offset: { offset_days: 0 },
  }[shape];
}

function today(days = 0) {
  return dayOf(Date.now(), days);
}

/** A test with another operator; its value is kept where it still fits. */
export function withOp(test, kind, op) {
  const shapeOf = (name) => OPS[kind].find(([one]) => one === name)?.[2];
  const { value, ...rest } = test;
  if (!shapeOf(op)) return { ...rest, op };
  if (value !== undefined && shapeOf(op) === shapeOf(test.op)) return { ...rest, op, value };
  if (shapeOf(op) === "texts" && typeof value === "string" && value) return { ...rest, op, value: [value] };
  if (shapeOf(op) === "text" && typeof value?.[0] === "string") return { ...rest, op, value: Array.isArray(value) ? value[0] : value };
  return { ...rest, op, value: emptyValue(kind, op) };
}

/** Three segments to begin with. */
export const EXAMPLES = [
  {
    name: "Active in the last 30 days", text: "Opened or clicked a message, or did something in your product.",
    filter: { or: [
      { type: "message", event: "open", within: { last: { value: 30, unit: "days" } } },
      { type: "message", event: "click", within: { last: { value: 30, unit: "days" } } },
      { type: "event", name: "signed_in", within: { last: { value: 30, unit: "days" } } },
    ] },
  },
  {
    name: "Good customers", text: "Ordered twice or more for over 50 in the last 90 days.",
    filter: { and: [
      { type: "event", name: "order_placed", count: { op: "gte", value: 2 }, within: { last: { value: 90, unit: "days" } }, where: [{ property: "total", op: "gt", value: 50 }] },
      { type: "consent", channel: "marketing_email", value: true },
    ] },
  },
  {
    name: "Gone quiet", text: "Agreed to marketing, was sent something, and opened nothing for six months.",
    filter: { and: [
      { type: "consent", channel: "marketing_email", value: true },
      { type: "message", event: "delivered", within: { last: { value: 6, unit: "months" } } },
      { not: { or: [
        { type: "message", event: "open", within: { last: { value: 6, unit: "months" } } },
        { type: "message", event: "click", within: { last: { value: 6, unit: "months" } } },
      ] } },
    ] },
  },
];
