"""`sluice exec`: unmodified clients over HTTPS, exit codes and signals, locks, `sluice env` and `sluice ca`."""

import hashlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from harness.message import response_bytes
from harness.origin import Origin, refusing_port
from harness.proxy import Proxy, binary
from harness.site import Site
from harness.tls import TestAuthority, server_context

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients")
HOST = "origin.test"
RESOLVE = 'proxy.resolve={"origin.test" = "127.0.0.1"}'
UPLOAD = bytes(range(256)) * (5 * 4096)  # 5 MiB


class ExecCase(unittest.TestCase):
    """A state directory of one's own, and a TLS origin that only the proxy trusts."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="sluice-exec-")
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        cls.state = os.path.join(cls.directory, "state")
        cls.authority = TestAuthority(cls.directory)
        cls.certificate = cls.authority.certificate("origin", "DNS:" + HOST)
        cls.upload = os.path.join(cls.directory, "upload")
        with open(cls.upload, "wb") as file:
            file.write(UPLOAD)

    def environment(self, **more):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("SLUICE", "NODE_", "JAVA_")) and not name.lower().endswith("_proxy")}
        return dict(clean, HOME=self.directory, XDG_CONFIG_HOME=self.directory, XDG_STATE_HOME=self.directory, **more)

    def command(self, *command, options=(), settings=()):
        everything = (RESOLVE, 'proxy.connect_ports=["*"]', 'tls.extra_ca="%s"' % self.authority.path, *settings)
        flags = [word for setting in everything for word in ("--set", setting)]
        return [binary(), "exec", "--state-dir", self.state, *flags, *options, "--", *command]

    def exec(self, *command, options=(), settings=(), environment=None):
        return subprocess.run(self.command(*command, options=options, settings=settings), capture_output=True,
                              env=environment or self.environment(), timeout=60)

    def site(self, **options):
        site = Site(tls=server_context(self.certificate), **options)
        self.addCleanup(site.close)
        return site

    def wait(self, condition, timeout=10.0):
        deadline = time.monotonic() + timeout
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.01)
        return condition()


class Clients:
    """What each client does under exec; a subclass says how it is called."""

    needs = None

    @classmethod
    def setUpClass(cls):
        if cls.missing():
            raise unittest.SkipTest("%s is not installed" % cls.needs)
        super().setUpClass()
        cls.prepare()

    @classmethod
    def missing(cls):
        return not shutil.which(cls.needs)

    @classmethod
    def prepare(cls):
        """What must be built once."""

    def client(self, action, url):
        raise NotImplementedError

    def run_client(self, action, port, path, **options):
        done = self.exec(*self.client(action, "https://%s:%d%s" % (HOST, port, path)), **options)
        return done.stdout.decode("latin-1"), done.stderr.decode("latin-1")

    def test_get(self):
        site = self.site()
        said, complaint = self.run_client("get", site.port, "/hello")
        self.assertTrue(said.endswith("hello\n"), (said, complaint))
        self.assertIn("sluice", site.requests[0].get("Via", ""))
        self.assertFalse(site.requests[0].has("Proxy-Authorization"))

    def test_post_5_mib(self):
        site = self.site()
        said, complaint = self.run_client("post", site.port, "/upload")
        self.assertIn(hashlib.sha256(UPLOAD).hexdigest(), said, complaint)

    def test_stream(self):
        site = self.site()
        command = self.command(*self.client("stream", "https://%s:%d/stream" % (HOST, site.port)))
        with subprocess.Popen(command, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            got = b""
            while b"first\n" not in got and (data := os.read(process.stdout.fileno(), 4096)):
                got += data
            site.seen_first.set()
            rest, complaint = process.communicate(timeout=30)
        self.assertTrue((got + rest).endswith(b"first\nlast\n"), (got, rest, complaint))
        self.assertTrue(site.streamed, "the first bytes came only with the last")

    def test_429_is_retried_for_it(self):
        def script(visit):
            while visit.read_request():
                late = len(origin.requests) > 1
                visit.send(response_bytes(b"at last\n", "200 OK") if late
                           else response_bytes(b"slow down\n", "429 Too Many Requests", "Retry-After: 1"))

        origin = Origin(script, tls=server_context(self.certificate))
        self.addCleanup(origin.close)
        said, complaint = self.run_client("get", origin.port, "/")
        self.assertTrue(said.endswith("at last\n"), (said, complaint))
        self.assertGreater(origin.requests[1].at - origin.requests[0].at, 0.9)

    def test_a_refusal_can_be_read(self):
        keep, port = refusing_port()
        self.addCleanup(keep.close)
        said, complaint = self.run_client("get", port, "/")
        self.assertIn("refused", said, complaint)

    def test_without_interception_it_tunnels(self):
        site = self.site()
        said, complaint = self.run_client("get", site.port, "/hello", settings=('tls.intercept="never"',),
                                          environment=self.environment(SSL_CERT_FILE=self.authority.path,
                                                                       NODE_EXTRA_CA_CERTS=self.authority.path))
        self.check_tunnel(site, said, complaint)

    def check_tunnel(self, site, said, complaint):
        self.assertTrue(said.endswith("hello\n"), (said, complaint))
        self.assertFalse(site.requests[0].has("Via"))


class Curl(Clients, ExecCase):
    needs = "curl"

    def client(self, action, url):
        return ["curl", "-sSN", *(["-T", self.upload, "-X", "POST"] if action == "post" else []), url]


class Wget(Clients, ExecCase):
    needs = "wget"

    def client(self, action, url):
        post = ["--post-file", self.upload] if action == "post" else []
        return ["wget", "-q", "-O", "-", "--content-on-error", "--tries=1", *post, url]


class PythonCase(Clients, ExecCase):
    script = module = None

    @classmethod
    def missing(cls):
        return importlib.util.find_spec(cls.module) is None

    def client(self, action, url):
        return [sys.executable, os.path.join(HERE, self.script), action, url, self.upload]


class Urllib(PythonCase):
    script, module, needs = "urllib_client.py", "urllib.request", "python3"


class Requests(PythonCase):
    script, module, needs = "requests_client.py", "requests", "python3-requests"


class Httpx(PythonCase):
    script, module, needs = "httpx_client.py", "httpx", "python3-httpx"


class Aiohttp(PythonCase):
    script, module, needs = "aiohttp_client.py", "aiohttp", "python3-aiohttp"


class NodeFetch(Clients, ExecCase):
    needs = "node"

    def client(self, action, url):
        return ["node", os.path.join(HERE, "fetch_client.js"), action, url, self.upload]

    def check_tunnel(self, site, said, complaint):
        # NODE_EXTRA_CA_CERTS names our CA, not the origin's: that it does not verify shows that the
        # origin's own certificate came through.
        self.assertIn("certificate", complaint)

    def test_plain_http(self):
        origin = Origin()
        self.addCleanup(origin.close)
        done = self.exec(*self.client("get", "http://%s:%d/x?y" % (HOST, origin.port)))
        self.assertTrue(done.stdout.endswith(b"ok"), done)
        self.assertEqual(origin.requests[0].target, "/x?y")
        self.assertIn("sluice", origin.requests[0].get("Via", ""))
        self.assertEqual(origin.requests[0].all("Host"), ["%s:%d" % (HOST, origin.port)])


class Java(Clients, ExecCase):
    needs = "javac"

    @classmethod
    def prepare(cls):
        subprocess.run(["javac", "-d", cls.directory, os.path.join(HERE, "JavaHttps.java")], check=True)

    def client(self, action, url):
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", self.directory, "JavaHttps", action, url, self.upload]


class Git(ExecCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("git"):
            raise unittest.SkipTest("git is not installed")
        super().setUpClass()

    def test_clone_and_push(self):
        repositories = os.path.join(self.directory, "repositories")
        bare, work, copy = os.path.join(repositories, "r.git"), *(os.path.join(self.directory, n) for n in ("work", "copy"))
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", bare], check=True, env=self.environment())
        subprocess.run(["git", "-C", bare, "config", "http.receivepack", "true"], check=True, env=self.environment())
        url = "https://%s:%d/git/r.git" % (HOST, self.site(repositories=repositories).port)
        script = """set -e
            git clone -q "$0" "$1"; cd "$1"; cp "$3" data; git add data
            git -c user.name=T -c user.email=t@example.org commit -q -m five
            git push -q origin HEAD:main; git clone -q -b main "$0" "$2"; cmp data "$2/data"; echo same"""
        done = self.exec("sh", "-c", script, url, work, copy, self.upload)
        self.assertEqual(done.stdout, b"same\n", done.stderr)


class Exec(ExecCase):
    def test_exit_codes(self):
        self.assertEqual(self.exec("sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.exec("sh", "-c", "kill -TERM $$").returncode, 128 + signal.SIGTERM)
        missing = self.exec("no-such-command-anywhere")
        self.assertEqual(missing.returncode, 127)
        self.assertIn(b"no-such-command-anywhere", missing.stderr)

    def test_signals_are_passed_on(self):
        script = "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
        with subprocess.Popen(self.command("sh", "-c", script), env=self.environment(), stdout=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.terminate()
            self.assertEqual(process.communicate(timeout=20)[0], b"caught\n")
            self.assertEqual(process.returncode, 3)

    def test_the_private_proxy_ends_with_the_command(self):
        done = self.exec("sh", "-c", "echo $http_proxy")
        port = int(done.stdout.decode().strip().rpartition(":")[2])
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", port), 2)

    def test_job_names(self):
        named = self.exec("sh", "-c", "echo $HTTPS_PROXY", options=("--job", "nightly sync/é")).stdout.decode()
        self.assertRegex(named, "^http://nightly_sync___:exec-[0-9a-f]+[.][0-9]+[.]0@127.0.0.1:")
        unnamed = self.exec("/bin/sh", "-c", "echo $https_proxy").stdout.decode()
        self.assertRegex(unnamed, "^http://sh-[0-9]+:exec-")

    def test_a_running_daemon_is_used(self):
        daemon = Proxy(RESOLVE, 'proxy.connect_ports=["*"]', 'tls.extra_ca="%s"' % self.authority.path)
        self.addCleanup(daemon.remove)
        state = os.path.join(daemon.directory, "state")
        site = self.site()
        url = "https://%s:%d/hello" % (HOST, site.port)
        self.assertTrue(self.wait(lambda: os.path.exists(os.path.join(state, "proxy.address"))))
        command = [binary(), "exec", "--state-dir", state, "--", "sh", "-c", 'echo $http_proxy; curl -sS "$0"', url]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment(), timeout=30)
        self.assertIn("@127.0.0.1:%d\nhello" % daemon.port, done.stdout, done.stderr)
        self.assertIn("sluice", site.requests[0].get("Via", ""), "it was not looked into")
        command.insert(2, "--standalone")
        alone = subprocess.run(command, capture_output=True, text=True, env=self.environment(), timeout=30)
        self.assertNotIn(":%d\n" % daemon.port, alone.stdout)
        self.assertEqual(daemon.stop(), None)
        self.assertFalse(os.path.exists(os.path.join(state, "proxy.address")))

    def test_it_needs_no_other_password(self):
        hashed = subprocess.run(["openssl", "passwd", "-6", "secret"], check=True, capture_output=True, text=True)
        users = os.path.join(self.directory, "users")
        with open(users, "w") as file:
            file.write("somebody:" + hashed.stdout)
        os.chmod(users, 0o600)
        site = self.site()
        url = "https://%s:%d/hello" % (HOST, site.port)
        done = self.exec("curl", "-sS", url, settings=('access.users="%s"' % users,))
        self.assertEqual(done.stdout, b"hello\n", done.stderr)
        done = self.exec("sh", "-c", 'curl -sS -x "${https_proxy##*@}" "$0"', url, settings=('access.users="%s"' % users,))
        self.assertIn(b"407", done.stderr)


class Locks(ExecCase):
    def hold(self, name, ttl="1h"):
        """A command that has the lock and waits: (process, the pid of its child)."""
        process = subprocess.Popen(self.command("sh", "-c", "echo $$; read x", options=("--exclusive", name, "--ttl", ttl)),
                                   env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child = int(process.stdout.readline())

        def end():
            process.kill()
            process.wait()
            try:
                os.kill(child, signal.SIGKILL)
            except OSError:
                pass
            process.stdin.close()
            process.stdout.close()

        self.addCleanup(end)
        return process

    def attempt(self, name, ttl="1h"):
        return self.exec("true", options=("--exclusive", name, "--ttl", ttl))

    def test_the_second_is_told_who_has_it(self):
        holder = self.hold("nightly")
        second = self.attempt("nightly")
        self.assertEqual(second.returncode, 75)
        self.assertIn("nightly is already running: ", second.stderr.decode())
        self.assertIn("process %d (sh)" % holder.pid, second.stderr.decode())
        self.assertEqual(self.attempt("another").returncode, 0)
        holder.communicate(b"\n", timeout=20)
        self.assertEqual(self.attempt("nightly").returncode, 0)

    def test_twenty_race(self):
        log = os.path.join(self.directory, "race")
        # Each that runs must find itself alone in there.
        script = 'mkdir "$0" || echo together >> "$0.log"; echo ran >> "$0.log"; sleep 1; rmdir "$0"'
        commands = [subprocess.Popen(self.command("sh", "-c", script, log, options=("--exclusive", "race", "--ttl", "1h")),
                                     env=self.environment(), stderr=subprocess.DEVNULL) for _ in range(20)]
        codes = [process.wait(60) for process in commands]
        self.assertEqual(set(codes) - {0, 75}, set())
        with open(log + ".log") as file:
            lines = file.read().split()
        self.assertNotIn("together", lines)
        self.assertEqual(lines.count("ran"), codes.count(0))
        self.assertGreaterEqual(codes.count(75), 1)

    def test_a_dead_owners_lock_ends(self):
        holder = self.hold("short", "2s")
        self.assertEqual(self.attempt("short", "2s").returncode, 75)
        time.sleep(3)
        self.assertEqual(self.attempt("short", "2s").returncode, 75, "it is renewed while the owner lives")
        holder.kill()
        holder.wait()
        self.assertTrue(self.wait(lambda: self.attempt("short", "2s").returncode == 0))


class Env(ExecCase):
    def lines(self, *options):
        done = subprocess.run([binary(), "env", "--state-dir", self.state, *options], capture_output=True, text=True,
                              env=self.environment(NO_PROXY="internal.test", NODE_OPTIONS="--no-warnings"), check=True)
        return done.stdout

    def test_posix(self):
        script = self.lines("--shell", "bash", "--job", "it's") + '\nprintf "%s\\n" "$http_proxy" "$NO_PROXY" "$NODE_OPTIONS"\n' \
            'grep -c BEGIN "$CURL_CA_BUNDLE"; test -s "$NODE_EXTRA_CA_CERTS" && echo ca'
        said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split("\n")
        self.assertEqual(said[0], "http://it_s@127.0.0.1:7878")
        self.assertTrue(said[1].startswith("internal.test,localhost,"), said[1])
        self.assertIn("--no-warnings --require=", said[2])
        self.assertGreater(int(said[3]), 1)
        self.assertEqual(said[4], "ca")

    def test_every_client_is_thought_of(self):
        lines = self.lines("--shell", "sh")
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE",
                     "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "NODE_USE_ENV_PROXY", "GIT_SSL_CAINFO",
                     "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "PIP_CERT", "npm_config_cafile", "JAVA_TOOL_OPTIONS", "WGETRC",
                     "PHP_INI_SCAN_DIR", "BUNDLE_SSL_CA_CERT"):
            self.assertIn("export %s='" % name, lines)

    def test_fish(self):
        self.assertIn("set -gx https_proxy 'http://127.0.0.1:7878'\n", self.lines("--shell", "fish"))


class Ca(ExecCase):
    def ca(self, *arguments):
        return subprocess.run([binary(), "ca", *arguments, "--state-dir", self.state], capture_output=True, text=True,
                              env=self.environment())

    def test_init_export_path(self):
        made = self.ca("init")
        self.assertEqual(made.returncode, 0, made.stderr)
        path = self.ca("path").stdout.strip()
        exported = self.ca("export").stdout
        with open(path) as file:
            self.assertEqual(file.read(), exported)
        self.assertNotIn("PRIVATE", exported)
        shown = subprocess.run(["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-text"], input=exported,
                               capture_output=True, text=True, check=True).stdout
        self.assertIn("CA:TRUE, pathlen:0", shown)
        self.assertIn(made.stdout.rpartition("SHA-256")[2].strip(), shown)
        self.assertEqual(self.ca("init").stdout, made.stdout)
        self.assertNotEqual(self.ca("init", "--force").stdout, made.stdout)
        self.assertTrue(os.path.exists(path + ".old"))


del ExecCase, Clients, PythonCase  # bases, not tests
