#!/usr/bin/env python3
"""Verifies the signatures of webhooks with programs that are not ours.

Starts the given `messaging` program, registers a webhook that leads to a receiver in this process, sends
messages, and verifies every request with the packages `standardwebhooks` and `svix` from PyPI, before,
during and after a rotation of the secret. Exits with 1 when a signature does not verify, or a changed
request does.
"""

import http.server
import json
import os
import queue
import signal
import sys
import tempfile
import threading

import standardwebhooks
import svix.webhooks

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dev_server import DEADLINE, call, expect, start  # noqa: E402


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps what it gets."""

    protocol_version = "HTTP/1.1"
    requests = queue.Queue()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.put(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def verifies(secret, headers, body):
    """Whether both packages believe a request; they must agree."""
    answers = set()
    for webhook, prefix in ((standardwebhooks.Webhook(secret), "webhook"), (svix.webhooks.Webhook(secret), "svix")):
        given = {f"{prefix}-{part}": headers[f"webhook-{part}"] for part in ("id", "timestamp", "signature")}
        try:
            webhook.verify(body, given)
            answers.add(True)
        except (standardwebhooks.webhooks.WebhookVerificationError, svix.webhooks.WebhookVerificationError):
            answers.add(False)
    if len(answers) != 1:
        sys.exit("the packages do not agree")
    return answers.pop()


def check(dev, url):
    base, key, workspace = dev["base_url"], dev["api_key"], dev["workspace_id"]
    hooks = f"/workspaces/{workspace}/webhooks"
    hook = call(base, key, "POST", hooks, {"url": url, "events": ["delivered"]})
    first = hook["secret"]

    def event():
        message = {"channel": "email", "to": "ann@example.com", "subject": "Ünïcode ✓", "text": "t", "tags": ["ü"]}
        call(base, key, "POST", "/messages", message)
        return Receiver.requests.get(timeout=DEADLINE)

    headers, body = event()
    expect("an event verifies", verifies(first, headers, body))
    expect("the id is that of the event", headers["webhook-id"] == json.loads(body)["id"])
    expect("a changed body does not", not verifies(first, headers, body + b" "))
    expect("another id does not", not verifies(first, {**headers, "webhook-id": "evt_0"}, body))
    old = {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) - 600)}
    expect("an old timestamp does not", not verifies(first, old, body))
    second = call(base, key, "POST", f"{hooks}/{hook['id']}/rotate-secret")["secret"]
    headers, body = event()
    expect("after a rotation both secrets verify", verifies(first, headers, body) and verifies(second, headers, body))
    third = call(base, key, "POST", f"{hooks}/{hook['id']}/rotate-secret")["secret"]
    headers, body = event()
    expect("the last two do", verifies(second, headers, body) and verifies(third, headers, body))
    expect("the first no longer does", not verifies(first, headers, body))
    call(base, key, "POST", f"{hooks}/{hook['id']}/test", {"event_type": "bounce", "payload": {"any": "thing"}})
    headers, body = Receiver.requests.get(timeout=DEADLINE)
    expect("a test verifies", verifies(third, headers, body))


def main():
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as data:
        server, dev = start(sys.argv[1], data)
        try:
            check(dev, f"http://127.0.0.1:{receiver.server_port}/hook")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=DEADLINE)


if __name__ == "__main__":
    main()
