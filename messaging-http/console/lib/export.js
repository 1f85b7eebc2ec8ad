// What a listing holds as a CSV file (RFC 4180), read page by page.
import { call } from "./api.js";
import { walk } from "./work.js";

/** Rows of a file; the command `messaging export` writes longer ones. */
export const MOST_ROWS = 100000;

/** Columns of a file: people's attributes may have any names. */
const MOST_COLUMNS = 1000;

const PAGE = 200;

/** Offers a file. */
export function download(name, parts, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([parts].flat(), { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The members of a row by their dotted names; lists of plain values as an import reads them.
function flat(value, name = "", found = []) {
  const isObject = value !== null && typeof value === "object";
  if (isObject && !Array.isArray(value)) {
    for (const [member, inner] of Object.entries(value)) flat(inner, name ? `${name}.${member}` : member, found);
  } else if (isObject) {
    const isPlain = value.every((item) => item === null || typeof item !== "object");
    found.push([name, isPlain ? value.join(";") : JSON.stringify(value)]);
  } else found.push([name, value === null || value === undefined ? "" : String(value)]);
  return found;
}

/** A value as a cell. What a spreadsheet would take for a formula gets an apostrophe in front; numbers, those of phones too, are none. */
export function cell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^[+-][\d.]+$/.test(text) ? `'${text}` : text;
  return /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A file that grows row by row: a column for each member that a row has, in the order in which they come. */
export class Csv {
  #columns = new Map();
  #lines = [];

  add(rows) {
    for (const row of rows) {
      const cells = [];
      for (const [name, text] of flat(row)) {
        if (!this.#columns.has(name) && this.#columns.size < MOST_COLUMNS) this.#columns.set(name, this.#columns.size);
        if (this.#columns.has(name)) cells[this.#columns.get(name)] = cell(text);
      }
      // `join` leaves the cells empty that the row does not have.
      this.#lines.push([cells.join(","), cells.length]);
    }
  }

  /** The parts of the file. A byte order mark tells spreadsheets that it is UTF-8. */
  parts() {
    const header = [...this.#columns.keys()].map(cell).join(",");
    const width = this.#columns.size;
    return [`\ufeff${header}\r\n`, ...this.#lines.map(([line, length]) => `${line}${",".repeat(width - Math.max(1, length))}\r\n`)];
  }
}

/** The name of the file of what an operation lists: `sending-domains-2026-01-31.csv`. */
export function fileName(id) {
  const what = id.replace(/^list/, "").replace(/(?<=.)[A-Z]/g, "-$&").toLowerCase();
  return `${what}-${new Date().toISOString().slice(0, 10)}.csv`;
}

/** Reads all that `id` lists, at most `most` rows, `hear(rows)` page by page; answers whether there are more. */
export function readAll(id, args, options) {
  const ask = (cursor) => call(id, { ...args, query: { ...args.query, limit: PAGE, cursor }, signal: options.signal, quiet: Boolean(cursor) });
  return walk(ask, options);
}

/** Offers rows as a file. */
export function offer(id, csv) {
  download(fileName(id), csv.parts(), "text/csv;charset=utf-8");
}
