#!/usr/bin/env python3
"""Sends 2,000 messages to a real Postfix that limits its clients, and reads in its log that no limit was ever passed.

Usage: postfix.py PATH-OF-messaging [MESSAGES]

Postfix runs on a configuration, a queue and a log of its own in a temporary folder, at 127.0.0.2 port 25, and throws away what
it takes. It counts with `anvil`: connections at a time of one client, and messages in a minute. A name server of a few lines
tells that 200 recipient domains have it as their exchanger, so that one peer gets everything.

Measured is what the program keeps to by itself: the connections to an exchanger and the messages over each. Paths, and with
them the messages in a minute of a site (`--site-rules`), are kept for exchangers at public addresses alone, and this one has a
loopback address; so Postfix has a rate limit that is out of reach, and the largest rate is shown. Needs root, as Postfix does. Exits with 1 when a limit was passed or a message was lost.
"""

import collections
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

DEADLINE = 300
DOMAINS = 200
ADDRESS = "127.0.0.2"
# Connections of the program to one exchanger at a time, and messages over each: docs/reference/delivery.md.
CONNECTIONS = 20
MESSAGES_PER_CONNECTION = 100
OUT_OF_REACH = 1_000_000
NAMES = "path.test"

MAIN = """
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
maillog_file = {folder}/log
maillog_file_prefixes = {folder}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.path.test
mydestination =
mynetworks = 192.0.2.0/24
relay_domains = path.test
parent_domain_matches_subdomains = relay_domains
relay_transport = discard:
local_recipient_maps =
smtpd_relay_restrictions = reject_unauth_destination
smtpd_client_event_limit_exceptions =
smtpd_client_connection_count_limit = {connections}
smtpd_client_message_rate_limit = {rate}
smtpd_client_recipient_rate_limit = {rate}
anvil_status_update_time = 1s
alias_maps =
alias_database =
"""

# Service, type, private, unprivileged, chroot, wakeup, most processes, command.
MASTER = """
{address}:25 inet n - n - {processes} smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
discard unix - - n - - discard
error unix - - n - - error
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
"""


def expect(what, is_so, found=None):
    if not is_so:
        sys.exit(f"failed: {what}: {found}")
    print(f"ok: {what}")


def until(what, look, seconds=DEADLINE):
    """The first truthy answer; fails after a while."""
    ends = time.monotonic() + seconds
    while not (answer := look()):
        if time.monotonic() > ends:
            sys.exit(f"failed: {what}: not within {seconds} s")
        time.sleep(0.1)
    return answer


class Names(threading.Thread):
    """A name server: every name below `path.test` has the MX mx.path.test, and that has the address of Postfix."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]

    def run(self):
        while True:
            question, peer = self.socket.recvfrom(4096)
            if len(question) > 16:
                self.socket.sendto(self.answer(question), peer)

    @staticmethod
    def answer(question):
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode("ascii", "replace").lower())
            at += 1 + question[at]
        kind = struct.unpack("!H", question[at + 1:at + 3])[0]
        exchanger = b"".join(bytes([len(label)]) + label.encode() for label in ["mx", *NAMES.split(".")]) + b"\0"
        is_host = labels == ["mx", *NAMES.split(".")]
        data = None
        if kind == 15 and not is_host and labels[-2:] == NAMES.split("."):
            data = struct.pack("!H", 10) + exchanger
        if kind == 1 and is_host:
            data = socket.inet_aton(ADDRESS)
        known = is_host or labels[-2:] == NAMES.split(".")
        flags = 0x8580 | (0 if known else 3)
        head = question[:2] + struct.pack("!HHHHH", flags, 1, 1 if data else 0, 0, 0) + question[12:at + 5]
        return head + (b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 3600, len(data)) + data if data else b"")


class Postfix:
    """A Postfix of its own: configuration, queue, log."""

    def __init__(self, folder):
        self.folder, self.configuration = folder, os.path.join(folder, "etc")
        for name in ("etc", "queue", "data"):
            os.mkdir(os.path.join(folder, name))
        shutil.chown(os.path.join(folder, "data"), "postfix")
        values = {"folder": folder, "address": ADDRESS, "connections": CONNECTIONS, "rate": OUT_OF_REACH,
                  "processes": CONNECTIONS + 20}
        for name, text in (("main.cf", MAIN), ("master.cf", MASTER)):
            with open(os.path.join(self.configuration, name), "w", encoding="utf-8") as file:
                file.write(text.format(**values))

    def start(self):
        self.run("start")
        ends = time.monotonic() + 30
        while not self.listens():
            if time.monotonic() > ends:
                sys.exit(f"failed: Postfix does not listen: {self.log()[-2000:]}")
            time.sleep(0.1)

    def stop(self):
        subprocess.run(["postfix", "-c", self.configuration, "stop"], capture_output=True, timeout=60, check=False)

    def run(self, command):
        done = subprocess.run(["postfix", "-c", self.configuration, command], capture_output=True, text=True,
                              timeout=60, check=False)
        if done.returncode != 0:
            sys.exit(f"postfix {command}: {done.stdout}{done.stderr}\n{self.log()[-2000:]}")

    @staticmethod
    def listens():
        try:
            with socket.create_connection((ADDRESS, 25), timeout=1) as client:
                client.recv(100)
                client.sendall(b"QUIT\r\n")
                return True
        except OSError:
            return False

    def log(self):
        try:
            with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""


def start(program, data, names):
    """`messaging dev`: the server, with a workspace and a domain that may send."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MESSAGING_")}
    arguments = [program, "dev", "--listen", "127.0.0.1:0", "--data", data, "--hostname", "mail.acme.test",
                 "--allow-private-targets", "--dns", names]
    server = subprocess.Popen(arguments, env={**environment, "MESSAGING_LOG": "warn"}, stdout=subprocess.DEVNULL)

    def read():
        if server.poll() is not None:
            sys.exit("the server did not start")
        try:
            with open(os.path.join(data, "listen"), encoding="utf-8") as file:
                address = file.read().strip()
            with open(os.path.join(data, "dev.json"), encoding="utf-8") as file:
                dev = json.load(file)
        except (OSError, ValueError):
            return None
        return dev if address and address in dev["base_url"] else None

    return server, until("the server starts", read, 60)


