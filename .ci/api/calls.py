"""Ten calls through a client made from the document by openapi-python-client."""

import importlib
import os
import sys

sys.path.insert(0, sys.argv[1])
package = sys.argv[2]


def load(name):
    return importlib.import_module(f"{package}.{name}")


models = load("models")
client = load("client").AuthenticatedClient(base_url=os.environ["MESSAGING_URL"], token=os.environ["MESSAGING_API_KEY"])
workspace = os.environ["MESSAGING_WORKSPACE"]


def call(group, operation, *arguments, **options):
    """Calls an operation; its answer, parsed, or an error."""
    answer = load(f"api.{group}.{operation}").sync_detailed(*arguments, client=client, **options)
    if not 200 <= answer.status_code < 300 or (answer.content and answer.parsed is None):
        raise SystemExit(f"{operation}: {answer.status_code} {answer.content!r}")
    return answer.parsed


def body(model, **members):
    return getattr(models, model).from_dict(members)


group = call("list_", "create_list", workspace, body=body("ListInput", name="News"))
contact = call("contact", "upsert_contact", workspace, body=body("ContactInput", email="py@example.com", list_ids=[group.id]))
template = call("template", "create_template", workspace,
                body=body("TemplateInput", name="Order", channel="email", subject="Order {{ id }}", text="Thanks"))
sent = call("message", "send_message",
            body=body("MessageInput", channel="email", contact_id=contact.id, template_id=template.id, variables={"id": 17}))
message = call("message", "get_message", sent.message_id)
if message.contact_id != contact.id:
    raise SystemExit("the message is somebody else's")
page = call("message", "list_messages", limit=1)
if page.data[0].message_id != sent.message_id:
    raise SystemExit("the newest message is not first")
call("event", "send_event", body=body("ProductEventInput", name="order_placed", contact={"email": "py@example.com"}))
segment = call("segment", "create_segment", workspace,
               body=body("SegmentInput", name="Buyers", filter={"type": "event", "name": "order_placed"}))
call("segment", "get_segment", workspace, segment.id)
call("suppression", "create_suppression", workspace,
     body=body("SuppressionInput", channel="email", address="gone@example.com", reason="manual"))
