#!/usr/bin/env python3
"""Verifies our DKIM signatures with two programs that are not ours: dkimpy and opendkim-testmsg.

Usage: verify_signatures.py DIRECTORY, with the mails and DNS records that the example signed_mails has written.

Every mail must verify, each of its signatures by itself, with both programs; and tampered with in any of
the ways below, no signature may verify. opendkim-testmsg asks DNS: it runs with a name server on loopback,
in a network of its own where the machine allows that.
"""
import concurrent.futures
import contextlib
import fcntl
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import threading

import dkim

SIGNATURE = re.compile(rb"DKIM-Signature:.*?\r\n(?![ \t])", re.S)
RESOLV_CONF = "/etc/resolv.conf"
SERVER = "127.0.0.1"


# --- The mails


def signatures(mail):
    """The signature fields before a mail, and the mail after them."""
    fields = []
    while found := SIGNATURE.match(mail):
        fields.append(found.group())
        mail = mail[found.end():]
    return fields, mail


def replaced(old, new):
    def tamper(mail):
        assert old in mail, old
        return mail.replace(old, new, 1)
    return tamper


def added(field):
    return lambda mail: field + b"\r\n" + mail


def body(change):
    def tamper(mail):
        header, content = mail.split(b"\r\n\r\n", 1)
        return header + b"\r\n\r\n" + change(content)
    return tamper


def flipped(content):
    """Another letter where there is one; a body without any gets one."""
    found = re.search(rb"[A-Za-z]", content)
    if not found:
        return content + b"x\r\n"
    at = found.start()
    return content[:at] + (b"y" if content[at:at + 1] == b"x" else b"x") + content[at + 1:]


TAMPERED = {
    "letter in the body": body(flipped),
    "line after the body": body(lambda content: content + b"more\r\n"),
    "line before the body": body(lambda content: b"more\r\n" + content),
    "other sender": replaced(b"shop@mail.", b"chef@mail."),
    "other recipient": replaced(b"To: ", b"To: eve@example.com, "),
    "other subject": replaced(b"Subject: ", b"Subject: Re: "),
    "other date": replaced(b"Date: Sat, ", b"Date: Sun, "),
    "other message id": replaced(b"Message-ID: <msg_0", b"Message-ID: <msg_1"),
    "other version": replaced(b"MIME-Version: 1.0", b"MIME-Version: 1.1"),
    "other type": replaced(b"Content-Type: ", b"Content-Type: x-"),
    **{f"second {name}": added(name.encode() + b": eve@example.com") for name in (
        "From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type", "List-Unsubscribe",
        "List-Unsubscribe-Post", "Cc", "Reply-To")},
}


def harmless(mail):
    """What relays do on the way, and relaxed canonicalization forgives."""
    header, content = mail.split(b"\r\n\r\n", 1)
    header = header.replace(b"Subject: ", b"SUBJECT:  \r\n\t", 1) + b"\r\nX-Relay: seen"
    return b"Received: from a by b; today\r\n" + header + b"\r\n\r\n" + content + b" \r\n\r\n"


# --- The verifiers


class Dkimpy:
    name = "dkimpy"

    def __init__(self, records):
        self.records = {name.encode() + b".": text.encode() for name, text in records.items()}

    def verifies(self, mail):
        try:
            return dkim.DKIM(mail).verify(dnsfunc=lambda name, timeout=5: self.records.get(name))
        except dkim.ValidationError:
            return False


class OpenDkim:
    name = "opendkim-testmsg"

    def __init__(self, _):
        pass

    def verifies(self, mail):
        run = subprocess.run(["opendkim-testmsg"], input=mail, capture_output=True, timeout=60, check=False)
        if run.returncode == 0:
            return True
        # A field twice that may be there once is a syntax error. Anything else is trouble of ours, as with DNS.
        assert b"Bad signature" in run.stderr or b"Syntax error" in run.stderr, run.stderr
        return False


