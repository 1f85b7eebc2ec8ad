import { delimiterOf, rowsOf, sampleOf, withColumn } from "../lib/csv.js";
import { equal } from "./check.js";

export function quotation_marks_hold_delimiters_line_ends_and_doubled_ones() {
  equal(rowsOf('a,"b, ""c""\nd",e\r\n\n1,2,3', ","), [["a", 'b, "c"\nd', "e"], ["1", "2", "3"]]);
  equal(rowsOf("", ","), []);
  equal(rowsOf("a;;b", ";"), [["a", "", "b"]]);
}

export function the_delimiter_is_found_by_names_that_are_known() {
  equal(delimiterOf("email;first_name\nann@example.com;Ann, the first"), ";");
  equal(delimiterOf("Email\tPlan"), "\t");
  equal(delimiterOf("name,plan"), ",");
}

export async function a_sample_has_a_header_rows_and_how_many_there_are() {
  const file = new File(["\ufeffemail,plan\n", ...Array.from({ length: 8 }, (_, nth) => `p${nth}@example.com,pro\n`)], "p.csv");
  const { header, rows, total } = await sampleOf(file);
  equal([header, rows.length, rows[0], total], [["email", "plan"], 5, ["p0@example.com", "pro"], 8]);
}

export async function a_column_is_added_to_every_row() {
  const file = new File(['email,note\nann@example.com,"two\nlines"\n'], "p.csv");
  const wider = await withColumn(file, ",", "list_ids", "lst_1");
  equal(rowsOf(await wider.text(), ",").map((row) => row.includes("list_ids") || row.includes("lst_1")), [true, true]);
}
