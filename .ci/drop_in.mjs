// Sends with the libraries of npm; drop_in.py starts it and looks at what the sandbox captured. Prints what was sent as
// JSON: a list of [library, message, recipient].
import { strict as assert } from "node:assert";
import grid from "@sendgrid/mail";
import { Resend } from "resend";

const { ROOT, KEY, FROM } = process.env;
const sent = [];

const resend = new Resend(KEY);
const email = {
  from: `Acme <${FROM}>`,
  to: "ann@example.com",
  replyTo: "help@example.com",
  subject: "Node",
  html: '<img src="cid:logo">',
  text: "Hello",
  tags: [{ name: "kind", value: "order" }],
  attachments: [
    { filename: "a.txt", content: Buffer.from("file") },
    { filename: "l.png", content: Buffer.from("png").toString("base64"), contentType: "image/png", contentId: "logo" },
  ],
};
const first = await resend.emails.send(email, { idempotencyKey: "node-1" });
assert.equal(first.error, null);
const again = await resend.emails.send(email, { idempotencyKey: "node-1" });
assert.equal(again.data.id, first.data.id);
sent.push(["resend of npm", first.data.id, "ann@example.com"]);
const batch = await resend.batch.send([
  { ...email, to: "bob@example.com" },
  { ...email, to: "cid@example.com" },
]);
assert.equal(batch.error, null);
sent.push(["resend of npm, batch", batch.data.data[0].id, "bob@example.com"]);
sent.push(["resend of npm, batch", batch.data.data[1].id, "cid@example.com"]);
const refused = await resend.emails.send({ ...email, to: "nobody" });
assert.equal(refused.data, null);
assert.equal(refused.error.statusCode, 422);
assert.equal(refused.error.name, "validation_error");
assert.match(refused.error.message, /`to`/);
const stranger = await new Resend("mk_live_nobody").emails.send(email);
assert.equal(stranger.error.name, "invalid_api_key");

grid.setApiKey(KEY);
grid.client.setDefaultRequest("baseUrl", ROOT);
const message = {
  from: { email: FROM, name: "Acme" },
  to: { email: "dan@example.com", name: "Dan" },
  subject: "Node",
  text: "Hello",
  html: '<img src="cid:logo">',
  categories: ["order"],
  customArgs: { order: "17" },
  attachments: [
    { filename: "a.txt", content: Buffer.from("file").toString("base64"), type: "text/plain", disposition: "attachment" },
    { filename: "l.png", content: Buffer.from("png").toString("base64"), type: "image/png", disposition: "inline", content_id: "logo" },
  ],
};
const [answer] = await grid.send(message);
assert.equal(answer.statusCode, 202);
sent.push(["@sendgrid/mail of npm", answer.headers["x-message-id"], "dan@example.com"]);
// The library notes in what it is given whether it was for several.
const [several] = await grid.sendMultiple({ ...message, isMultiple: undefined, to: ["eve@example.com", "fay@example.com"] });
const ids = several.headers["x-message-id"].split(", ");
sent.push(["@sendgrid/mail of npm, several", ids[0], "eve@example.com"]);
sent.push(["@sendgrid/mail of npm, several", ids[1], "fay@example.com"]);
await assert.rejects(grid.send({ ...message, to: "nobody" }), (error) => {
  assert.equal(error.code, 400);
  assert.equal(error.response.body.errors[0].field, "personalizations.0.to.0.email");
  return true;
});
console.log(JSON.stringify(sent));
