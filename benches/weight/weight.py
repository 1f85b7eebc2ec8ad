#!/usr/bin/env python3
"""What the program weighs: seconds of compiling by crate, octets of code by crate, and the sections of the file.

Builds the program from nothing into a directory of its own, with its symbols, and prints the tables that rows of
benches/README.md are made of. Nothing else should run meanwhile.

Usage: weight.py [--profile PROFILE] [--package PACKAGE] [--keep DIRECTORY] [--rows N]
"""

import argparse
import collections
import json
import os
import pathlib
import re
import resource
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def build(profile, package, target):
    """Builds all of it; seconds on the wall and of processor."""
    environment = {**os.environ, "CARGO_TARGET_DIR": target, "CARGO_PROFILE_RELEASE_STRIP": "none",
                   "CARGO_PROFILE_DIST_STRIP": "none"}
    began = time.monotonic()
    subprocess.run(["cargo", "build", "--locked", "--quiet", "--timings", "--profile", profile, "-p", package],
                   cwd=ROOT, env=environment, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - began, used.ru_utime + used.ru_stime


def seconds(target):
    """Seconds of each unit on the wall, and how many of them were code generation, by crate."""
    report = max(pathlib.Path(target, "cargo-timings").glob("cargo-timing-*.html"), key=lambda file: file.stat().st_mtime)
    units = json.loads(re.search(r"const UNIT_DATA = (\[.*?\]);\n", report.read_text(), re.S).group(1))
    found = collections.defaultdict(lambda: [0.0, 0.0, 0])
    for unit in units:
        sections = dict(unit.get("sections") or [])
        generating = sections.get("codegen")
        row = found[unit["name"]]
        row[0] += unit["duration"]
        row[1] += generating["end"] - generating["start"] if generating else 0
        row[2] += 1
    return found


def code(program):
    """Octets of functions by crate, and by function with its generic parameters left out."""
    listed = subprocess.run(["nm", "--demangle=rust", "--print-size", "--size-sort", "--radix=d", program],
                            check=True, stdout=subprocess.PIPE, text=True, errors="replace").stdout
    crates, functions = collections.Counter(), collections.Counter()
    copies = collections.Counter()
    for line in listed.splitlines():
        parts = line.split(" ", 3)
        if len(parts) < 4 or parts[2] not in "tTwW":
            continue
        name = re.sub(r"::h[0-9a-f]{16}$", "", parts[3])
        size = int(parts[1])
        found = re.match(r"[<&*(\[ ]*(?:mut |dyn |const )*([A-Za-z_][A-Za-z0-9_]*)(?:\[[0-9a-f]+\])?::", name)
        crates[found.group(1) if found else "C"] += size
        short = name
        while True:
            # `<Type as Trait>::function` is told as the trait's.
            shorter = re.sub(r"<[^<>]* as ([^<>]+)>", r"\1", short)
            shorter = re.sub(r"::<[^<>]*>|<[^<>]*>", "", shorter)
            if shorter == short:
                break
            short = shorter
        functions[short or name] += size
        copies[short or name] += 1
    return crates, functions, copies


def sections(program):
    listed = subprocess.run(["size", "-A", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {parts[0]: int(parts[1]) for parts in map(str.split, listed.splitlines()) if len(parts) == 3 and parts[1].isdigit()}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--profile", default="release")
    arguments.add_argument("--package", default="messaging-cli")
    arguments.add_argument("--keep", help="directory to build into, kept afterwards; it must not exist")
    arguments.add_argument("--rows", type=int, default=25)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        target = given.keep or temporary
        wall, processor = build(given.profile, given.package, target)
        program = pathlib.Path(target, given.profile, "messaging")
        print(f"{given.profile}: {wall:.0f} s on the wall, {processor:.0f} s of processor")
        found = seconds(target)
        print(f"\n{'crate':32}{'seconds':>9}{'codegen':>9}{'units':>7}")
        for name, (whole, generating, units) in sorted(found.items(), key=lambda row: -row[1][0])[:given.rows]:
            print(f"{name:32}{whole:9.1f}{generating:9.1f}{units:7}")
        print(f"{'all':32}{sum(row[0] for row in found.values()):9.1f}{sum(row[1] for row in found.values()):9.1f}"
              f"{sum(row[2] for row in found.values()):7}")
        crates, functions, copies = code(program)
        print(f"\n{'code of crate':32}{'KB':>9}")
        for name, size in crates.most_common(given.rows):
            print(f"{name:32}{size / 1000:9.0f}")
        print(f"\n{'KB':>7}{'copies':>8}  function")
        for name, size in functions.most_common(given.rows):
            print(f"{size / 1000:7.0f}{copies[name]:8}  {name[:110]}")
        print(f"\n{'section':32}{'KB':>9}")
        for name, size in sorted(sections(program).items(), key=lambda row: -row[1])[:8]:
            print(f"{name:32}{size / 1000:9.0f}")


if __name__ == "__main__":
    main()
