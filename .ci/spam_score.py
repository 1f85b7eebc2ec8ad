#!/usr/bin/env python3
"""Has SpamAssassin, offline and with its rules as packaged, look at the mails of the documentation and the examples.

Usage: spam_score.py PATH-OF-messaging

Starts the program with its sandbox, sends the mails that README and the guides show and one of each example template, and
scores them as they would have left. Exits with 1 when a mail has more than 1.0 points.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dev_server import DEADLINE, call, captured, start  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEMPLATES = os.path.join(ROOT, "examples", "automations", "templates")
MOST = 1.0

MAILS = {
    "README, curl": {"subject": "Order 17", "text": "Thanks"},
    "README, message send": {"subject": "Hi", "text": "Hello"},
    "a receipt": {"subject": "Order 17", "html": "<p>Thanks for your order.</p>"},
}
# What automations and campaigns fill their templates with.
VARIABLES = {
    "event": {"cart_id": "17", "items": 2, "total": "49.90", "order_id": "17"},
    "unsubscribe_url": "https://sandbox.test/u/abc",
}


def guides():
    """The mails that the guides make by `template create`, by the name of the template."""
    found = {}
    for name in ("campaigns.md", "automations.md"):
        with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as file:
            text = file.read()
        pattern = r'--name "([^"]+)" --channel email \\\s+--subject "([^"]+)" \\\s+--html \'([^\']+)\''
        for title, subject, html in re.findall(pattern, text):
            found[f"{name}, {title}"] = {"name": title, "channel": "email", "subject": subject, "html": html}
    return found


def examples():
    """The example templates."""
    found = {}
    for name in sorted(os.listdir(TEMPLATES)):
        folder = os.path.join(TEMPLATES, name)
        with open(os.path.join(folder, "template.toml"), "rb") as file:
            settings = tomllib.load(file)
        with open(os.path.join(folder, "template.html"), encoding="utf-8") as file:
            html = file.read()
        found[f"example {name}"] = {"name": name, "channel": "email", "subject": settings["subject"], "html": html}
    return found


def score(source, home):
    """The points of a mail and the rules that gave them."""
    command = ["spamassassin", "--local", "--test-mode", f"--prefspath={home}/user_prefs"]
    done = subprocess.run(command, input=source, capture_output=True, env={**os.environ, "HOME": home}, check=True)
    text = re.sub(rb"\r?\n[ \t]+", b" ", done.stdout).decode(errors="replace")
    found = re.search(r"^X-Spam-Status: \w+, score=(-?[\d.]+) .*?tests=(.*?) autolearn", text, re.MULTILINE)
    if not found:
        sys.exit("SpamAssassin gave no score:\n" + done.stderr.decode(errors="replace"))
    return float(found[1]), found[2]


def main(program):
    with tempfile.TemporaryDirectory() as directory:
        data, home = os.path.join(directory, "data"), os.path.join(directory, "home")
        os.mkdir(home)
        open(os.path.join(home, "user_prefs"), "w").close()
        server, dev = start(program, data)
        base, key, workspace = dev["base_url"], dev["api_key"], dev["workspace_id"]
        contact = call(base, key, "POST", f"/workspaces/{workspace}/contacts",
                       {"email": "ann@example.com", "attributes": {"first_name": "Ann"}})

        def send(body):
            message = {"channel": "email", "to": "ann@example.com", "contact_id": contact["id"], **body}
            return call(base, key, "POST", "/messages", message)["message_id"]

        try:
            sent = {what: send(body) for what, body in MAILS.items()}
            templates = {}
            for what, body in {**guides(), **examples()}.items():
                templates[what] = call(base, key, "POST", f"/workspaces/{workspace}/templates", body)["id"]
            if len(templates) < 5:
                sys.exit(f"failed: only {sorted(templates)} were found")
            for what, template in templates.items():
                sent[what] = send({"template_id": template, "variables": VARIABLES})
            worst = 0
            for what, message_id in sent.items():
                points, rules = score(captured(dev, message_id), home)
                print(f"{points:4.1f}  {what}: {rules}")
                worst = max(worst, points)
            if worst > MOST:
                sys.exit(f"failed: a mail has {worst} points, and {MOST} are allowed")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=DEADLINE)


if __name__ == "__main__":
    main(*sys.argv[1:])
