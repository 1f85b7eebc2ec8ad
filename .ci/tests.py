#!/usr/bin/env python3
"""Builds all tests of the workspace and runs them, two programs at a time, the longest first.

`cargo test` runs one program after the other, and half of the time of many is waiting: for PostgreSQL, for a browser,
for a process that was killed to come back. A busy machine may be later than a test waits for: up to eight tests of a
program that fail are named and tried once more when nothing else runs. What is broken fails twice.

Usage: tests.py [--programs FILE] [--beside COMMAND] [JOB ...]     (without names all jobs; `tests.py --list` shows them)

FILE lists the programs as they were built: it is written where it does not exist, and read instead of building again where
it does. COMMAND gets the processor time that the tests leave over while they wait; it has ended before those begin that need
a quiet machine.

Environment: AXE is the path of axe-core, OIDC_PROVIDER that of oidc-provider, SEEDS how many of the simulation's seeds are
tried.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
AT_A_TIME = 2
THREADS = "3"
# The harness tells how long a test took only where unstable options are allowed to it, see `environment_of`.
REPORT_TIME = ["-Zunstable-options", "--report-time"]
SLOWEST = 20
# So many failed tests of a program are tried once more.
MOST_FLAKY = 8
# Of a program; the slowest takes a third of it.
TIMEOUT = 30 * 60

# Tests that open a browser.
BROWSER = ["console::"]

# Of the engine's tests those that ask most of a store. What is left out: messaging-engine/tests/it/test_store.rs.
ON_POSTGRES = ["automation_work::", "campaign_work::", "transactions::", "webhook_deliveries::", "wrong_clock::",
               "fallbacks::", "writers::", "contact_messages::", "contact_bulk::"]
NOT_ON_POSTGRES = ["crash", "runs_of_a_merged_contact", "a_campaign_sends_to_every_device"]

# Tests that wait for work which gets only the processor time that nobody else wants, or for nodes that count seconds.
QUIET = ["memory::", "kill::nodes::"]


def skip(names):
    return [f"--skip={name}" for name in names]


# What is run of which program, the longest first. Programs that are named nowhere are run whole.
JOBS = [
    ("cli", "messaging-cli", "it", skip(["show_as::", *QUIET]), {}),
    ("store", "messaging-store", "it", [], {}),
    ("browser", "messaging-http", "it", BROWSER, {"REQUIRE_BROWSER": "1"}),
    ("engine-postgres", "messaging-engine", "it", [*ON_POSTGRES, *skip(NOT_ON_POSTGRES)], {"TEST_STORE": "postgres"}),
    ("simulation", "simulation", "it", [], {}),
    ("engine", "messaging-engine", "it", [], {}),
    ("show-as", "messaging-cli", "it", ["show_as::"], {"REQUIRE_BROWSER": "1"}),
    ("http", "messaging-http", "it", skip(BROWSER), {}),
    ("transport", "messaging-transport", "it", [], {}),
]

# Run after all others, one after the other.
ALONE = [("quiet", "messaging-cli", "it", QUIET, {})]

# Run only when named: it needs an S3 server.
NAMED = [("bucket", "messaging-store", "it", ["postgres::buckets::blobs"], {})]


def build():
    """The test programs: folder of the package, target, kind, path."""
    command = ["cargo", "build", "--locked", "--workspace", "--bins", "--tests", "--examples",
               "--message-format=json-render-diagnostics"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(done.returncode)
    found = []
    for line in done.stdout.splitlines():
        artifact = json.loads(line)
        if artifact["reason"] == "compiler-artifact" and artifact["executable"] and artifact["profile"]["test"]:
            folder = pathlib.Path(artifact["manifest_path"]).parent
            target = artifact["target"]
            found.append((folder.name, target["name"], target["kind"][0], artifact["executable"]))
    return found


def built_once(file):
    """The test programs, from a file where one was given and exists."""
    if file and file.exists():
        return json.loads(file.read_text())
    programs = build()
    if file:
        file.write_text(json.dumps(programs))
    return programs


def jobs(programs):
    """Name, program, folder, arguments and environment of what is to be run."""
    planned, listed = [], set()
    for name, folder, target, arguments, environment in JOBS + ALONE + NAMED:
        matching = [one for one in programs if one[0] == folder and one[1] == target and one[2] == "test"]
        if len(matching) != 1:
            raise SystemExit(f"{name}: {len(matching)} programs of {folder} are named {target}")
        planned.append((name, matching[0][3], folder, arguments, environment))
        listed.add(matching[0][3])
    for folder, target, kind, program in programs:
        if program not in listed:
            planned.append((f"{folder}-{target}-{kind}", program, folder, [], {}))
    return planned


def libraries():
    """Where programs that are loaded by the compiler, as macros are, find its libraries."""
    asked = subprocess.run(["rustc", "--print", "target-libdir"], stdout=subprocess.PIPE, text=True, check=True)
    return asked.stdout.strip()


def environment_of(folder, more):
    directory = ROOT / folder
    return {**os.environ, "RUST_TEST_THREADS": THREADS, "REQUIRE_POSTGRES": "1", "REQUIRE_BIND": "1",
            "CARGO_MANIFEST_DIR": str(directory), "LD_LIBRARY_PATH": libraries(), "RUST_BACKTRACE": "1", "TEST_BUSY": "3",
            "RUSTC_BOOTSTRAP": "1", **more}


def run(program, folder, arguments, environment):
    """Exit code and output of a test program."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        try:
            done = subprocess.run([program, *arguments, *REPORT_TIME], cwd=ROOT / folder, env=environment_of(folder, environment),
                                  stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, timeout=TIMEOUT)
            code = done.returncode
        except subprocess.TimeoutExpired:
            code = -1
        output.seek(0)
        return code, output.read()


