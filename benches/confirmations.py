#!/usr/bin/env python3
"""Imports a list with double opt-in as `unconfirmed` into the given `messaging` program, and measures two things meanwhile:
how long the acceptance of other messages takes, and at which pace the confirmations leave.

Messages are accepted at a fixed rate before, during and after the import; the time of each counts from the moment at which it was
due, so that a request that waits for one before it is late as well. The confirmations go to sites that do not know the sender, so
warm-up sets their pace: the program runs in a network of its own (`unshare --net`) in which the exchangers have public addresses,
a resolver of the script names them, and a mail server of the script takes everything.

Prints the 99th percentiles with their ratios to that before, and the confirmations beside what the rule of warm-up allows. Exits
with 1 when something fails; the figures are for whoever reads them.

Usage: confirmations.py PATH-OF-messaging [--rows N] [--rate N] [--sites N] [--factor N] [--window S] [--limit S] [--data DIR]
"""

import argparse
import asyncio
import hashlib
import http.client
import json
import math
import multiprocessing
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

# An address that nobody takes for a private one; the network in which it is used ends at the loopback interface.
EXCHANGER = "9.9.9.1"
DNS_PORT = 5353
CONNECTIONS = 16
# Seconds that a start or one request may take.
DEADLINE = 120
ISOLATED = "CONFIRMATIONS_ISOLATED"

# Warm-up at level 0: messages a day to an unknown site, and the part of it that may leave in one hour, spread over half of it.
FIRST_DAY = 50
HOURS = 8


def fail(text):
    sys.exit(f"confirmations.py: {text}")


# --- Others on the network


def answer(query):
    """A DNS answer: each domain has one exchanger below itself, and each of these has an address. Nothing else is there."""
    place, labels = 12, []
    while query[place]:
        labels.append(query[place + 1 : place + 1 + query[place]].decode("ascii", "replace").lower())
        place += query[place] + 1
    kind = struct.unpack(">H", query[place + 1 : place + 3])[0]
    question = query[12 : place + 5]
    record = b""
    if len(labels) == 2 and labels[1] == "test" and kind == 15:
        record = struct.pack(">H", 10) + b"\x02mx\xc0\x0c"
    elif len(labels) == 3 and labels[0] == "mx" and labels[2] == "test" and kind == 1:
        record = socket.inet_aton("127.0.0.1" if labels[1] == "requests" else EXCHANGER)
    header = query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1 if record else 0, 0, 0)
    found = b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 3600, len(record)) + record if record else b""
    return header + question + found


