import { isSame, LONGEST_NAME, MOST_VIEWS, viewsOf } from "../lib/views.js";
import { equal } from "./check.js";

const view = (name) => ({ name, filters: { status: "bounced" } });

export function what_was_stored_is_found() {
  const views = [view("Bounces"), { name: "Ann", filters: { to: "ann@example.com", since: "2026-01-31" } }];
  equal(viewsOf(JSON.stringify(views)), views);
}

export function what_is_no_list_of_views_is_ignored() {
  for (const text of [null, "", "{", "null", "7", "{}", "\"views\"", "[1, null, [], {}]"]) equal(viewsOf(text), []);
}

export function a_damaged_view_is_left_out_and_the_others_stay() {
  const damaged = [
    view(""), view(7), view(" Bounces"), view("x".repeat(LONGEST_NAME + 1)),
    { name: "None" }, { name: "Empty", filters: {} }, { name: "List", filters: [1] }, { name: "Number", filters: { status: 1 } },
    { name: "Text", filters: "status" }, { name: "Nothing", filters: { status: "" } },
  ];
  equal(viewsOf(JSON.stringify([...damaged, view("Bounces"), view("Bounces")])), [view("Bounces")]);
}

export function more_views_than_a_list_may_have_are_cut() {
  const many = Array.from({ length: MOST_VIEWS + 3 }, (_, at) => view(`View ${at}`));
  equal(viewsOf(JSON.stringify(many)).length, MOST_VIEWS);
}

export function filters_are_the_same_in_any_order() {
  equal(isSame({ a: "1", b: "2" }, { b: "2", a: "1" }), true);
  equal(isSame({ a: "1" }, { a: "1", b: "2" }), false);
  equal(isSame({ a: "1" }, { a: "2" }), false);
}
