#!/usr/bin/env python3
"""Installs and starts what `packaging/` makes, as far as a machine without a container engine allows.

* the systemd unit: `systemd-analyze verify`, and its exposure stays low;
* the Debian package: installed, started, upgraded, purged in a Debian of its own (debootstrap);
* the examples for nginx and Caddy: both run there, before the installed server;
* the Dockerfile: its context resolves, and its last stage is put together by hand from what a distroless base
  holds, and run as its user with its environment and its health check.

Usage: packaging.py PACKAGE.deb (as root)
"""

import glob
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEADLINE = 30
# Of 10; what is left is the network, which a mail server is about.
EXPOSURE = 2.0
PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def run(*command, **options):
    """Runs a command to its end; what it printed, or an error with all of it."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, **options)
    if done.returncode != 0:
        raise SystemExit(f"{shlex.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(url, **options):
    """Status and body; errors of HTTP are answers too."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, **options), timeout=DEADLINE) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def wait_until(what, reached, process):
    """Asks until it is so; an error when the process ends or time runs out."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit(f"{what}: it ended with {process.returncode}")
        if reached():
            return
        time.sleep(0.05)
    raise SystemExit(f"{what}: not within {DEADLINE} s")


def answers(url):
    try:
        return fetch(url)[0] == 200
    except OSError:
        return False


def stop(process):
    """SIGTERM ends the server in order: exit code 0."""
    process.terminate()
    code = process.wait(DEADLINE)
    if code != 0:
        raise SystemExit(f"after SIGTERM the server ended with {code}")


def unit(temporary):
    text = (ROOT / "packaging/messaging.service").read_text()
    copy = temporary / "messaging.service"
    # Where the package is not installed, verify would miss the program and the manual.
    copy.write_text(text.replace("/usr/bin/messaging", "/bin/true").replace("Documentation=man:messaging(1)\n", ""))
    said = run("systemd-analyze", "verify", "--man=no", copy)
    if said.strip():
        raise SystemExit(f"systemd-analyze verify: {said}")
    table = run("systemd-analyze", "security", "--no-pager", "--offline=true", copy)
    exposure = float(re.search(r"exposure level for messaging\.service: ([0-9.]+)", table).group(1))
    if exposure > EXPOSURE:
        raise SystemExit(f"the unit's exposure is {exposure}, more than {EXPOSURE}\n{table}")
    print(f"unit: verified, exposure {exposure} of 10")


def debian(temporary):
    """A Debian of its own."""
    chroot = temporary / "debian"
    chroot.mkdir()
    run("debootstrap", "--variant=minbase", "--include=adduser,ca-certificates,nginx-light,caddy", "bookworm", chroot)
    # No service is started by an installation.
    policy = chroot / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    (chroot / "etc/hosts").write_text("127.0.0.1 localhost\n")
    return chroot


class Unit:
    """Does what systemd does with the unit of the package, in a system of its own."""

    def __init__(self, chroot):
        self.chroot, self.text = chroot, (ROOT / "packaging/messaging.service").read_text()
        self.server = self.manager = None

    def value(self, name):
        return re.search(rf"^{name}=(.*)$", self.text, re.M).group(1)

    def environment(self):
        found = dict([self.value("Environment").split("=", 1)])
        file = self.chroot / self.value("EnvironmentFile").removeprefix("-/")
        if file.exists():
            found.update(line.split("=", 1) for line in file.read_text().split())
        return found

    def launch(self):
        """Makes the state directory and begins, with a socket at which the server tells of its state."""
        user = run("chroot", self.chroot, "id", "-u", self.value("User")).strip()
        state = self.chroot / "var/lib" / self.value("StateDirectory")
        state.mkdir(mode=0o700, exist_ok=True)
        os.chown(state, int(user), int(user))
        path = self.chroot / "run/messaging-notify"
        path.unlink(missing_ok=True)
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(str(path))
        self.manager.settimeout(DEADLINE)
        os.chmod(path, 0o666)
        inside = ["chroot", f"--userspec={self.value('User')}:{self.value('Group')}", self.chroot]
        environment = {"MESSAGING_LOG": "warn", "NOTIFY_SOCKET": "/run/messaging-notify", **PATH, **self.environment()}
        self.server = subprocess.Popen([*inside, *shlex.split(self.value("ExecStart"))], env=environment)

    def start(self):
        self.launch()
        told = self.manager.recv(100)
        if told != b"READY=1":
            raise SystemExit(f"the server tells of its start with {told}")
        # With the rights of root, and a failure is no fault of the unit.
        after = shlex.split(self.value("ExecStartPost").removeprefix("-+"))
        run("chroot", self.chroot, *after, env=PATH)

    def is_refused(self):
        """Whether a start ends as one whose settings cannot be used, which systemd does not repeat."""
        self.launch()
        return self.server.wait(DEADLINE) == int(self.value("RestartPreventExitStatus"))

    def stop(self):
        stop(self.server)
        told = self.manager.recv(100)
        if told != b"STOPPING=1":
            raise SystemExit(f"the server tells of its end with {told}")


def guide(text, marker):
    """The lines of the shell block of the installation guide that has a text."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    (found,) = [block for block in blocks if marker in block]
    return [line.strip() for line in found.strip().splitlines()]


