#!/usr/bin/env python3
"""Submits mail to the given `messaging` program with clients that are not ours, and reads what became of it.

Python's smtplib sends in the clear (no certificate, loopback), by STARTTLS and by TLS at once, with attachments and
letters outside of ASCII; swaks (where it is installed) and nodemailer (where npm is) send by STARTTLS and TLS. The
certificate is made for the occasion by openssl. Exits with 1 when a client fails or a message is not what was sent.

Usage: submission.py PATH-OF-messaging
"""

import email
import email.policy
import json
import os
import shutil
import signal
import smtplib
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from email.message import EmailMessage
from email.utils import make_msgid

DEADLINE = 60
FILE = bytes(range(256)) * 40
NODEMAILER = "nodemailer@10.6.0"


def expect(what, is_so, found=None):
    if not is_so:
        sys.exit(f"failed: {what}: {found}")
    print(f"ok: {what}")


class Server:
    """`messaging dev` with submission, and with a certificate where there is one."""

    def __init__(self, program, directory, *settings):
        self.data = directory
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MESSAGING_")}
        arguments = [program, "dev", "--listen", "127.0.0.1:0", "--data", directory, "--hostname", "localhost"]
        arguments += ["--submission-listen", "127.0.0.1:0", *settings]
        environment["MESSAGING_LOG"] = "warn"
        self.process = subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL)
        ends = time.monotonic() + DEADLINE
        while True:
            try:
                with open(os.path.join(directory, "dev.json")) as file:
                    self.dev = json.load(file)
                with open(os.path.join(directory, "submission-listen")) as file:
                    self.port = int(file.read().strip().rsplit(":", 1)[1])
                self.call("GET", "/health")
                break
            except (OSError, ValueError):
                if time.monotonic() > ends or self.process.poll() is not None:
                    sys.exit("the server did not start")
                time.sleep(0.05)

    def call(self, method, path, raw=False):
        headers = {"Authorization": f"Bearer {self.dev['api_key']}"}
        request = urllib.request.Request(self.dev["base_url"] + path, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            body = answer.read()
        return body if raw else json.loads(body)

    def captured(self, message_id):
        """The mail as it would have gone on the wire."""
        path = f"/workspaces/{self.dev['workspace_id']}/sandbox/messages/{message_id}"
        ends = time.monotonic() + DEADLINE
        while True:
            try:
                return email.message_from_bytes(self.call("GET", path, raw=True), policy=email.policy.default)
            except urllib.error.HTTPError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.05)

    def newest(self):
        return self.call("GET", "/messages?limit=1")["data"][0]

    def count(self):
        return len(self.call("GET", "/messages?limit=200")["data"])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        expect("the server stops orderly", self.process.wait(DEADLINE) == 0)


def mail(sender, subject):
    message = EmailMessage()
    message["From"] = f"Jörg Müller <{sender}>"
    message["To"] = "Ann <ann@example.com>"
    message["Cc"] = "bob@example.com"
    message["Subject"] = subject
    message["Message-ID"] = make_msgid(domain="client.test")
    message["X-Order"] = "17"
    message.set_content("Grüße\n.\n..zwei Punkte\n")
    message.add_alternative("<p>Grüße <img src='cid:logo@client.test'></p>", subtype="html")
    message.get_payload()[1].add_related(b"\x89PNG\r\n\x1a\n", "image", "png", cid="<logo@client.test>")
    message.add_attachment(FILE, maintype="application", subtype="pdf", filename="Rechnung ü.pdf")
    return message


class Clear(smtplib.SMTP):
    """Keeps the reply to the final dot, which smtplib throws away."""

    def data(self, message):
        self.last = super().data(message)
        return self.last


class Secure(smtplib.SMTP_SSL):
    def data(self, message):
        self.last = super().data(message)
        return self.last


def send(client, sender, subject, key, mechanism):
    client.user, client.password = "anybody", key
    client.ehlo()
    client.auth(mechanism, getattr(client, f"auth_{mechanism.lower()}"))
    message = mail(sender, subject)
    recipients = ["ann@example.com", "bob@example.com", "hidden@example.com"]
    refused = client.send_message(message, to_addrs=recipients)
    expect(f"{subject}: nobody is refused", not refused, refused)
    reply = client.last[1].decode()
    client.send_message(message, to_addrs=recipients)
    expect(f"{subject}: the same mail again is the same message", client.last[1].decode() == reply, client.last)
    return reply.split()[1]


def check(server, message_id, subject):
    found = server.captured(message_id)
    expect(f"{subject}: the subject", found["subject"] == subject, found["subject"])
    expect(f"{subject}: the sender", found["from"].addresses[0].display_name == "Jörg Müller", found["from"])
    expect(f"{subject}: the recipients", (found["to"], found["cc"]) == ("ann@example.com", "bob@example.com"))
    expect(f"{subject}: the blind copy is not seen", b"hidden@example.com" not in found.as_bytes())
    expect(f"{subject}: a further header", found["x-order"] == "17")
    text = found.get_body(("plain",)).get_content()
    expect(f"{subject}: the text", text.replace("\r\n", "\n").rstrip("\n") == "Grüße\n.\n..zwei Punkte", repr(text))
    expect(f"{subject}: the html", "<p>Grüße" in found.get_body(("html",)).get_content())
    files = {part.get_filename(): part.get_payload(decode=True) for part in found.walk() if part.get_filename()}
    expect(f"{subject}: the file", files.get("Rechnung ü.pdf") == FILE, list(files))


