#!/usr/bin/env python3
"""Sends campaigns through a real SMTP server and verifies their mail with a program that is not ours.

Starts the given `messaging` program with a relay that is a mail server in this process, sends two campaigns, and
verifies with dkimpy that every mail is signed and that the signature covers both headers of one-click unsubscribe
(RFC 8058 section 4). Between the first and the second half of the second campaign one recipient follows the link of an
earlier mail as a mail program does: the mail of the second half does not reach them. Exits with 1 when something fails.
"""

import email
import email.policy
import os
import re
import signal
import socketserver
import sys
import tempfile
import threading
import time
import urllib.request

import dkim

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dev_server import DEADLINE, call, expect, start  # noqa: E402

RECIPIENTS = [f"reader{number:02}@example.com" for number in range(12)]
# Messages a minute; at most a tenth of them leave in any six seconds.
PACE = 60


class MailServer(socketserver.StreamRequestHandler):
    """Takes every mail."""

    mails = []
    lock = threading.Lock()

    def reply(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def handle(self):
        self.reply("220 sink ESMTP")
        to = []
        while line := self.rfile.readline():
            verb = line.strip().upper()
            if verb.startswith(b"EHLO"):
                self.reply("250-sink\r\n250-8BITMIME\r\n250 SMTPUTF8")
            elif verb.startswith(b"RCPT TO:"):
                to.append(re.search(rb"<(.*?)>", line).group(1).decode())
                self.reply("250 ok")
            elif verb == b"DATA":
                self.reply("354 go on")
                lines = []
                while (line := self.rfile.readline()) not in (b".\r\n", b""):
                    lines.append(line[1:] if line.startswith(b"..") else line)
                with self.lock:
                    self.mails.extend((one, b"".join(lines)) for one in to)
                to = []
                self.reply("250 taken")
            elif verb == b"QUIT":
                self.reply("221 bye")
                return
            else:
                self.reply("250 ok")


def mails():
    with MailServer.lock:
        return list(MailServer.mails)


def wait_for(what, is_so):
    ends = time.monotonic() + DEADLINE
    while not is_so():
        if time.monotonic() > ends:
            sys.exit(f"failed: waiting for {what}")
        time.sleep(0.1)


def signed_fields(mail):
    """The names of the fields that a signature covers, of each signature."""
    fields = re.findall(rb"DKIM-Signature:(.*?)\r\n(?![ \t])", mail, re.S)
    covered = [re.search(rb"\bh=([^;]*)", re.sub(rb"\s+", b"", field)) for field in fields]
    return [found.group(1).lower().split(b":") for found in covered]


def verifies(mail, records):
    try:
        return dkim.DKIM(mail).verify(dnsfunc=lambda name, timeout=5: records.get(name.rstrip(b".")))
    except dkim.ValidationError:
        return False


def check(dev, port):
    base, key, workspace = dev["base_url"], dev["api_key"], dev["workspace_id"]
    home = f"/workspaces/{workspace}"

    def api(method, path, body=None):
        return call(base, key, method, path, body)

    relay = {"host": "127.0.0.1", "port": port, "tls": "none"}
    api("PUT", f"{home}/channels/email", {"provider": "smtp", "config": relay})
    domain = api("GET", f"{home}/sending-domains")["data"][0]
    found = api("GET", f"{home}/sending-domains/{domain['id']}/records")["data"]
    records = {item["host"].encode(): item["value"].encode() for item in found if item["type"] == "TXT"}
    news = api("POST", f"{home}/lists", {"name": "news"})["id"]
    for address in RECIPIENTS:
        consent = {"marketing_email": True}
        api("POST", f"{home}/contacts", {"email": address, "consent": consent, "list_ids": [news]})
    template = api("POST", f"{home}/templates", {
        "name": "news", "channel": "email", "subject": "News for {{ contact.email }}",
        "from_email": f"news@{domain['domain']}",
        "html": "<body><p>Hi</p><a href=\"{{ unsubscribe_url }}\">stop</a></body>",
    })["id"]

    def campaign(settings):
        audience = {"list_ids": [news]}
        body = {"name": "c", "channel": "email", "template_id": template, "audience": audience, "settings": settings}
        made = api("POST", f"{home}/campaigns", body)["id"]
        api("POST", f"{home}/campaigns/{made}/schedule", {"send_now": True})
        return made

    def stats(made):
        return api("GET", f"{home}/campaigns/{made}/stats")

    first = campaign({})
    wait_for("the first campaign", lambda: stats(first)["sent"] == len(RECIPIENTS))
    letters = dict(mails())
    expect("everybody has one mail", sorted(to for to, _ in mails()) == RECIPIENTS)
    expect("every mail verifies", all(verifies(mail, records) for mail in letters.values()))
    offers = {b"list-unsubscribe", b"list-unsubscribe-post"}
    covered = [signed_fields(mail) for mail in letters.values()]
    expect("both headers of one click are signed", all(fields and offers <= set(fields[0]) for fields in covered))
    changed = letters[RECIPIENTS[0]].replace(b"List-Unsubscribe: <http", b"List-Unsubscribe: <https")
    expect("a changed offer does not verify", not verifies(changed, records))
    parsed = {to: email.message_from_bytes(mail, policy=email.policy.default) for to, mail in letters.items()}
    posts = {mail["List-Unsubscribe-Post"] for mail in parsed.values()}
    expect("the post is that of RFC 8058", posts == {"List-Unsubscribe=One-Click"})

    second = campaign({"rate_limit": PACE})
    wait_for("the first half", lambda: len(mails()) >= len(RECIPIENTS) + PACE // 10)
    had = {to for to, _ in mails()[len(RECIPIENTS):]}
    leaver = sorted(set(RECIPIENTS) - had)[-1]
    link = re.search(r"<(http[^>]*)>", parsed[leaver]["List-Unsubscribe"]).group(1)
    request = urllib.request.Request(link, data=b"List-Unsubscribe=One-Click", method="POST")
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        expect("one click is answered", answer.status == 200)
    status = lambda: api("GET", f"{home}/campaigns/{second}")["status"]  # noqa: E731
    wait_for("the second half", lambda: status() == "sent")
    got = sorted(to for to, _ in mails()[len(RECIPIENTS):])
    expect("everybody else has the second mail, once", got == sorted(set(RECIPIENTS) - {leaver}))
    left = stats(second)
    expect("whoever left was skipped", (left["sent"], left["skipped"]["suppressed"]) == (len(RECIPIENTS) - 1, 1))
    expect("leaving counts for the campaign of the link", stats(first)["unsubscribes"] == 1)


def main():
    sink = socketserver.ThreadingTCPServer(("127.0.0.1", 0), MailServer)
    sink.daemon_threads = True
    threading.Thread(target=sink.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as data:
        server, dev = start(sys.argv[1], data)
        try:
            check(dev, sink.server_address[1])
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=DEADLINE)


if __name__ == "__main__":
    main()
