#!/usr/bin/env python3
"""Checks the API document with tools that are not ours, against the given `messaging` program.

* redocly lint, without a warning;
* schemathesis: every operation with made-up requests, single and in sequences, all of its checks but one (see .ci/api/schemathesis.toml);
* clients generated for TypeScript and Python, used for ten calls each.

Tools are installed into a folder that is thrown away. Exits with 1 at the first finding.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent / "api"
DOCUMENT = HERE.parent.parent / "docs/openapi.json"
DEADLINE = 60
# Requests made up for each operation.
EXAMPLES = 30


def run(*command, cwd, environment=None, seconds=900):
    done = subprocess.run(command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-20000:]}")
    return done.stdout


def start(program, data):
    """The try-out server, and what its callers need to know."""
    log = open(data.parent / "server.log", "w")
    server = subprocess.Popen([program, "dev", "--listen", "127.0.0.1:0", "--data", data, "--log", "warn"], stdout=log, stderr=log)
    end = time.monotonic() + DEADLINE
    while not (data / "dev.json").exists():
        if server.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"the server did not start:\n{(data.parent / 'server.log').read_text()}")
        time.sleep(0.1)
    known = json.loads((data / "dev.json").read_text())
    # Tools ask faster than a key may by default.
    key = json.loads(run(program, "admin", "create-key", "--workspace", known["workspace_id"], "--name", "tools", "--scopes",
                         "*", "--rate-limit", "100000", "--data", data, "--json", cwd=data))
    return server, {"MESSAGING_URL": known["base_url"], "MESSAGING_API_KEY": key["key"],
                    "MESSAGING_WORKSPACE": known["workspace_id"]}


def lint(folder):
    said = run("npx", "redocly", "lint", "--config", HERE / "redocly.yaml", "--format=json", DOCUMENT, cwd=folder)
    totals = json.loads(said[said.index('{\n  "totals"'):said.rindex("}") + 1])["totals"]
    if totals["errors"] or totals["warnings"]:
        raise SystemExit(f"redocly lint: {totals}\n{said}")
    print("redocly lint: nothing to say")


def typescript(folder, environment):
    run("npx", "openapi-typescript", DOCUMENT, "--output", "schema.d.ts", cwd=folder)
    (folder / "calls.ts").write_text((HERE / "calls.ts").read_text())
    run("npx", "tsc", "--strict", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022", "--types", "node",
        "--skipLibCheck", "calls.ts", cwd=folder)
    run("node", "calls.js", cwd=folder, environment=environment)
    print("TypeScript client: ten calls")


def python(folder, venv, environment):
    client = folder / "client"
    said = run(venv / "bin/openapi-python-client", "generate", "--path", DOCUMENT, "--output-path", client, "--meta", "none", "--config", HERE / "python-client.yaml",
               cwd=folder)
    if "Warning" in said:
        raise SystemExit(f"openapi-python-client: {said}")
    run(venv / "bin/python", HERE / "calls.py", folder, "client", cwd=folder, environment=environment)
    print("Python client: ten calls")


def schemathesis(folder, venv, environment):
    before = time.monotonic()
    # Coverage by itself: after another phase Python 3.11 may fail to parse the tool's own source in it (SystemError, "AST
    # constructor recursion depth mismatch").
    for phases in ["coverage", "examples,fuzzing,stateful"]:
        run(venv / "bin/schemathesis", "--config-file", HERE / "schemathesis.toml", "run", DOCUMENT,
            "--url", environment["MESSAGING_URL"], "-H", f"Authorization: Bearer {environment['MESSAGING_API_KEY']}",
            "--phases", phases, "--max-examples", str(EXAMPLES), "--seed", "1", "--workers", "1",
            "--suppress-health-check", "all", "--no-color", cwd=folder, environment=environment, seconds=1500)
    print(f"schemathesis: no finding in {time.monotonic() - before:.0f} s")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        venv = folder / "venv"
        run(sys.executable, "-m", "venv", venv, cwd=folder)
        run(venv / "bin/pip", "install", "--quiet", "schemathesis==4.32.5", "openapi-python-client==0.29.1", cwd=folder)
        (folder / "package.json").write_text('{"type": "module", "private": true}')
        run("npm", "install", "--silent", "--no-audit", "--no-fund", "@redocly/cli@2.77.0", "openapi-typescript@7.13.0",
            "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20", cwd=folder)
        lint(folder)
        server, environment = start(program, folder / "data")
        try:
            typescript(folder, environment)
            python(folder, venv, environment)
            schemathesis(folder, venv, environment)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(DEADLINE)


main()