def begin_with_tls(server, context):
    """The server waits half a second for clients that begin with TLS; a machine under load may take longer."""
    for attempt in range(3):
        try:
            return Secure("localhost", server.port, timeout=DEADLINE, context=context)
        except ssl.SSLError:
            if attempt == 2:
                raise


def by_smtplib(server, sender, key, context):
    if context is None:
        with Clear("127.0.0.1", server.port, timeout=DEADLINE) as client:
            check(server, send(client, sender, "in the clear", key, "PLAIN"), "in the clear")
            try:
                client.sendmail("x@sandbox.test", ["ann@example.com"], "From: x@elsewhere.test\r\nSubject: s\r\n\r\nx")
                sys.exit("failed: a foreign sender was accepted")
            except smtplib.SMTPDataError as error:
                told = error.smtp_code == 550 and b"sender_domain_not_verified" in error.smtp_error
                expect("a foreign sender is refused", told, error)
        with Clear("127.0.0.1", server.port, timeout=DEADLINE) as client:
            try:
                client.login("anybody", "mk_live_" + "a" * 12 + "." + "b" * 40)
                sys.exit("failed: a wrong key was accepted")
            except smtplib.SMTPResponseException as error:
                expect("a wrong key is refused", error.smtp_code == 535, error)
        return
    with Clear("127.0.0.1", server.port, timeout=DEADLINE) as client:
        client._host = "localhost"
        client.starttls(context=context)
        check(server, send(client, sender, "STARTTLS", key, "LOGIN"), "STARTTLS")
    with begin_with_tls(server, context) as client:
        check(server, send(client, sender, "TLS at once", key, "PLAIN"), "TLS at once")


def by_swaks(server, sender, key):
    if not shutil.which("swaks"):
        print("skipped: swaks is not installed")
        return
    for how in ("--tls", "--tlsc"):
        before = server.count()
        arguments = ["swaks", "--server", "127.0.0.1", "--port", str(server.port), how, "--auth", "PLAIN"]
        arguments += ["--auth-user", "x", "--auth-password", key, "--from", sender, "--to", "ann@example.com"]
        arguments += ["--header", f"Subject: swaks {how}", "--h-From", sender, "--body", "Hello", "--hide-all"]
        ran = subprocess.run(arguments, capture_output=True, text=True, timeout=DEADLINE)
        expect(f"swaks {how}", ran.returncode == 0 and server.count() == before + 1, ran.stdout + ran.stderr)


SCRIPT = """
const nodemailer = require('nodemailer');
const [port, user, pass, ca] = process.argv.slice(2);
const tls = { ca: require('fs').readFileSync(ca), servername: 'localhost' };
(async () => {
  for (const secure of [false, true]) {
    const transport = nodemailer.createTransport({ host: '127.0.0.1', port, secure, requireTLS: true, tls,
      auth: { user, pass } });
    const sent = await transport.sendMail({ from: process.argv[6], to: 'ann@example.com', bcc: 'bob@example.com',
      subject: 'nodemailer ü ' + secure, text: 'Grüße', html: '<p>Grüße</p>',
      attachments: [{ filename: 'ü.txt', content: 'Grüße' }] });
    console.log(sent.response);
    transport.close();
  }
})().catch((error) => { console.error(error); process.exit(1); });
"""


def by_nodemailer(server, sender, key, certificate):
    if not shutil.which("npm"):
        print("skipped: npm is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, NODEMAILER]
        subprocess.run(install, check=True, timeout=DEADLINE * 3)
        script = os.path.join(folder, "send.js")
        with open(script, "w") as file:
            file.write(SCRIPT)
        arguments = ["node", script, str(server.port), "x", key, certificate, sender]
        ran = subprocess.run(arguments, capture_output=True, text=True, timeout=DEADLINE)
    replies = ran.stdout.split("\n")[:2]
    is_queued = [reply.startswith("250 2.0.0 msg_") for reply in replies]
    expect("nodemailer", ran.returncode == 0 and is_queued == [True, True], ran.stdout + ran.stderr)
    found = server.captured(replies[1].split()[2])
    expect("nodemailer: the subject", found["subject"] == "nodemailer ü true", found["subject"])
    files = [part.get_filename() for part in found.walk() if part.get_filename()]
    expect("nodemailer: the file", files == ["ü.txt"], files)


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        server = Server(program, os.path.join(folder, "clear"))
        by_smtplib(server, server.dev["from_email"], server.dev["api_key"], None)
        server.stop()

        certificate, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
        make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        make += ["-keyout", key, "-out", certificate, "-subj", "/CN=localhost"]
        make += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        subprocess.run(make, check=True, capture_output=True)
        server = Server(program, os.path.join(folder, "secure"), "--tls-cert", certificate, "--tls-key", key)
        sender, api_key = server.dev["from_email"], server.dev["api_key"]
        by_smtplib(server, sender, api_key, ssl.create_default_context(cafile=certificate))
        by_swaks(server, sender, api_key)
        by_nodemailer(server, sender, api_key, certificate)
        server.stop()


main()
