// Reads the source of a mail: its headers, its HTML and text, pictures for `cid:` links, and what is attached.

/**
 * The parts of a mail's source: `{ headers: [[name, value]], html, text, inline: { cid: "data:…" }, attachments:
 * [{ filename, type, size, cid }] }`. What cannot be read is left out; nothing is thrown.
 */
export function parseMail(source) {
  const top = entity(source);
  const found = { headers: top.headers, html: null, text: null, inline: {}, attachments: [] };
  collect(top, found, 0);
  return found;
}

const DEEPEST = 20;

function collect(part, found, depth) {
  if (part.type.startsWith("multipart/") && depth < DEEPEST) {
    for (const source of split(part.body, part.parameters.boundary ?? "")) collect(entity(source), found, depth + 1);
    return;
  }
  const isAttached = part.disposition === "attachment" || part.filename;
  if (!isAttached && part.type === "text/html" && found.html === null) found.html = text(part);
  else if (!isAttached && part.type === "text/plain" && found.text === null) found.text = text(part);
  else {
    const octets = bytes(part);
    if (part.cid && /^image\/[\w.+-]+$/.test(part.type)) found.inline[part.cid] = `data:${part.type};base64,${base64(octets)}`;
    found.attachments.push({ filename: part.filename ?? null, type: part.type, size: octets.length, cid: part.cid });
  }
}

// A part: its headers and what follows the first empty line.
function entity(source) {
  const [, head, body] = /^([\s\S]*?)(?:\r?\n\r?\n|$)([\s\S]*)$/.exec(source);
  const headers = headersOf(head);
  const value = (name) => headers.find(([known]) => known.toLowerCase() === name)?.[1] ?? "";
  const type = parameters(value("content-type") || "text/plain");
  const disposition = parameters(value("content-disposition"));
  return {
    headers, body,
    type: type.value || "text/plain",
    parameters: type.parameters,
    disposition: disposition.value,
    filename: decodeWords(disposition.parameters.filename ?? type.parameters.name ?? "") || null,
    cid: value("content-id").trim().replace(/^<|>$/g, "") || null,
    encoding: value("content-transfer-encoding").trim().toLowerCase(),
  };
}

/** The headers of a head: `[[name, value]]`, unfolded, not decoded. */
export function headersOf(head) {
  return head.replace(/\r?\n(?=[ \t])/g, "").split(/\r?\n/).map((line) => /^([^:\s]+):[ \t]?(.*)$/.exec(line))
    .filter(Boolean).map(([, name, value]) => [name, value.replace(/\t/g, " ").trim()]);
}