def follow(unit, lines):
    """Carries out lines of the guide, as root and in the system of the unit."""
    for line in lines:
        if line.startswith("systemctl "):
            getattr(unit, line.split()[1])()
        elif line.startswith("apt install "):
            run("chroot", unit.chroot, "dpkg", "--install", "/messaging.deb", env=PATH)
        else:
            run("chroot", unit.chroot, "sh", "-c", line, env=PATH)


def way_back(unit, port):
    """The guide to an upgrade and back from it, line by line: what was there before the backup is there after it."""
    text = (ROOT / "docs/install.md").read_text()
    follow(unit, guide(text, "messaging backup /"))
    follow(unit, ["systemctl stop", "apt install ./messaging.deb", "systemctl start"])
    lines = guide(text, "systemctl stop messaging")
    moved = next(at for at, line in enumerate(lines) if line.startswith("mv ")) + 1
    follow(unit, lines[:moved])
    # Whoever starts it now has no installation, and gets no new one.
    if not unit.is_refused() or (unit.chroot / "var/lib/messaging/messaging.db").exists():
        raise SystemExit("without its database the service begins a new installation")
    follow(unit, lines[moved:])
    login = json.dumps({"email": "ann@example.com", "password": "a password for this test"}).encode()
    status, said = fetch(f"http://127.0.0.1:{port}/v1/auth/login", method="POST", data=login,
                         headers={"Content-Type": "application/json", "X-Forwarded-For": "192.0.2.200"})
    if status != 200:
        raise SystemExit(f"after the restore the user of before cannot sign in: {status} {said[:500]}")
    owners = {path.stat().st_uid for path in (unit.chroot / "var/lib/messaging").rglob("*")}
    if owners != {int(run("chroot", unit.chroot, "id", "-u", "messaging"))}:
        raise SystemExit(f"files of the restored server belong to {owners}")
    print("package: backup, upgrade, and the way back as the guide has it")


