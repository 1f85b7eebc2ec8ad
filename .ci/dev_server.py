"""A server for trying out, as the checks that call it from outside share it."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

DEADLINE = 60


def call(base, key, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(base + path, data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        return json.loads(answer.read() or b"null")


def expect(what, is_so):
    if not is_so:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


def start(program, data):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MESSAGING_")}
    arguments = [program, "dev", "--listen", "127.0.0.1:0", "--data", data, "--allow-private-targets"]
    server = subprocess.Popen(arguments, env={**environment, "MESSAGING_LOG": "warn"}, stdout=subprocess.DEVNULL)
    ends = time.monotonic() + DEADLINE
    while time.monotonic() < ends and server.poll() is None:
        # The address is written when everything else is there; dev.json is complete then or a moment later.
        try:
            with open(os.path.join(data, "listen"), encoding="utf-8") as file:
                address = file.read().strip()
            with open(os.path.join(data, "dev.json"), encoding="utf-8") as file:
                dev = json.load(file)
            if address and address in dev["base_url"]:
                return server, dev
        except (OSError, ValueError):
            pass
        time.sleep(0.05)
    server.kill()
    sys.exit("the server did not start")


def captured(dev, message_id):
    """The source of a message as it would have left, once the sandbox has it."""
    path = f"{dev['base_url']}/workspaces/{dev['workspace_id']}/sandbox/messages/{message_id}"
    request = urllib.request.Request(path, headers={"Authorization": f"Bearer {dev['api_key']}"})
    ends = time.monotonic() + DEADLINE
    while True:
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return answer.read()
        except urllib.error.HTTPError as refusal:
            if refusal.code != 404 or time.monotonic() > ends:
                raise
            time.sleep(0.05)