// `text/html; charset="utf-8"` with its parameters, also those of RFC 2231: `filename*0*=utf-8''…`.
function parameters(value) {
  const [first = "", ...rest] = value.match(/(?:[^;"]|"(?:\\.|[^"\\])*")+/g) ?? [];
  const found = {};
  const pieces = {};
  for (const one of rest) {
    const [, name, star, encoded, given] = /^\s*([^=*\s]+)(?:\*(\d+))?(\*)?\s*=\s*([\s\S]*?)\s*$/.exec(one) ?? [];
    if (!name) continue;
    const plain = given.startsWith('"') ? given.slice(1, -1).replace(/\\(.)/g, "$1") : given;
    if (!star && !encoded) found[name.toLowerCase()] = plain;
    else (pieces[name.toLowerCase()] ??= []).push({ at: Number(star ?? 0), encoded: Boolean(encoded), text: plain });
  }
  for (const [name, parts] of Object.entries(pieces)) {
    parts.sort((one, other) => one.at - other.at);
    const [, charset, coded] = /^([^']*)'[^']*'([\s\S]*)$/.exec(parts[0].text) ?? [null, "utf-8", parts[0].text];
    const octets = parts.flatMap(({ encoded, text: piece }, at) => {
      const here = at === 0 && parts[0].encoded ? coded : piece;
      return encoded ? percent(here) : [...new TextEncoder().encode(here)];
    });
    found[name] = decode(new Uint8Array(octets), charset);
  }
  return { value: first.trim().toLowerCase(), parameters: found };
}

function percent(text) {
  const octets = [];
  for (const [whole, code] of text.matchAll(/%([0-9a-f]{2})|[\s\S]/gi)) {
    if (code) octets.push(parseInt(code, 16));
    else octets.push(...new TextEncoder().encode(whole));
  }
  return octets;
}

function split(body, boundary) {
  if (!boundary) return [];
  const lines = body.split(/\r?\n/);
  const parts = [];
  let current = null;
  for (const line of lines) {
    const trimmed = line.trimEnd();
    if (trimmed === `--${boundary}` || trimmed === `--${boundary}--`) {
      if (current) parts.push(current.join("\n"));
      current = trimmed.endsWith(`${boundary}--`) ? null : [];
      if (!current) break;
    } else {
      current?.push(line);
    }
  }
  if (current) parts.push(current.join("\n"));
  return parts;
}

// ---- what is encoded ----

function bytes(part) {
  if (part.encoding === "base64") return fromBase64(part.body);
  if (part.encoding === "quoted-printable") return quoted(part.body);
  return new TextEncoder().encode(part.body);
}

function text(part) {
  const isCoded = ["base64", "quoted-printable"].includes(part.encoding);
  // The source was read as UTF-8 already; only what was encoded still has its own character set.
  return isCoded ? decode(bytes(part), part.parameters.charset) : part.body;
}

function decode(octets, charset = "utf-8") {
  try { return new TextDecoder(charset || "utf-8").decode(octets); } catch { return new TextDecoder().decode(octets); }
}

function fromBase64(coded) {
  try { return Uint8Array.from(atob(coded.replace(/[^A-Za-z0-9+/=]/g, "")), (one) => one.charCodeAt(0)); } catch { return new Uint8Array(); }
}

function base64(octets) {
  let binary = "";
  for (let at = 0; at < octets.length; at += 0x8000) binary += String.fromCharCode(...octets.subarray(at, at + 0x8000));
  return btoa(binary);
}

function quoted(coded) {
  const octets = [];
  for (const [whole, code] of coded.replace(/=[ \t]*\r?\n/g, "").matchAll(/=([0-9a-f]{2})|[\s\S]/gi)) {
    if (code) octets.push(parseInt(code, 16));
    else octets.push(...new TextEncoder().encode(whole));
  }
  return new Uint8Array(octets);
}

/** A header's value with its encoded words (RFC 2047) decoded. */
export function decodeWords(value) {
  return value.replace(/(=\?[^?\s]+\?[bq]\?[^?\s]*\?=)\s+(?==\?)/gi, "$1").replace(/(?:=\?[^?\s]+\?[bq]\?[^?\s]*\?=)+/gi, (run) => {
    // A character may be cut between two words of the same set, so octets are joined before they are read.
    const words = [...run.matchAll(/=\?([^?*\s]+)(?:\*[^?]*)?\?([bq])\?([^?\s]*)\?=/gi)];
    const octets = words.flatMap(([, , kind, coded]) => [...(kind.toLowerCase() === "b" ? fromBase64(coded) : quoted(coded.replaceAll("_", " ")))]);
    return words.length ? decode(new Uint8Array(octets), words[0][1]) : run;
  });
}

// ---- links ----

// Pages under our policy may not parse HTML into elements, so links are read from its text.
const TAG = /<!--[\s\S]*?-->|<(style|script)\b[\s\S]*?<\/\1\s*>|<(\/?)([a-zA-Z][\w:-]*)((?:"[^"]*"|'[^']*'|[^>"'])*)>/gi;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " };

/** The links of an HTML text: `[{ url, text }]`, in their order. */
export function linksOf(html) {
  const found = [];
  let open = null;
  let end = 0;
  const source = html ?? "";
  for (const match of source.matchAll(TAG)) {
    const [whole, , close, tag = "", attributes = ""] = match;
    if (open) open.text += source.slice(end, match.index);
    end = match.index + whole.length;
    const name = tag.toLowerCase();
    if (name === "a" && close) open = null;
    else if ((name === "a" || name === "area") && attribute(attributes, "href") !== null) {
      const link = { url: attribute(attributes, "href").trim(), text: attribute(attributes, "alt") ?? "" };
      found.push(link);
      open = name === "a" ? link : null;
    } else if (name === "img" && open) open.text += ` ${attribute(attributes, "alt") ?? ""} `;
  }
  return found.map(({ url, text: said }) => ({ url, text: unescaped(said).trim().replace(/\s+/g, " ") }));
}

function attribute(attributes, name) {
  const [, double, single, bare] = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`, "i").exec(attributes) ?? [];
  const value = double ?? single ?? bare;
  return value === undefined ? null : unescaped(value);
}

function unescaped(text) {
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name) return ENTITIES[name.toLowerCase()] ?? whole;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