def package(chroot, deb):
    """Installs the package and starts what its unit starts; answers its unit, its port and an API key."""
    shutil.copy(deb, chroot / "messaging.deb")

    def dpkg(*arguments):
        return run("chroot", chroot, "dpkg", *arguments)

    said = dpkg("--install", "/messaging.deb")
    if "set hostname and public_url" not in said:
        raise SystemExit(f"the installation does not say what is next:\n{said}")
    for path in ("usr/share/man/man1/messaging.1.gz", "usr/share/doc/messaging/third-party.html",
                 "usr/share/bash-completion/completions/messaging", "lib/systemd/system/messaging.service"):
        if not (chroot / path).exists() and not (chroot / "usr" / path).exists():
            raise SystemExit(f"the package lacks {path}")
    settings = chroot / "etc/messaging/messaging.toml"
    if settings.stat().st_mode & 0o777 != 0o640:
        raise SystemExit("the settings can be read by everybody")

    # What the operator edits stays through an upgrade.
    port = free_port()
    text = settings.read_text().replace('listen = "127.0.0.1:8080"', f'listen = "127.0.0.1:{port}"')
    text = text.replace('#hostname = ', 'hostname = ').replace('#trusted_proxy = ', 'trusted_proxy = ')
    settings.write_text(text)
    dpkg("--install", "/messaging.deb")
    if settings.read_text() != text:
        raise SystemExit("an upgrade changed the settings")

    unit = Unit(chroot)
    unit.start()
    if not answers(f"http://127.0.0.1:{port}/health"):
        raise SystemExit("the server tells that it is ready, and does not answer")
    # The operator's commands, as the user of the server and while it runs.
    def admin(*command):
        return json.loads(run("chroot", "--userspec=messaging:messaging", chroot, "messaging", "admin", *command,
                              "--data", "/var/lib/messaging", "--json", env=PATH))

    admin("create-user", "--email", "ann@example.com", "--password", "a password for this test")
    workspace = admin("create-workspace", "--name", "Acme", "--owner", "ann@example.com")["id"]
    key = admin("create-key", "--workspace", workspace, "--name", "backend", "--scopes", "messages:send")["key"]
    print("package: installed, upgraded, started")
    return unit, port, key


def proxies(chroot, port, key):
    """The examples for nginx and Caddy, with other ports and without a certificate."""
    docs = chroot / "usr/share/doc/messaging/examples"

    front = free_port()
    text = (docs / "nginx.conf").read_text().replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    text = re.sub(r"listen 80;\n\s*listen \[::\]:80;", f"listen 127.0.0.1:{front};", text)
    (chroot / "etc/nginx/sites-enabled/default").unlink(missing_ok=True)
    (chroot / "etc/nginx/sites-enabled/messaging.conf").write_text(text)
    through("nginx", ["chroot", chroot, "nginx", "-g", "daemon off;"], front, key, {})

    front = free_port()
    (chroot / "etc/caddy/messaging").write_text((docs / "Caddyfile").read_text())
    through("Caddy", ["chroot", chroot, "caddy", "run", "--adapter", "caddyfile", "--config", "/etc/caddy/messaging"], front, key,
            {"MESSAGING_NAME": f"http://127.0.0.1:{front}", "MESSAGING_UPSTREAM": f"127.0.0.1:{port}", "HOME": "/root",
             "CADDY_ADMIN": f"127.0.0.1:{free_port()}"})


def through(name, command, front, key, environment):
    """Starts a proxy and asks through it."""
    proxy = subprocess.Popen(command, env={**PATH, **environment},
                             stdout=subprocess.DEVNULL)
    try:
        wait_until(name, lambda: answers(f"http://127.0.0.1:{front}/health"), proxy)
        login = json.dumps({"email": f"{name}@example.com", "password": "a wrong password"}).encode()
        for attempt in range(12):
            # Failed sign-ins are counted by the caller's address: that of the proxy must not be it.
            status, _ = fetch(f"http://127.0.0.1:{front}/v1/auth/login", method="POST", data=login,
                              headers={"Content-Type": "application/json", "X-Forwarded-For": f"192.0.2.{attempt}"})
        if status != 429:
            raise SystemExit(f"{name} passes on the address that a caller claims: {status} after 12 wrong passwords")
        # A body of 12 MiB passes; that it lacks a recipient is the server's answer.
        body = json.dumps({"channel": "email", "text": "x" * (12 << 20)}).encode()
        status, said = fetch(f"http://127.0.0.1:{front}/v1/messages", method="POST", data=body,
                             headers={"Content-Type": "application/json", "Authorization": f"Bearer {key}"})
        if status != 422:
            raise SystemExit(f"{name} does not pass on a large body: {status} {said[:500]}")
    finally:
        proxy.terminate()
        proxy.wait(DEADLINE)
    print(f"{name}: passes on")