def check(verifier, number, mail):
    """Verifies a mail with each of its signatures, and with each kind of change; answers how many looks."""
    fields, plain = signatures(mail)
    algorithms = [re.search(rb"a=([a-z0-9-]+);", field).group(1).decode() for field in fields]
    assert algorithms == ["rsa-sha256", "ed25519-sha256"], algorithms
    for algorithm, field in zip(algorithms, fields):
        where = f"{number} {algorithm} {verifier.name}"
        assert verifier.verifies(field + plain), f"{where}: does not verify"
        assert verifier.verifies(field + harmless(plain)), f"{where}: does not survive the way"
        # All kinds of change at some mails, one at each other.
        kinds = list(TAMPERED)
        kinds = kinds if number < 10 else [kinds[number % len(kinds)]]
        for kind in kinds:
            assert not verifier.verifies(field + TAMPERED[kind](plain)), f"{where}: verifies with {kind}"
        other = re.sub(rb" b=(.)", lambda found: b" b=" + (b"B" if found.group(1) == b"A" else b"A"), field)
        assert not verifier.verifies(other + plain), f"{where}: verifies with another signature"
    return len(fields)


# --- DNS for opendkim-testmsg


def answer(query, records):
    """A reply to a question for TXT (RFC 1035 section 4)."""
    labels, at = [], 12
    while length := query[at]:
        labels.append(query[at + 1:at + 1 + length].decode().lower())
        at += 1 + length
    question = query[12:at + 5]
    text = records.get(".".join(labels))
    if text is None:
        return query[:2] + b"\x84\x03" + struct.pack("!4H", 1, 0, 0, 0) + question
    pieces = [text[i:i + 255].encode() for i in range(0, len(text), 255)]
    data = b"".join(bytes([len(piece)]) + piece for piece in pieces)
    resource = b"\xc0\x0c" + struct.pack("!HHIH", 16, 1, 60, len(data)) + data
    return query[:2] + b"\x84\x00" + struct.pack("!4H", 1, 1, 0, 0) + question + resource


def serve(records):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((SERVER, 53))

    def loop():
        while True:
            query, peer = server.recvfrom(4096)
            server.sendto(answer(query, records), peer)

    threading.Thread(target=loop, daemon=True).start()


def raise_loopback():
    """A new network has a loopback that is down."""
    up, get_flags, set_flags = 1, 0x8913, 0x8914
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, get_flags, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", request)[1]
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", flags | up))


@contextlib.contextmanager
def resolver(is_isolated, directory):
    """The machine's resolver asks our server; afterwards it is as it was."""
    own = f"nameserver {SERVER}\noptions attempts:1 timeout:5\n"
    if is_isolated:
        raise_loopback()
        (directory / "resolv.conf").write_text(own)
        subprocess.run(["mount", "--bind", directory / "resolv.conf", RESOLV_CONF], check=True)
        yield
        return
    with open(RESOLV_CONF) as file:
        before = file.read()
    try:
        with open(RESOLV_CONF, "w") as file:
            file.write(own)
        yield
    finally:
        with open(RESOLV_CONF, "w") as file:
            file.write(before)


# --- All together


def verify(verifier, mails):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        count = sum(pool.map(lambda item: check(verifier, *item), mails))
    print(f"{verifier.name}: {count} signatures of {len(mails)} mails")


def main(directory, mode="start"):
    directory = pathlib.Path(directory)
    records = dict(line.split("\t") for line in (directory / "records.txt").read_text().splitlines())
    mails = [(number, path.read_bytes()) for number, path in enumerate(sorted(directory.glob("*.eml")))]
    assert len(mails) >= 200, len(mails)
    if mode == "start":
        verify(Dkimpy(records), mails)
        for isolate in (["unshare", "--mount", "--net"], ["unshare", "--map-root-user", "--mount", "--net"]):
            if subprocess.run([*isolate, "true"], capture_output=True, check=False).returncode == 0:
                break
        else:
            isolate = []
        again = [*isolate, sys.executable, __file__, str(directory), "isolated" if isolate else "alone"]
        subprocess.run(again, check=True)
        return
    with resolver(mode == "isolated", directory):
        serve(records)
        verify(OpenDkim(records), mails)


if __name__ == "__main__":
    main(*sys.argv[1:])
