// Reading the first rows of a CSV file in the browser, by the rules that the server reads it with.

import { CONTACT_FIELDS } from "./contact_fields.js";

const SAMPLE_BYTES = 262144;
const DELIMITERS = [",", ";", "\t"];

/** The rows of a text: arrays of cells. Quotation marks may hold delimiters, line ends and doubled quotation marks. */
export function rowsOf(text, delimiter) {
  const rows = [];
  let row = [];
  let cell = "";
  let isQuoted = false;
  const endRow = () => {
    row.push(cell);
    // An empty line is no row.
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
    cell = "";
  };
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (isQuoted) {
      if (letter !== '"') cell += letter;
      else if (text[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else isQuoted = false;
    } else if (letter === '"' && cell === "") isQuoted = true;
    else if (letter === delimiter) {
      row.push(cell);
      cell = "";
    } else if (letter === "\n" || letter === "\r") endRow();
    else cell += letter;
  }
  if (cell !== "" || row.length) endRow();
  return rows;
}

/** What columns can be: the names that the server knows in a header by itself. */
export const TARGETS = [
  ...CONTACT_FIELDS, ["tags", "Tags"], ["list_ids", "Lists, by id"],
  ["consent.marketing_email", "Consent to email marketing"], ["consent.sms", "Consent to SMS marketing"],
];

/** The delimiter that makes the most of the header: known names first, then columns. */
export function delimiterOf(text) {
  const merit = (delimiter) => {
    const cells = rowsOf(text.slice(0, 65536), delimiter)[0] ?? [];
    const known = cells.filter((cell) => TARGETS.some(([name]) => name === cell.trim().toLowerCase())).length;
    return known * 100000 + cells.length;
  };
  return DELIMITERS.reduce((best, one) => (merit(one) > merit(best) ? one : best));
}

/**
 * The header and the first rows of a file: `{ header, rows, total, delimiter }`; `total` is how many rows there are when the whole
 * file was looked at, else null. Throws when it is no text in UTF-8.
 */
export async function sampleOf(file, wanted = 5) {
  const isWhole = file.size <= SAMPLE_BYTES;
  const bytes = await file.slice(0, SAMPLE_BYTES).arrayBuffer();
  // The end of a part may cut a letter in two, which is no fault; the decoder drops a byte order mark.
  const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !isWhole });
  const delimiter = delimiterOf(text);
  const rows = rowsOf(text, delimiter);
  const [header = [], ...rest] = rows;
  const whole = isWhole ? rest : rest.slice(0, -1);
  return { header: header.map((name) => name.trim()), rows: whole.slice(0, wanted), total: isWhole ? rest.length : null, delimiter };
}

const PART = 4 << 20;

/**
 * A file with one more column, the first, that has the same value in every row. It stands in front since rows may be
 * shorter than the header.
 */
export async function withColumn(file, delimiter, name, value) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const found = [];
  let cell = `${name}${delimiter}`;
  let isRowStart = true;
  let isCellStart = true;
  let isQuoted = false;
  let wasQuoted = false;
  for (let at = 0; at < file.size; at += PART) {
    const text = decoder.decode(await file.slice(at, at + PART).arrayBuffer(), { stream: at + PART < file.size });
    let from = 0;
    for (let nth = 0; nth < text.length; nth += 1) {
      const letter = text[nth];
      const isLineEnd = !isQuoted && (letter === "\n" || letter === "\r");
      if (isRowStart && !isLineEnd) {
        found.push(text.slice(from, nth), cell);
        from = nth;
        cell = `${value}${delimiter}`;
      }
      const closes = isQuoted && letter === '"';
      // A quotation mark opens at the beginning of a cell, or right after one: then it was a doubled one.
      if (letter === '"') isQuoted = !isQuoted && (isCellStart || wasQuoted);
      wasQuoted = closes;
      isRowStart = isLineEnd;
      isCellStart = isLineEnd || (!isQuoted && letter === delimiter);
    }
    found.push(text.slice(from));
  }
  return new Blob(found, { type: "text/csv" });
}