def caller(dev):
    def call(method, path, body=None):
        headers = {"Authorization": f"Bearer {dev['api_key']}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(dev["base_url"] + path, method=method, data=data, headers=headers)
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as refusal:
                if refusal.code != 429:
                    raise
                time.sleep(min(float(refusal.headers.get("Retry-After", "1")), 10))

    return call


def send(call, sender, count):
    """Accepts messages to many domains of one site; answers their ids."""
    ids = []
    for first in range(0, count, 100):
        messages = [{"channel": "email", "to": f"reader{n}@d{n % DOMAINS}.{NAMES}", "from_email": sender,
                     "subject": f"Number {n}", "text": "Hello."} for n in range(first, min(first + 100, count))]
        results = call("POST", "/messages/batch", {"messages": messages})
        found = [part.get("message_id") for part in results.get("data", results.get("results", []))]
        expect(f"messages {first + 1} to {first + len(messages)} are accepted", None not in found, results)
        ids += found
    return ids


def figures(log):
    """What the log says: the largest counts of anvil, and each connection's messages."""
    of_anvil = collections.Counter()
    for what, count in re.findall(r"statistics: max (connection count|message rate) (\d+)", log):
        of_anvil[what] = max(of_anvil[what], int(count))
    messages = [int(count) for count in re.findall(r"disconnect from .* mail=(?:\d+/)?(\d+)", log)]
    return of_anvil, messages


def taken(log):
    return re.findall(r"postfix/discard\[\d+\]: (\w+): .*status=sent", log)


def check(log, count):
    of_anvil, messages = figures(log)
    passed = re.findall(r".*limit exceeded.*", log)
    refused = re.findall(r".*NOQUEUE.*", log)
    print(f"largest number of connections at a time: {of_anvil['connection count']} of {CONNECTIONS}")
    print(f"messages in the busiest minute: {of_anvil['message rate']} (no limit is kept to at a loopback address)")
    print(f"connections: {len(messages)}, with at most {max(messages, default=0)} messages")
    expect("Postfix took every message once", len(taken(log)) == count, len(taken(log)))
    expect("no limit was passed", not passed, passed[:3])
    expect("nothing was refused", not refused, refused[:3])
    expect("anvil counted", 0 < of_anvil["connection count"] <= CONNECTIONS, of_anvil)
    expect("connections are used again", len(messages) < count // 2, len(messages))
    expect("connections carry only so many", max(messages) <= MESSAGES_PER_CONNECTION, max(messages))


def statuses(call):
    """How many messages have which status."""
    found, cursor = collections.Counter(), ""
    while cursor is not None:
        page = call("GET", f"/messages?limit=200{cursor and '&cursor=' + cursor}")
        found.update(message["status"] for message in page["data"])
        cursor = page["next_cursor"]
    return found


def main(program, count="2000"):
    if os.geteuid() != 0:
        sys.exit("needs root: Postfix starts its processes as root and listens at port 25")
    with tempfile.TemporaryDirectory() as folder:
        # Postfix's own user reads there too.
        os.chmod(folder, 0o755)
        names = Names()
        names.start()
        postfix = Postfix(folder)
        data = os.path.join(folder, "messaging")
        server = None
        try:
            postfix.start()
            server, dev = start(os.path.abspath(program), data, names.address)
            call = caller(dev)
            call("PUT", f"/workspaces/{dev['workspace_id']}/channels/email", {"provider": "builtin", "config": {}})
            ids = send(call, dev["from_email"], int(count))
            until("Postfix has taken all", lambda: len(taken(postfix.log())) >= len(ids))
            until("all are delivered", lambda: statuses(call) == {"delivered": len(ids)}, 30)
            server.terminate()
            expect("the server stops orderly", server.wait(60) == 0)
            # What is open is logged when it ends, and anvil's figures when it stops.
            postfix.stop()
            check(postfix.log(), len(ids))
        finally:
            if server and server.poll() is None:
                server.kill()
            postfix.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