def purge(chroot):
    run("chroot", chroot, "dpkg", "--remove", "messaging")
    if (chroot / "usr/bin/messaging").exists():
        raise SystemExit("the program is there after its removal")
    run("chroot", chroot, "dpkg", "--purge", "messaging")
    if not (chroot / "var/lib/messaging/messaging.db").exists():
        raise SystemExit("purging the package removed the database")
    if (chroot / "etc/messaging/installed.env").exists():
        raise SystemExit("purging the package left what its unit wrote among the settings")
    print("package: removed; the database stays")


def container(temporary, program):
    """The last stage of the Dockerfile, by hand."""
    stages = re.split(r"^FROM .*$", (ROOT / "Dockerfile").read_text(), flags=re.M)
    last = re.sub(r"\\\n", " ", stages[-1])
    environment = dict(pair.split("=", 1) for line in re.findall(r"^ENV (.*)$", last, re.M) for pair in line.split())
    check = json.loads(re.search(r"^HEALTHCHECK.*? CMD (\[.*\])$", last, re.M).group(1))
    entry = json.loads(re.search(r"^ENTRYPOINT (\[.*\])$", last, re.M).group(1))
    command = json.loads(re.search(r"^CMD (\[.*\])$", last, re.M).group(1))

    # The context: what .dockerignore lets through must be enough for cargo to resolve.
    context = temporary / "context"
    context.mkdir()
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        for path in glob.glob(str(ROOT / line[1:])) if line.startswith("!") else []:
            name = pathlib.Path(path).name
            if os.path.isdir(path):
                shutil.copytree(path, context / name, ignore=shutil.ignore_patterns("target"))
            else:
                shutil.copy(path, context / name)
    run("cargo", "metadata", "--locked", "--format-version=1", cwd=context)
    for source in re.findall(r"^COPY (?!--from)(.*) \S+$", last, re.M):
        for path in source.split():
            if not (context / path).exists():
                raise SystemExit(f"the Dockerfile copies {path}, which is not in its context")

    # gcr.io/distroless/cc-debian12: glibc, libgcc, root certificates.
    root = temporary / "image"
    for line in run("ldd", program).splitlines():
        found = re.search(r"(/\S+) \(0x", line)
        if not found:
            continue
        library = pathlib.Path(found.group(1))
        if not re.match(r"(ld-linux.*|libc|libm|libgcc_s|libdl|libpthread|librt)\.", library.name):
            raise SystemExit(f"the image has no {library.name}")
        (root / library.parent.relative_to("/")).mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library.relative_to("/"))
    (root / "usr/bin").mkdir(parents=True, exist_ok=True)
    shutil.copy(program, root / "usr/bin/messaging")
    (root / "tmp").mkdir(mode=0o1777)
    (root / "data").mkdir(mode=0o700)
    os.chown(root / "data", 65532, 65532)
    (root / "etc/ssl/certs").mkdir(parents=True)
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs/")

    # The network is this machine's, so the port is another one.
    port = free_port()
    environment["MESSAGING_LISTEN"] = environment["MESSAGING_LISTEN"].replace("8080", str(port))
    check = [word.replace("8080", str(port)) for word in check]
    inside = ["chroot", "--userspec=65532:65532", root]
    environment.update({"MESSAGING_LOG": "warn", **PATH})
    server = subprocess.Popen([*inside, *entry, *command], env=environment)
    try:
        wait_until("the image", lambda: answers(f"http://127.0.0.1:{port}/health"), server)
        run(*inside, *check, env=environment)
    finally:
        stop(server)
    if subprocess.run([*inside, *check], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        raise SystemExit("the health check of the image passes without a server")
    print("Dockerfile: context resolves, the image runs as its user, its health check tells")


def main():
    deb = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        temporary = pathlib.Path(folder)
        temporary.chmod(0o755)
        unit(temporary)
        chroot = debian(temporary)
        service, port, key = package(chroot, deb)
        try:
            proxies(chroot, port, key)
            way_back(service, port)
        finally:
            service.stop()
        program = temporary / "messaging"
        shutil.copy(chroot / "usr/bin/messaging", program)
        purge(chroot)
        container(temporary, program)


main()
