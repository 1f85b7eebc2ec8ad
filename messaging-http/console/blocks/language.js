// Texts with tags of the template language in them, and with character references: found, read and written.

const OPEN = { "{{": "}}", "{%": "%}", "{#": "#}" };
const RAW = /^\{%-?\s*raw\s*-?%\}/;
const END_RAW = /\{%-?\s*endraw\s*-?%\}/g;

/** Where the template tag that begins at `at` ends, or -1 where none begins there. One that does not end is none. */
export function tagEnd(text, at) {
  const close = OPEN[text.slice(at, at + 2)];
  if (!close) return -1;
  if (close === "#}") return endAfter(text, close, at + 2);
  let quote = "";
  for (let place = at + 2; place < text.length; place += 1) {
    const sign = text[place];
    if (quote) {
      if (sign === "\\") place += 1;
      else if (sign === quote) quote = "";
    } else if (sign === "'" || sign === '"') quote = sign;
    else if (text.startsWith(close, place)) return rawEnd(text, at, place + 2);
  }
  // A quote that nobody closes is none.
  const end = endAfter(text, close, at + 2);
  return end < 0 ? -1 : rawEnd(text, at, end);
}

function endAfter(text, close, from) {
  const found = text.indexOf(close, from);
  return found < 0 ? -1 : found + close.length;
}

// What stands between `raw` and `endraw` is no language but a text; all of it is one tag here.
function rawEnd(text, at, end) {
  if (!RAW.test(text.slice(at, end))) return end;
  END_RAW.lastIndex = end;
  return END_RAW.exec(text) ? END_RAW.lastIndex : text.length;
}

/** The pieces of a text: `{ tag: true, text }` for each tag of the template language, `{ text }` for what is between. */
export function pieces(text) {
  const found = [];
  let begun = 0;
  for (let at = text.indexOf("{"); at >= 0; at = text.indexOf("{", at)) {
    const end = tagEnd(text, at);
    if (end < 0) {
      // Of three brackets the last two may begin one.
      at += 1;
      continue;
    }
    if (at > begun) found.push({ text: text.slice(begun, at) });
    found.push({ tag: true, text: text.slice(at, end) });
    begun = end;
    at = end;
  }
  if (begun < text.length) found.push({ text: text.slice(begun) });
  return found;
}

/** Whether a tag begins in a text and does not end in it. */
export function isUnfinished(text) {
  return pieces(text).some((piece) => !piece.tag && /\{[{%#]/.test(piece.text));
}

const NAMED = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", euro: "€", hellip: "…", ndash: "–", mdash: "—", lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", middot: "·", bull: "•", times: "×", rarr: "→", larr: "←" };

/** A text of a source as people read it: known character references become what they stand for. */
export function decoded(text) {
  return outside(text, (plain) => plain.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]+));/g, (whole, decimal, hex, name) => {
    if (name) return NAMED[name] ?? whole;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code > 0x1f && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000) ? String.fromCodePoint(code) : whole;
  }));
}

/** A text of people as a source: what would be markup becomes character references, tags of the template stay. */
export function encoded(text, quote) {
  return outside(text, (plain) => {
    const safe = plain.replace(/&(?!(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]+);)/g, "&amp;")
      .replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\u00a0", "&nbsp;")
      // What begins a tag and does not end it would take along whatever follows.
      .replace(/\{(?=[{%#])/g, "&#123;");
    if (quote === '"') return safe.replaceAll('"', "&quot;");
    return quote === "'" ? safe.replaceAll("'", "&#39;") : safe;
  });
}

function outside(text, change) {
  return pieces(text).map((piece) => (piece.tag ? piece.text : change(piece.text))).join("");
}

/** A tag in few words: the name of the value, without where it stands and what is shown when there is none. */
export function briefly(tag) {
  const plain = /^\{\{-?\s*([\w.]+)\s*(?:\|\s*default\((?:"[^"]*"|'[^']*'|\d+)\)\s*)?-?\}\}$/.exec(tag);
  const text = plain ? plain[1].replace(/^contact\.attributes\./, "") : tag;
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
