// Ten calls through a client made from the document by openapi-typescript; the compiler checks bodies and answers.
import createClient from "openapi-fetch";
import type { paths } from "./schema";

const { MESSAGING_URL: baseUrl, MESSAGING_API_KEY: key, MESSAGING_WORKSPACE: workspace_id } = process.env as Record<string, string>;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
const path = { workspace_id };

function got<T>(what: string, answer: { data?: T; error?: unknown }): T {
  if (answer.error !== undefined || answer.data === undefined) {
    throw new Error(`${what}: ${JSON.stringify(answer.error)}`);
  }
  return answer.data;
}

const list = got("create a list", await client.POST("/workspaces/{workspace_id}/lists", { params: { path }, body: { name: "News" } }));
const contact = got(
  "upsert a contact",
  await client.POST("/workspaces/{workspace_id}/contacts", {
    params: { path },
    body: { email: "ts@example.com", attributes: { plan: "pro" }, list_ids: [list.id], consent: { marketing_email: true } },
  }),
);
const template = got(
  "create a template",
  await client.POST("/workspaces/{workspace_id}/templates", {
    params: { path },
    body: { name: "Order", channel: "email", subject: "Order {{ order.id }}", text: "Thanks" },
  }),
);
const sent = got(
  "send",
  await client.POST("/messages", {
    body: { channel: "email", contact_id: contact.id, template_id: template.id, variables: { order: { id: 17 } } },
    params: { header: { "Idempotency-Key": "order-17" } },
  }),
);
const message = got("read it", await client.GET("/messages/{id}", { params: { path: { id: sent.message_id } } }));
if (message.contact_id !== contact.id) throw new Error("the message is somebody else's");
const page = got("list messages", await client.GET("/messages", { params: { query: { channel: "email", limit: 1 } } }));
if (page.data[0]?.message_id !== sent.message_id) throw new Error("the newest message is not first");
got("an event", await client.POST("/events", { body: { name: "order_placed", contact: { email: "ts@example.com" } } }));
const segment = got(
  "create a segment",
  await client.POST("/workspaces/{workspace_id}/segments", {
    params: { path },
    body: { name: "Buyers", filter: { type: "event", name: "order_placed" } },
  }),
);
got("read it", await client.GET("/workspaces/{workspace_id}/segments/{id}", { params: { path: { ...path, id: segment.id } } }));
got("suppress", await client.POST("/workspaces/{workspace_id}/suppressions", {
  params: { path },
  body: { channel: "email", address: "gone@example.com", reason: "manual" },
}));
const refused = await client.POST("/messages", { body: { channel: "email" } });
if (refused.response.status !== 422) throw new Error(`a message without a recipient: ${refused.response.status}`);
