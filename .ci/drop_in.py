#!/usr/bin/env python3
"""Sends through the drop-in endpoints with the public libraries of the services whose calls they take.

Usage: drop_in.py PATH-OF-messaging DIRECTORY-OF-node_modules

Starts the program with its sandbox, sends with `resend` and `sendgrid` of PyPI and then, by drop_in.mjs, with `resend` and
`@sendgrid/mail` of npm, and looks at what the sandbox captured. Exits with 1 when something is not as it should be.
"""

import base64
import email
import email.policy
import json
import os
import signal
import subprocess
import sys
import tempfile

import resend
import sendgrid
from python_http_client.exceptions import BadRequestsError, UnauthorizedError
from resend.exceptions import ResendError
from sendgrid.helpers import mail as grid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dev_server import DEADLINE, call, captured, expect, start  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def mail_of(dev, message_id):
    return email.message_from_bytes(captured(dev, message_id), policy=email.policy.default)


def check_mail(what, mail, to, subject):
    expect(f"{what}: arrives", (mail["to"], mail["subject"]) == (to, subject))
    expect(f"{what}: sender", mail["from"].addresses[0].display_name == "Acme")
    inline = [part for part in mail.walk() if part["content-id"] == "<logo>"]
    expect(f"{what}: inline file", len(inline) == 1 and inline[0].get_payload(decode=True) == b"png")
    files = [part.get_payload(decode=True) for part in mail.iter_attachments() if part.get_filename() == "a.txt"]
    expect(f"{what}: file", files == [b"file"])


def with_resend(dev, root):
    resend.api_url, resend.api_key = root, dev["api_key"]
    params = {
        "from": f"Acme <{dev['from_email']}>", "to": ["ann@example.com"], "cc": "boss@example.com",
        "reply_to": "help@example.com", "subject": "Python", "html": "<p>Hello <img src='cid:logo'></p>",
        "headers": {"X-Order": "17"}, "tags": [{"name": "kind", "value": "order"}],
        "attachments": [{"filename": "a.txt", "content": list(b"file")},
                        {"filename": "l.png", "content": base64.b64encode(b"png").decode(), "content_id": "logo"}],
    }
    options = {"idempotency_key": "k" * 256}
    first, second = resend.Emails.send(params, options), resend.Emails.send(params, options)
    expect("resend of PyPI: a repetition sends nothing", first["id"] == second["id"])
    mail = mail_of(dev, first["id"])
    check_mail("resend of PyPI", mail, "ann@example.com", "Python")
    expect("resend of PyPI: header", mail["x-order"] == "17")
    shown = call(dev["base_url"], dev["api_key"], "GET", f"/messages/{first['id']}")
    expect("resend of PyPI: tag", shown["tags"] == ["kind:order"])
    small = {name: params[name] for name in ("from", "to", "subject", "html")}
    ids = [one["id"] for one in resend.Batch.send([small, small])["data"]]
    expect("resend of PyPI: batch", len(set(ids)) == 2)
    for change, code, said in (({"to": "nobody"}, 422, "`to`"), ({"topic_id": "x"}, 422, "`topic_id`"),
                               ({"from": "a@else.where"}, 403, "else.where")):
        try:
            resend.Emails.send({**small, **change})
            sys.exit(f"failed: {change} is not refused")
        except ResendError as refusal:
            expect(f"resend of PyPI: {said} is refused", (refusal.code, said in refusal.message) == (code, True))
    resend.api_key = "mk_live_nobody"
    try:
        resend.Emails.send(small)
        sys.exit("failed: a wrong key is not refused")
    except ResendError as refusal:
        expect("resend of PyPI: a wrong key is refused", refusal.code == 401)


def with_sendgrid(dev, root):
    client = sendgrid.SendGridAPIClient(api_key=dev["api_key"], host=root)
    message = grid.Mail(from_email=(dev["from_email"], "Acme"), subject="Grid", html_content="<img src='cid:logo'>",
                        plain_text_content="Hello")
    for name in ("ann", "bob"):
        person = grid.Personalization()
        person.add_to(grid.To(f"{name}@example.com", name))
        person.add_custom_arg(grid.CustomArg("name", name))
        message.add_personalization(person)
    message.add_attachment(grid.Attachment(base64.b64encode(b"file").decode(), "a.txt", "text/plain", "attachment"))
    message.add_attachment(grid.Attachment(base64.b64encode(b"png").decode(), "l.png", "image/png", "inline", "logo"))
    message.add_category(grid.Category("order"))
    answer = client.send(message)
    ids = answer.headers["X-Message-Id"].split(", ")
    expect("sendgrid of PyPI: answer", (answer.status_code, answer.body, len(ids)) == (202, b"", 2))
    # The library puts each personalization before those that it has.
    for name, message_id in zip(("bob", "ann"), ids):
        check_mail("sendgrid of PyPI", mail_of(dev, message_id), f"{name}@example.com", "Grid")
        shown = call(dev["base_url"], dev["api_key"], "GET", f"/messages/{message_id}")
        expect("sendgrid of PyPI: data", (shown["tags"], shown["metadata"]) == (["order"], {"name": name}))
    message.mail_settings = grid.MailSettings(sandbox_mode=grid.SandBoxMode(enable=True))
    expect("sendgrid of PyPI: sandbox mode", client.send(message).status_code == 200)
    message.mail_settings = grid.MailSettings(footer_settings=grid.FooterSettings(enable=True))
    try:
        client.send(message)
        sys.exit("failed: a footer is not refused")
    except BadRequestsError as refusal:
        expect("sendgrid of PyPI: a footer is refused", refusal.to_dict["errors"][0]["field"] == "mail_settings.footer")
    try:
        sendgrid.SendGridAPIClient(api_key="mk_live_nobody", host=root).send(message)
        sys.exit("failed: a wrong key is not refused")
    except UnauthorizedError as refusal:
        expect("sendgrid of PyPI: a wrong key is refused", set(refusal.to_dict["errors"][0]) == {"message", "field", "help"})


def with_node(dev, root, modules):
    script = os.path.join(modules, "drop_in.mjs")
    with open(os.path.join(HERE, "drop_in.mjs")) as source, open(script, "w") as copy:
        copy.write(source.read())
    environment = {**os.environ, "ROOT": root, "KEY": dev["api_key"], "FROM": dev["from_email"], "RESEND_BASE_URL": root}
    done = subprocess.run(["node", script], env=environment, capture_output=True, text=True, timeout=DEADLINE)
    if done.returncode != 0:
        sys.exit(f"failed: drop_in.mjs\n{done.stdout}{done.stderr}")
    for what, message_id, to in json.loads(done.stdout):
        check_mail(what, mail_of(dev, message_id), to, "Node")


def main(program, modules):
    with tempfile.TemporaryDirectory() as data:
        server, dev = start(program, data)
        root = dev["base_url"].removesuffix("/v1")
        try:
            with_resend(dev, root)
            with_sendgrid(dev, root)
            with_node(dev, root, modules)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=DEADLINE)


if __name__ == "__main__":
    main(*sys.argv[1:])
