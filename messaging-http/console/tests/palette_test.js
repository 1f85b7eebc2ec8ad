import { matches } from "../lib/palette.js";
import { equal, holds } from "./check.js";

const NAMED = [{ text: "Order confirmation", note: "template", path: "templates/tpl_1" }];

export function an_id_leads_to_its_page() {
  equal(matches("msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", [])[0].path, "messages/msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
}

export function an_address_leads_to_its_messages_and_its_contact() {
  equal(matches(" Ann@example.com ", []).slice(0, 2).map(({ path }) => path), ["messages?to=ann%40example.com", "contacts?email=ann%40example.com"]);
}

export function names_are_found_by_any_part_and_beginnings_come_first() {
  equal(matches("confirm", NAMED).map(({ path }) => path), ["templates/tpl_1"]);
  const first = matches("order", [{ text: "Reorder", note: "", path: "x" }, ...NAMED])[0];
  equal(first.path, "templates/tpl_1");
}

export function who_is_not_signed_in_is_offered_nothing_that_needs_a_right() {
  holds(matches("", []).every(({ path }) => !["messages", "keys"].includes(path)), "offers what may not be seen");
}
