"""The Debian package in a clean Debian: installed, upgraded, removed, purged."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.request

from harness.message import read_response, request_bytes, response_bytes
from harness.origin import Origin, replying
from harness.proxy import binary, free_port
from harness.stream import connect

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
# Where it waits for the next run; the build directory is thrown away as a whole.
CACHE = os.path.join(ROOT, "build/clean-root")


def run(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **options)
    if done.returncode:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stdout[-3000:]))
    return done.stdout


def build(version=None):
    environment = {**os.environ, "PACKAGE_VERSION": version or ""}
    return os.path.join(ROOT, run(os.path.join(ROOT, "packaging/deb"), env=environment).strip())


def dependencies(deb):
    """The packages it needs. A virtual one is what provides it here: debootstrap knows real ones only."""
    providers = {}
    for line in run("dpkg-query", "-W", "-f", "${Package}: ${Provides}\n").splitlines():
        package, _, provided = line.partition(":")
        for name in re.findall(r"(?:^|,)\s*([\w.+-]+)", provided):
            providers[name] = package
    text = run("dpkg-deb", "--field", deb, "Depends")
    names = [re.match(r"[\w.+-]+", part.strip())[0] for part in text.split(",")]
    return [providers.get(name, name) for name in names]


def root_path(deb):
    needed = " ".join(sorted(dependencies(deb)))
    return "%s-%s.tar" % (CACHE, hashlib.sha256(needed.encode()).hexdigest()[:12])


def clean_root(deb):
    """A tar of a Debian 12 with nothing but what the package needs; made once, by debootstrap."""
    needed, path = sorted(dependencies(deb)), root_path(deb)
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory(prefix="sluice-debootstrap-") as directory:
            run("debootstrap", "--variant=minbase", "--include=" + ",".join(needed), "bookworm", directory, MIRROR)
            run("tar", "--one-file-system", "-C", directory, "--exclude=./var/cache/apt/archives/*.deb",
                "--exclude=./var/lib/apt/lists/*", "-cf", path + ".part", ".")
        os.rename(path + ".part", path)
    return path


class Package(unittest.TestCase):
    weight = 60  # debootstrap takes minutes, the first time

    @classmethod
    def setUpClass(cls):
        if os.path.realpath(binary()) != os.path.realpath(os.path.join(ROOT, "build/sluice")):
            raise unittest.SkipTest("the package is made of build/sluice")
        if os.geteuid() != 0:
            raise unittest.SkipTest("only root can change root")
        for name in ("dpkg-deb", "dpkg-shlibdeps", "debootstrap"):
            if not shutil.which(name):
                raise unittest.SkipTest("there is no %s here" % name)
        cls.old, cls.new = build(), build("999.0")
        if not os.path.exists(root_path(cls.old)):
            try:
                urllib.request.urlopen(MIRROR + "/dists/bookworm/Release", timeout=10).close()
            except OSError as problem:
                raise unittest.SkipTest("%s cannot be reached for a clean Debian: %s" % (MIRROR, problem))
        tar = clean_root(cls.old)
        cls.root = tempfile.mkdtemp(prefix="sluice-root-")
        run("tar", "-C", cls.root, "-xf", tar)
        os.chmod(cls.root, 0o755)  # it is the root of everybody in there

    @classmethod
    def tearDownClass(cls):
        os.remove(cls.new)
        shutil.rmtree(cls.root, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.root, name)

    def inside(self, *command):
        return run("chroot", self.root, *command)

    def dpkg(self, *arguments):
        return self.inside("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", *arguments)

    def install(self, deb):
        shutil.copy(deb, self.path("tmp/sluice.deb"))
        return self.dpkg("--force-confold", "-i", "/tmp/sluice.deb")

    def setUp(self):
        self.calls = self.path("tmp/systemctl.calls")
        for name in ("usr/bin/systemctl", "tmp/systemctl.calls"):
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))
        shutil.rmtree(self.path("run/systemd"), ignore_errors=True)
        self.dpkg("--purge", "sluice")

    def pretend_systemd(self):
        """What the scripts look for, and a systemctl that writes down what it is told."""
        os.makedirs(self.path("run/systemd/system"), exist_ok=True)
        with open(self.path("usr/bin/systemctl"), "w") as file:
            file.write('#!/bin/sh\necho "$@" >> /tmp/systemctl.calls\n'
                       'case "$*" in *is-enabled*) echo enabled ;; *is-active*) echo active ;; esac\n')
        os.chmod(self.path("usr/bin/systemctl"), 0o755)

    def told(self):
        with open(self.calls) as file:
            lines = [" ".join(word for word in line.split() if not word.startswith("-")) for line in file]
        os.remove(self.calls)
        return [line for line in lines if line.split()[0] in ("start", "stop", "restart", "daemon-reload")]

    # As sluice.service says, without systemd: its user, its state directory, the configuration in /etc.
    AS_USER = ("setpriv", "--reuid=sluice", "--regid=sluice", "--clear-groups", "env", "STATE_DIRECTORY=/var/lib/sluice")

    def as_user(self, *command):
        return self.inside(*self.AS_USER, *command)

    def run_service(self):
        self.inside("install", "-d", "-o", "sluice", "-g", "sluice", "-m", "0700", "/var/lib/sluice")
        port = free_port()
        process = subprocess.Popen(
            ["chroot", self.root, *self.AS_USER, "/usr/bin/sluice", "run", "--listen", "127.0.0.1:%d" % port, "--admin", "off"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close()))
        process.address = ("127.0.0.1", port)
        line = process.stdout.readline()
        self.assertIn("1 policy", line)
        return process

    def stop_service(self, process):
        process.terminate()
        self.assertEqual(process.wait(20), 0)

    def status_of(self, proxy, origin):
        stream = connect(proxy.address)
        self.addCleanup(stream.close)
        stream.send(request_bytes("GET", origin.url(), ["Host: " + origin.authority]))
        response = read_response(stream)
        return response.status, response.get("Sluice-Reason")

    def test_a_life(self):
        """Installed, used by the user it made, upgraded with what it learned, removed, purged."""
        self.install(self.old)
        self.assertRegex(self.inside("/usr/bin/sluice", "--version"), r"^sluice \d")
        self.assertIn("ok: 1 configuration, 0 policies", self.inside("sluice", "check"))
        self.assertIn("ok: 1 configuration", self.inside("sluice", "check", "/usr/share/sluice/policies"))
        self.assertIn("/nologin", self.inside("getent", "passwd", "sluice"))
        for file in ("lib/systemd/system/sluice.service", "lib/systemd/system/sluice.socket",
                     "usr/share/man/man1/sluice.1.gz", "usr/share/man/man5/sluice.toml.5.gz",
                     "usr/share/bash-completion/completions/sluice", "usr/share/zsh/vendor-completions/_sluice",
                     "etc/systemd/system/sockets.target.wants/sluice.socket",
                     "etc/systemd/system/multi-user.target.wants/sluice.service"):
            # Links lead somewhere in there, not out here.
            self.assertTrue(os.path.lexists(self.path(file)), file)

        open(self.path("etc/sluice/policies/mine.toml"), "w").write('hosts = ["127.0.0.1"]\n[retry]\nmax = 0\n')
        origin = Origin(replying(response_bytes(b"slow down", "429 Too Many Requests", "Retry-After: 600")))
        self.addCleanup(origin.close)
        proxy = self.run_service()
        self.assertEqual(self.status_of(proxy, origin), (429, None))
        with open(self.path("etc/sluice/sluice.toml"), "a") as file:
            file.write("# mine\n")

        self.install(self.new)
        self.assertIn("999.0", self.inside("dpkg-query", "-W", "sluice"))
        self.assertEqual(self.status_of(proxy, origin), (503, "breaker-open"), "the old one goes on until it is restarted")
        self.stop_service(proxy)
        proxy = self.run_service()
        self.assertEqual(self.status_of(proxy, origin), (503, "breaker-open"), "the new one knows what the old one learned")
        self.assertEqual(len(origin.requests), 1)
        self.assertRegex(self.as_user("/usr/bin/sluice", "status", "--state-dir", "/var/lib/sluice"), r"127\.0\.0\.1:\d+ +open")
        self.stop_service(proxy)
        kept = ("var/lib/sluice/data.mdb", "etc/sluice/policies/mine.toml", "etc/sluice/sluice.toml")
        for file in kept:
            self.assertTrue(os.path.exists(self.path(file)), file)
        self.assertTrue(open(self.path(kept[2])).read().endswith("# mine\n"))

        self.dpkg("--remove", "sluice")
        self.assertFalse(os.path.exists(self.path("usr/bin/sluice")))
        for file in kept:
            self.assertTrue(os.path.exists(self.path(file)), file)

        self.dpkg("--purge", "sluice")
        left = self.inside("find", "/etc", "/usr", "/lib/systemd", "/var/lib/sluice*", "-iname", "*sluice*") \
            if os.path.exists(self.path("var/lib/sluice")) else self.inside("find", "/etc", "/usr", "-iname", "*sluice*")
        self.assertEqual(left, "")

    def test_what_systemd_is_told(self):
        self.pretend_systemd()
        self.install(self.old)
        told = self.told()
        self.assertLess(told.index("daemon-reload"), told.index("start sluice.socket"))
        self.assertLess(told.index("start sluice.socket"), told.index("start sluice.service"))

        self.install(self.new)
        told = self.told()
        self.assertIn("restart sluice.service", told)
        self.assertFalse([call for call in told if call.startswith("stop")], "the socket must stay while upgrading")

        self.dpkg("--remove", "sluice")
        self.assertIn("stop sluice.service sluice.socket", self.told())

    def test_files_belong_to_root(self):
        listing = run("dpkg-deb", "--contents", self.old)
        for line in listing.splitlines():
            self.assertRegex(line, r"^\S+ root/root ", line)
        self.assertIn("./etc/sluice/policies/", listing)
