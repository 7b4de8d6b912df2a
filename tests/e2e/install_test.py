"""make install and uninstall, and the units: valid, hardened, and enough for the proxy to live with."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness.message import read_response, request_bytes
from harness.origin import Origin
from harness.proxy import ANY_PORT, Proxy, binary, sanitized
from harness.stream import connect

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FILES = ("bin/sluice", "share/man/man1/sluice.1", "share/man/man5/sluice.toml.5",
         "share/bash-completion/completions/sluice", "share/zsh/site-functions/_sluice",
         "share/fish/vendor_completions.d/sluice.fish", "share/sluice/policies/github.toml",
         "lib/systemd/system/sluice.service", "lib/systemd/system/sluice.socket", "lib/sysusers.d/sluice.conf",
         "share/doc/sluice/README.md")


def tool(case, name):
    path = shutil.which(name)
    if not path:
        case.skipTest("there is no %s here" % name)
    return path


class InstallCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="sluice-install-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def packaging(self, what, **settings):
        build = os.path.dirname(binary())
        done = subprocess.run([os.path.join(ROOT, "packaging/install"), what], capture_output=True, text=True,
                              env={**os.environ, "BUILD": build, **settings})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def found(self):
        out = []
        for where, _, files in os.walk(self.directory):
            out += [os.path.relpath(os.path.join(where, file), self.directory) for file in files]
        return sorted(out)


class Install(InstallCase):
    def test_everything_in_its_place(self):
        self.packaging("install", DESTDIR=self.directory, PREFIX="/opt/sluice")
        found = self.found()
        for file in FILES:
            self.assertIn("opt/sluice/" + file, found)
        self.assertIn("etc/sluice/sluice.toml", found)
        self.assertTrue(os.path.isdir(os.path.join(self.directory, "etc/sluice/policies")))
        unit = open(os.path.join(self.directory, "opt/sluice/lib/systemd/system/sluice.service")).read()
        self.assertIn("ExecStart=/opt/sluice/bin/sluice run\n", unit)
        self.assertNotIn("@", unit.replace("~@privileged @resources", "").replace("@system-service", ""))
        self.assertFalse([file for file in found if not file.startswith(("opt/sluice/", "etc/sluice/"))])

    def test_the_installed_program_runs(self):
        self.packaging("install", DESTDIR=self.directory)
        program = os.path.join(self.directory, "usr/local/bin/sluice")
        share = os.path.join(self.directory, "usr/local/share/sluice")
        done = subprocess.run([program, "check", share + "/sluice.toml", share + "/policies"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_uninstall_leaves_nothing(self):
        self.packaging("install", DESTDIR=self.directory)
        self.assertEqual(self.packaging("uninstall", DESTDIR=self.directory), "")
        self.assertEqual(self.found(), [])

    def test_changed_configuration_is_kept(self):
        config = os.path.join(self.directory, "etc/sluice/sluice.toml")
        self.packaging("install", DESTDIR=self.directory)
        with open(config, "a") as file:
            file.write("# mine\n")
        self.packaging("install", DESTDIR=self.directory)
        self.assertIn("etc/sluice", self.packaging("uninstall", DESTDIR=self.directory))
        self.assertEqual(self.found(), ["etc/sluice/sluice.toml"])
        self.assertTrue(open(config).read().endswith("# mine\n"))


class Units(InstallCase):
    def setUp(self):
        super().setUp()
        self.packaging("install", DESTDIR=self.directory, PREFIX="/usr")
        self.units = os.path.join(self.directory, "usr/lib/systemd/system")
        self.service = os.path.join(self.units, "sluice.service")
        # For what is asked about the program: it is here, not in /usr.
        with open(self.service) as file:
            text = file.read()
        with open(self.service, "w") as file:
            file.write(text.replace("ExecStart=/usr/", "ExecStart=%s/usr/" % self.directory))

    def test_systemd_understands_them(self):
        analyze = tool(self, "systemd-analyze")
        for unit in ("sluice.service", "sluice.socket"):
            done = subprocess.run([analyze, "verify", "--man=no", os.path.join(self.units, unit)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""), unit)

    def test_hardened(self):
        analyze = tool(self, "systemd-analyze")
        done = subprocess.run([analyze, "security", "--offline=yes", "--no-pager", "--threshold=20", self.service],
                              capture_output=True, text=True)
        level = re.search(r"Overall exposure level for sluice.service: ([\d.]+)", done.stdout)
        self.assertTrue(level, done.stdout + done.stderr)
        self.assertLessEqual(float(level[1]), 2.0)
        self.assertEqual(done.returncode, 0)

    def test_it_says_what_the_proxy_relies_on(self):
        text = open(self.service).read()
        for line in ("Type=notify", "WatchdogSec=30s", "ExecReload=/bin/kill -HUP $MAINPID", "StateDirectory=sluice",
                     "User=sluice", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="):
            self.assertIn("\n%s\n" % line, text)


class Confinement(unittest.TestCase):
    """There is no systemd to run under here: strace says what the proxy does, the unit what it may."""

    @classmethod
    def setUpClass(cls):
        strace = shutil.which("strace")
        if not strace or not shutil.which("systemd-analyze"):
            raise unittest.SkipTest("there is no strace or no systemd-analyze here")
        if sanitized():
            raise unittest.SkipTest("a sanitizer makes calls of its own")
        cls.trace = tempfile.NamedTemporaryFile(prefix="sluice-trace-")
        if subprocess.run([strace, "-f", "-o", cls.trace.name, "true"], capture_output=True).returncode:
            raise unittest.SkipTest("nobody may trace here")
        proxy = Proxy(ANY_PORT, 'proxy.drain="1s"', 'log.access="-"', prefix=[strace, "-f", "-qq", "-o", cls.trace.name])
        origin = Origin()
        try:
            for name in ("127.0.0.1", "localhost"):
                stream = connect(proxy.address)
                stream.send(request_bytes("GET", "http://%s:%d/" % (name, origin.port), ["Host: x"]))
                read_response(stream)
                stream.close()
            stream = connect(proxy.address)
            stream.send(request_bytes("CONNECT", origin.authority, ["Host: " + origin.authority]))
            read_response(stream, "CONNECT")
            stream.close()
            with open("/proc/%d/task/%d/children" % (proxy.pid, proxy.pid)) as children:
                os.kill(int(children.read().split()[0]), signal.SIGTERM)
            proxy.wait(20)
        finally:
            origin.close()
            proxy.remove()
        cls.calls = open(cls.trace.name).read()
        cls.unit = open(os.path.join(ROOT, "packaging/systemd/sluice.service.in")).read()

    def groups(self):
        out, group = {}, None
        text = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter"], check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            word = line.strip()
            if line.startswith("@"):
                group = out.setdefault(word, set())
            elif word and not word.startswith("#") and group is not None:
                group.add(word)
        return out

    def expand(self, groups, names):
        out = set()
        for name in names:
            out |= self.expand(groups, groups.get(name, ())) if name.startswith("@") else {name}
        return out

    def test_no_system_call_is_missing(self):
        groups = self.groups()
        allowed = set()
        for line in re.findall(r"^SystemCallFilter=(.*)$", self.unit, re.MULTILINE):
            names = self.expand(groups, line.lstrip("~").split())
            allowed = allowed - names if line.startswith("~") else allowed | names
        made = set(re.findall(r"^\d+ +(\w+)\(", self.calls, re.MULTILINE))
        self.assertIn("epoll_wait", made)
        self.assertEqual(made - allowed, set())

    def test_no_address_family_is_missing(self):
        allowed = set(re.search(r"^RestrictAddressFamilies=(.*)$", self.unit, re.MULTILINE)[1].split())
        made = set(re.findall(r" socket(?:pair)?\((AF_\w+)", self.calls))
        self.assertIn("AF_INET", made)
        self.assertEqual(made - allowed, set())

    def test_no_file_of_proc_is_missing(self):
        """ProcSubset=pid leaves a service the folders of processes, and nothing else below /proc."""
        opened = set(re.findall(r' open(?:at)?\((?:AT_FDCWD, )?"/proc/([^"]+)"', self.calls))
        self.assertIn("sys/kernel/random/boot_id", opened)
        hidden = {path for path in opened if not re.match(r"self\b|thread-self\b|\d", path)}
        if re.search(r"^ProcSubset=pid$", self.unit, re.MULTILINE):
            self.assertEqual(hidden, set())

    def test_no_memory_is_writable_and_executable(self):
        self.assertFalse(re.findall(r".*(?:mmap|mprotect)\(.*PROT_WRITE\|PROT_EXEC.*", self.calls))
