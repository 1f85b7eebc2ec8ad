import { decodeWords, headersOf, linksOf, parseMail } from "../lib/mime.js";
import { equal, holds } from "./check.js";

const MAIL = [
  "From: Ann <ann@example.com>", "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=", "X-Long: one", " two",
  'Content-Type: multipart/alternative; boundary="b"', "",
  "--b", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: quoted-printable", "", "caf=C3=A9 =", "au lait", "",
  "--b", "Content-Type: text/html", "Content-Transfer-Encoding: base64", "", btoa('<p><a href="https://example.com/">here</a></p>'), "",
  "--b--", "",
].join("\r\n");

export function the_parts_of_a_mail_are_read() {
  const { headers, html, text, attachments } = parseMail(MAIL);
  equal(text.trim(), "café au lait");
  holds(html.includes("https://example.com/"), html);
  equal(attachments, []);
  equal(headers.find(([name]) => name === "X-Long")[1], "one two");
}

export function words_of_headers_are_decoded_also_when_a_letter_is_cut() {
  equal(decodeWords("=?utf-8?q?Gr=C3=BC=C3=9Fe?="), "Grüße");
  equal(decodeWords("=?utf-8?b?w7w=?="), "ü");
  equal(decodeWords("=?utf-8?q?=C3?= =?utf-8?q?=BC?="), "ü");
  equal(decodeWords("plain =?nonsense"), "plain =?nonsense");
}

export function a_line_that_is_no_header_is_left_out() {
  equal(headersOf("A: 1\r\nnonsense\r\nB: 2"), [["A", "1"], ["B", "2"]]);
}

export function a_mail_without_an_end_or_with_parts_in_parts_without_end_is_read_all_the_same() {
  equal(parseMail("").text, "");
  const nested = Array.from({ length: 200 }, (_, nth) => `Content-Type: multipart/mixed; boundary=b${nth}\r\n\r\n--b${nth}\r\n`).join("");
  holds(parseMail(nested) !== null);
}

export function links_are_found_where_they_lead() {
  holds(linksOf('<a href="https://example.com/a">A</a><a href="mailto:x@example.com">M</a>').length >= 1);
}
