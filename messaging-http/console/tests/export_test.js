import { cell, Csv, fileName } from "../lib/export.js";
import { rowsOf } from "../lib/csv.js";
import { equal } from "./check.js";

export function formulas_are_disarmed_and_numbers_are_not() {
  for (const [text, expected] of [
    ["=1+1", "'=1+1"], ["@a", "'@a"], ["+1 or more", "'+1 or more"], ["-1", "-1"], ["-", "'-"], ["+491701234567", "+491701234567"],
    ["a=b", "a=b"], ["", ""], ["\tx", "'\tx"], ["=a,b", "\"'=a,b\""],
  ]) equal(cell(text), expected);
}

export function cells_are_quoted_where_they_must_be() {
  for (const [text, expected] of [["plain", "plain"], ["a,b", '"a,b"'], ['say "hi"', '"say ""hi"""'], ["two\nlines", '"two\nlines"'], [" a", '" a"']]) {
    equal(cell(text), expected);
  }
}

export function rows_have_a_column_for_each_member_that_any_of_them_has() {
  const csv = new Csv();
  csv.add([{ id: "con_1", tags: ["a", "b"], consent: { sms: null }, attributes: { plan: "pro" } }]);
  csv.add([{ id: "con_2", tags: [], attributes: { age: 31, note: 'x "y"\nz' }, warnings: [{ code: "c" }] }, {}]);
  const text = csv.parts().join("");
  equal(text.startsWith("\ufeff"), true);
  equal(rowsOf(text.slice(1), ","), [
    ["id", "tags", "consent.sms", "attributes.plan", "attributes.age", "attributes.note", "warnings"],
    ["con_1", "a;b", "", "pro", "", "", ""],
    ["con_2", "", "", "", "31", 'x "y"\nz', '[{"code":"c"}]'],
    ["", "", "", "", "", "", ""],
  ]);
}

export function there_is_a_bound_of_columns() {
  const csv = new Csv();
  csv.add([Object.fromEntries(Array.from({ length: 1200 }, (_, nth) => [`a${nth}`, nth]))]);
  const [header, line] = csv.parts();
  equal([header.split(",").length, line.split(",").length], [1000, 1000]);
}

export function a_file_is_called_as_what_is_listed() {
  equal(fileName("listSendingDomains").replace(/\d{4}-\d\d-\d\d/, "DAY"), "sending-domains-DAY.csv");
  equal(fileName("listMessages").replace(/\d{4}-\d\d-\d\d/, "DAY"), "messages-DAY.csv");
}
