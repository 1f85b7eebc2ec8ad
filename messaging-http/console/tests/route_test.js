import { href, parse } from "../lib/route.js";
import { equal } from "./check.js";

export function a_route_has_segments_and_a_query() {
  equal(parse("#/messages/msg_1?tab=content&x=a%26b"), { segments: ["messages", "msg_1"], query: { tab: "content", x: "a&b" } });
  equal(parse(""), { segments: [], query: {} });
  equal(parse("#/"), { segments: [], query: {} });
}

export function what_is_no_text_in_utf_8_stays_as_it_is() {
  equal(parse("#/contacts/%E0%A4%A"), { segments: ["contacts", "%E0%A4%A"], query: {} });
}

export function a_question_mark_in_the_query_is_kept() {
  equal(parse(href("messages", { to: "a?b@example.com" })).query, { to: "a?b@example.com" });
}

export function members_without_a_value_are_left_out() {
  equal(href("messages", { status: "bounced", to: "", tag: null, cursor: undefined }), "#/messages?status=bounced");
  equal(href("messages", { offset: 0 }), "#/messages?offset=0");
  equal(href("messages"), "#/messages");
}
