#!/usr/bin/env python3
"""Reads our mail with a parser that is not ours: as the sandbox keeps it, and as an SMTP server gets it.

Usage: read_mail.py PATH-OF-messaging
"""
import base64
import email
import email.policy
import json
import os
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

FILE = bytes(range(256)) * 300
SUBJECT = "Grüße aus Köln — " + "ein langer Betreff, " * 20
HEADER = "Zusatz " + "ä" * 200
TEXT = "Hallo Änne,\n.\n..zwei Punkte\nbare\rcarriage\r\n" + "x" * 3000 + "\nEnde"
BCC = "hidden@example.com"
received = []


class Session(socketserver.StreamRequestHandler):
    """Just enough of RFC 5321 to take a message."""

    def reply(self, line):
        self.wfile.write(line.encode() + b"\r\n")

    def handle(self):
        self.reply("220 reader.test")
        envelope = []
        while line := self.rfile.readline(4096):
            command = line.split(b" ")[0].strip().upper()
            if command == b"DATA":
                self.reply("354 go on")
                content = []
                while (part := self.rfile.readline(1 << 20)) != b".\r\n":
                    content.append(part[1:] if part.startswith(b".") else part)
                received.append((envelope, b"".join(content)))
                envelope = []
                self.reply("250 2.0.0 kept")
            elif command == b"QUIT":
                return self.reply("221 bye")
            else:
                if command in (b"MAIL", b"RCPT"):
                    envelope.append(line.strip().decode())
                self.reply("250 ok")


def check(source):
    assert b"\r" not in source.replace(b"\r\n", b"") and b"\n" not in source.replace(b"\r\n", b""), "bare CR or LF"
    assert max(len(line) for line in source.split(b"\r\n")) <= 998, "a line is too long"
    assert BCC.encode() not in source, "bcc is visible"
    mail = email.message_from_bytes(source, policy=email.policy.default)
    assert not mail.defects, mail.defects
    assert mail["subject"] == SUBJECT.strip(), mail["subject"]
    assert mail["x-note"] == HEADER, mail["x-note"]
    sender = mail["from"].addresses[0]
    assert (sender.display_name, sender.addr_spec) == ("Ännes Läden, Ltd.", "shop@sandbox.test"), sender
    assert [one.addr_spec for one in mail["to"].addresses] == ["ann@example.com"]
    assert [one.addr_spec for one in mail["cc"].addresses] == ["cc@example.com"]
    assert mail["date"] and mail["message-id"].startswith("<msg_")
    text = mail.get_body(("plain",)).get_content().replace("\r\n", "\n")
    assert text.rstrip("\n") == TEXT.replace("\r\n", "\n").replace("\r", "\n"), text
    assert "Änne" in mail.get_body(("html",)).get_content()
    attachment = next(mail.iter_attachments())
    assert attachment.get_filename() == "Übersicht 2026.bin", attachment.get_filename()
    assert attachment.get_payload(decode=True) == FILE, "the attachment changed"
    return mail["message-id"]


def main(program):
    with tempfile.TemporaryDirectory() as data:
        server = subprocess.Popen([program, "dev", "--listen", "127.0.0.1:0", "--data", data, "--log", "warn",
                                   "--allow-private-targets"],
                                  stdout=subprocess.DEVNULL)
        try:
            run(data, server)
        finally:
            server.terminate()
            server.wait()


def until(look):
    """The first truthy answer; fails after a while."""
    deadline = time.monotonic() + 60
    while not (answer := look()):
        assert time.monotonic() < deadline, "nothing came in time"
        time.sleep(0.02)
    return answer


def run(data, server):
    until(lambda: os.path.exists(f"{data}/listen") or server.poll() is not None)
    dev = json.load(open(f"{data}/dev.json"))

    def call(method, path, body=None):
        request = urllib.request.Request(dev["base_url"] + path, method=method,
                                         data=None if body is None else json.dumps(body).encode())
        request.add_header("Authorization", "Bearer " + dev["api_key"])
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    message = {
        "channel": "email", "to": "ann@example.com", "cc": ["cc@example.com"], "bcc": [BCC],
        "from_email": "shop@sandbox.test", "from_name": "Ännes Läden, Ltd.", "subject": SUBJECT, "text": TEXT,
        "html": "<p>Hallo Änne</p>\n" * 100, "headers": {"X-Note": HEADER},
        "attachments": [{"filename": "Übersicht 2026.bin", "content_b64": base64.b64encode(FILE).decode()}],
    }

    def send(status):
        identity = json.loads(call("POST", "/messages", message))["message_id"]
        until(lambda: json.loads(call("GET", f"/messages/{identity}"))["status"] == status)
        return identity

    workspace = f"/workspaces/{dev['workspace_id']}"
    captured = send("delivered")
    check(call("GET", f"{workspace}/sandbox/messages/{captured}"))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as sink:
        sink.daemon_threads = True
        threading.Thread(target=sink.serve_forever, daemon=True).start()
        relay = {"host": "127.0.0.1", "port": sink.server_address[1], "tls": "none"}
        call("PUT", f"{workspace}/channels/email", {"provider": "smtp", "config": relay})
        sent = send("sent")
        sink.shutdown()
    # A transaction for each recipient, each with an envelope sender of its own, all with the same content.
    assert len(received) == 3, received
    assert len({source for _, source in received}) == 1
    assert f"<{sent}@" in check(received[0][1])
    named = [[line.split(":")[1].split(">")[0].strip("<") for line in envelope if line.upper().startswith(verb)]
             for verb in ("RCPT", "MAIL") for envelope, _ in received]
    assert named[:3] == [["ann@example.com"], ["cc@example.com"], [BCC]], named
    assert len({sender for senders in named[3:] for sender in senders}) == 3, named
    print("the sandbox and the wire are read alike")


if __name__ == "__main__":
    main(sys.argv[1])