class beside:
    """A command that runs beside the tests with the least priority; what it said is printed when both have ended."""

    def __init__(self, command):
        self.command, self.is_fine = command, True

    def __enter__(self):
        if self.command:
            self.output = tempfile.TemporaryFile("w+", errors="replace")
            self.process = subprocess.Popen(["nice", "-n", "19", self.command], cwd=ROOT, stdin=subprocess.DEVNULL,
                                            stdout=self.output, stderr=subprocess.STDOUT)
        return self

    def __exit__(self, *_):
        if self.command:
            self.is_fine = self.process.wait(timeout=TIMEOUT) == 0
            self.output.seek(0)
            print(self.output.read(), flush=True)
            if not self.is_fine:
                print(f"FAILED {self.command}", flush=True)


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--programs", type=pathlib.Path)
    asked.add_argument("--beside", metavar="COMMAND")
    asked.add_argument("--list", action="store_true")
    asked.add_argument("job", nargs="*")
    asked = asked.parse_args()
    wanted = asked.job
    planned = jobs(built_once(asked.programs))
    if asked.list:
        print(*(name for name, *_ in planned), sep="\n")
        return
    unknown = set(wanted) - {name for name, *_ in planned}
    if unknown:
        raise SystemExit(f"no such job: {', '.join(sorted(unknown))}; see --list")
    alone = {name for name, *_ in ALONE}
    named = {name for name, *_ in NAMED}
    planned = [job for job in planned if (job[0] in wanted if wanted else job[0] not in named)]
    failed, times, printing = [], [], threading.Lock()

    def one(job):
        name, program, folder, arguments, environment = job
        began = time.monotonic()
        code, output = run(program, folder, arguments, environment)
        summary = re.findall(r"^test result: (.*?); \d+ measured", output, re.M)
        with printing:
            times.extend((float(took), f"{name}: {test}")
                         for test, took in re.findall(r"^test (\S+) \.\.\. \w+ <([\d.]+)s>$", output, re.M))
            print(f"{name}: {summary[-1] if summary else 'no result'} in {time.monotonic() - began:.0f} s", flush=True)
            if code != 0:
                print(output, flush=True)
                failed.append((job, sorted(set(re.findall(r"^---- (.*) stdout ----$", output, re.M))), bool(summary)))
            elif not summary or "ok. 0 passed" in summary[-1] and arguments:
                failed.append((job, [], False))

    began = time.monotonic()
    with beside(asked.beside) as other, concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(one, (job for job in planned if job[0] not in alone)))
    for job in planned:
        if job[0] in alone:
            one(job)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"tests: {time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor time", flush=True)
    print(*(f"{took:7.1f} s  {test}" for took, test in sorted(times, reverse=True)[:SLOWEST]), sep="\n", flush=True)
    broken = not other.is_fine
    for (name, program, folder, _, environment), tests, finished in failed:
        # A program that did not get to its result, or has many failures, is not tried again.
        if not finished or not tests or len(tests) > MOST_FLAKY:
            print(f"FAILED {name}")
            broken = True
            continue
        print(f"FLAKY unless it fails again: {name}: {', '.join(tests)}", flush=True)
        code, output = run(program, folder, ["--exact", *tests], environment)
        if code != 0:
            print(output, flush=True)
            print(f"FAILED {name}")
            broken = True
    raise SystemExit(broken)


if __name__ == "__main__":
    main()