class Resolver(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        self.transport.sendto(answer(data), address)


async def take_mail(reader, writer, counts):
    """Takes every message of a connection, and counts those that are not for `requests.test`."""
    writer.write(b"220 mx.test ESMTP\r\n")
    is_confirmation = False
    try:
        while line := await reader.readline():
            word = line[:4].upper()
            if word == b"EHLO":
                writer.write(b"250-mx.test\r\n250-PIPELINING\r\n250 8BITMIME\r\n")
            elif word == b"RCPT":
                is_confirmation = b"@requests.test" not in line.lower()
                writer.write(b"250 OK\r\n")
            elif word == b"DATA":
                writer.write(b"354 go on\r\n")
                while await reader.readline() != b".\r\n":
                    pass
                if is_confirmation:
                    counts[0] += 1
                    counts[1] = counts[1] or time.time()
                writer.write(b"250 OK\r\n")
            elif word == b"QUIT":
                writer.write(b"221 bye\r\n")
                break
            else:
                writer.write(b"250 OK\r\n")
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    writer.close()


def peers(counts, are_ready):
    """The resolver and the mail server, in a process of their own so that they do not hold up who measures."""

    async def serve():
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(Resolver, local_addr=("127.0.0.1", DNS_PORT))
        server = await asyncio.start_server(lambda r, w: take_mail(r, w, counts), "0.0.0.0", 25, limit=1 << 20)
        are_ready.set()
        await server.serve_forever()

    asyncio.run(serve())


# --- The server


class Server:
    """`messaging` on a data directory: made by `dev`, then run by `serve`."""

    def __init__(self, program, data, rules):
        self.program, self.data = program, data
        self.log = open(os.path.join(data, "server.log"), "ab")
        self.start("dev")
        with open(os.path.join(data, "dev.json"), encoding="utf-8") as file:
            dev = json.load(file)
        self.workspace, self.sender = dev["workspace_id"], dev["from_email"]
        words = ["admin", "create-key", "--workspace", self.workspace, "--name", "load", "--scopes", "*"]
        words += ["--rate-limit", "100000", "--json", "--data", data]
        made = subprocess.run([program, *words], env=environment(), capture_output=True, check=True, timeout=DEADLINE)
        self.key = json.loads(made.stdout)["key"]
        self.call("PUT", f"/v1/workspaces/{self.workspace}/channels/email", {"provider": "builtin", "config": {}})
        self.stop()
        self.start("serve", "--hostname", "mx.bench.test", "--site-rules", rules)

    def start(self, command, *more):
        listen = os.path.join(self.data, "listen")
        if os.path.exists(listen):
            os.remove(listen)
        arguments = [self.program, command, "--listen", "127.0.0.1:0", "--data", self.data, "--allow-private-targets"]
        arguments += ["--dns", f"127.0.0.1:{DNS_PORT}", *more]
        self.process = subprocess.Popen(arguments, env=environment(), stdout=subprocess.DEVNULL, stderr=self.log)
        ends = time.monotonic() + DEADLINE
        while self.process.poll() is None and time.monotonic() < ends:
            try:
                with open(listen, encoding="utf-8") as file:
                    host, port = file.read().strip().rsplit(":", 1)
                self.address = (host, int(port))
                socket.create_connection(self.address, 1).close()
                if command == "serve" or os.path.exists(os.path.join(self.data, "dev.json")):
                    return
            except (OSError, ValueError):
                pass
            time.sleep(0.05)
        self.stop()
        fail(f"the server did not start; see {self.log.name}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def connect(self):
        return http.client.HTTPConnection(*self.address, timeout=DEADLINE)

    def request(self, connection, method, path, body):
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        return reply.status, reply.read()

    def call(self, method, path, body=None):
        connection = self.connect()
        status, text = self.request(connection, method, path, body)
        connection.close()
        if status >= 300:
            fail(f"{method} {path}: {status} {text[:500]}")
        return json.loads(text or b"null")


def environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MESSAGING_")}
    return {**kept, "MESSAGING_LOG": "warn"}


# --- Requests at a fixed rate


class Load:
    """Sends messages to be accepted, each at its moment, until it is stopped. Times are in seconds."""

    def __init__(self, server, rate):
        self.server, self.rate = server, rate
        self.began, self.next, self.lock = time.monotonic(), 0, threading.Lock()
        self.taken, self.refused, self.is_over = [], [], threading.Event()
        self.threads = [threading.Thread(target=self.send, daemon=True) for _ in range(CONNECTIONS)]
        for thread in self.threads:
            thread.start()

    def send(self):
        connection = self.server.connect()
        while not self.is_over.is_set():
            with self.lock:
                number, self.next = self.next, self.next + 1
            due = self.began + number / self.rate
            if self.is_over.wait(max(0, due - time.monotonic())):
                return
            body = {"channel": "email", "to": f"user-{number}@requests.test", "subject": "s", "text": "t"}
            try:
                status, _ = self.server.request(connection, "POST", "/v1/messages", body)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                status = repr(error)
            (self.taken if status == 202 else self.refused).append((due, time.monotonic() - due, status))

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join(DEADLINE)

    def show(self, name, start, end, base):
        """Prints the times of the requests that were due in a span; answers the 99th percentile in seconds."""
        times = sorted(took for due, took, _ in self.taken if start <= due < end)
        refused = [status for due, _, status in self.refused if start <= due < end]
        if not times:
            fail(f"nothing was accepted {name} the import: {refused[:3]}")
        half, p99 = times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)]
        ratio = f", {p99 / base:.2f} of before" if base else ""
        print(
            f"{name:>7}: {end - start:7.1f} s, {len(times)} accepted, {len(refused)} refused, "
            f"p50 {half * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms{ratio}"
        )
        return p99


# --- The import


def write_file(path, rows, sites, list_id):
    with open(path, "w", encoding="ascii", newline="") as file:
        file.write("email,list_ids\n")
        for n in range(rows):
            file.write(f"u{n}@s{n % sites}.test,{list_id}\n")
    with open(path, "rb") as file:
        return os.path.getsize(path), hashlib.file_digest(file, "sha256").hexdigest()


def upload(server, path, announced):
    target = announced["upload_url"]
    target = target[target.index("/uploads/") :]
    connection = server.connect()
    with open(path, "rb") as file:
        connection.request("PUT", target, file, {"Content-Type": "text/csv", "Content-Length": str(os.path.getsize(path))})
        reply = connection.getresponse()
        text = reply.read()
    connection.close()
    if reply.status != 202:
        fail(f"the upload: {reply.status} {text[:500]}")


