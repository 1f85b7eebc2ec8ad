import { asCommand, asCurl, asJson, loggedAsCurl } from "../lib/show_as.js";
import { equal, holds } from "./check.js";

const base = new URL("../v1", document.baseURI).href;

export function a_call_is_a_command() {
  equal(asCommand({ id: "listMessages", query: { status: "bounced", limit: 5, cursor: "" } }),
    `messaging message list --status bounced --limit 5 --url ${base} --json`);
  equal(asCommand({ id: "getMessage", path: { id: "msg_1" } }), `messaging message get msg_1 --url ${base} --json`);
}

export function a_call_is_a_line_of_curl() {
  equal(asCurl({ id: "listMessages", query: { to: "a&b@example.com" } }),
    `curl -sS '${base}/messages?to=a%26b%40example.com' \\\n  -H "Authorization: Bearer $MESSAGING_API_KEY"`);
}

export function quotes_do_not_end_what_the_shell_reads() {
  const call = { id: "sendMessage", body: { subject: "It's $HOME `ls` \"here\"\nJSON\n" } };
  holds(asCurl(call).includes(`-d '{"subject":"It'\\''s $HOME \`ls\` \\"here\\"\\nJSON\\n"}'`), asCurl(call));
  // The end of the text stands on a line of its own, which JSON never has within a string.
  holds(!asCommand(call).split("\n").slice(1, -1).includes("JSON"), asCommand(call));
}

export function a_call_is_json_with_its_answer() {
  equal(JSON.parse(asJson({ id: "listLists", query: { limit: 1 }, answer: { data: [] } })).answer, { data: [] });
}

export function a_logged_request_is_a_line_of_curl() {
  equal(loggedAsCurl({ method: "POST", path: "/messages", request: { to: "ann" }, idempotency_key: "order 1" }),
    `curl -sS -X POST ${base}/messages \\\n  -H "Authorization: Bearer $MESSAGING_API_KEY" \\\n  -H 'Idempotency-Key: order 1' \\\n  -H 'Content-Type: application/json' \\\n  -d '{"to":"ann"}'`);
  equal(loggedAsCurl({ method: "GET", path: "/messages", request: null, idempotency_key: null }),
    `curl -sS ${base}/messages \\\n  -H "Authorization: Bearer $MESSAGING_API_KEY"`);
}