def wait_for_import(server, path, ends):
    while time.monotonic() < ends:
        state = server.call("GET", path)
        if state["status"] == "completed":
            return state
        if state["status"] == "failed":
            fail(f"the import failed: {state}")
        time.sleep(0.5)
    fail("the import did not end within --limit")


def measure(server, options, directory, counts):
    base = f"/v1/workspaces/{server.workspace}"
    made = server.call("POST", f"{base}/lists", {"name": "News", "visibility": "public", "opt_in": "double"})
    path = os.path.join(directory, "contacts.csv")
    size, sha256 = write_file(path, options.rows, options.sites, made["id"])
    ends = time.monotonic() + options.limit
    load = Load(server, options.rate)
    # The first connections and statements are not what is measured.
    time.sleep(3)
    before = time.monotonic()
    time.sleep(options.window)
    begins = time.monotonic()
    body = {"filename": "contacts.csv", "size_bytes": size, "sha256": sha256, "status": "unconfirmed"}
    announced = server.call("POST", f"{base}/contacts/import", body)
    upload(server, path, announced)
    state = wait_for_import(server, f"{base}/contacts/imports/{announced['import_id']}", ends)
    done = time.monotonic()
    time.sleep(options.window)
    over = time.monotonic()
    left, first, now = int(counts[0]), counts[1], time.time()
    load.stop()

    print(f"{state['created']} of {options.rows} rows imported as unconfirmed, {options.rows / (done - begins):.0f} a second")
    p99 = load.show("before", before, begins, None)
    load.show("during", begins, done, p99)
    load.show("after", done, over, p99)
    show_confirmations(options, left, now - first if first else 0)


def show_confirmations(options, left, seconds):
    hourly = math.ceil(FIRST_DAY * options.factor / HOURS)
    gap = 1800 / hourly
    # Between two full hours: in each of them that much may leave.
    most = options.sites * min(hourly * (2 + int(seconds // 3600)), int(seconds / gap) + 1)
    rate = left / seconds * 3600 if seconds else 0
    print(
        f"confirmations: {left} left in {seconds:.0f} s, {rate:.0f} an hour at that pace; warm-up allows {most} in that time: "
        f"one in {gap:.2f} s at each of {options.sites} sites, and {options.sites * hourly} in an hour"
    )
    if left > most:
        fail("more left than warm-up allows")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the file, at most 1,000,000")
    parser.add_argument("--rate", type=float, default=50, help="messages to be accepted a second")
    parser.add_argument("--sites", type=int, default=10, help="sites of the addresses in the file")
    parser.add_argument("--factor", type=int, default=100, help="`warm_up` of the site rules, 1 to 100")
    parser.add_argument("--window", type=float, default=60, help="seconds that are measured before, and after the import")
    parser.add_argument("--limit", type=float, default=3600, help="seconds that the import may take")
    parser.add_argument("--data", help="an empty data directory that is kept; otherwise a temporary one")
    options = parser.parse_args()
    if not (1 <= options.rows <= 1_000_000 and 1 <= options.sites <= 1000 and 1 <= options.factor <= 100):
        fail("--rows, --sites or --factor is out of range")
    options.program = os.path.abspath(options.program)
    if os.environ.get(ISOLATED) is None:
        isolate = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
        again = [*isolate, sys.executable, os.path.abspath(__file__), *sys.argv[1:]]
        os.execvpe(again[0], again, {**os.environ, ISOLATED: "1"})
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "address", "add", f"{EXCHANGER}/32", "dev", "lo"], check=True)

    directory = tempfile.mkdtemp(prefix="confirmations-")
    data = os.path.abspath(options.data) if options.data else os.path.join(directory, "data")
    os.makedirs(data, mode=0o700, exist_ok=True)
    rules = os.path.join(directory, "rules.toml")
    with open(rules, "w", encoding="utf-8") as file:
        for n in range(options.sites):
            file.write(f'[[site]]\nname = "s{n}"\nexchangers = ["s{n}.test"]\nwarm_up = {options.factor}\n')
    # The number of confirmations that arrived, and when the first did.
    counts, are_ready = multiprocessing.Array("d", 2, lock=False), multiprocessing.Event()
    others = multiprocessing.Process(target=peers, args=(counts, are_ready), daemon=True)
    others.start()
    server = None
    try:
        if not are_ready.wait(DEADLINE):
            fail("the resolver and the mail server did not start")
        server = Server(options.program, data, rules)
        measure(server, options, directory, counts)
    finally:
        if server is not None:
            server.stop()
        others.terminate()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
