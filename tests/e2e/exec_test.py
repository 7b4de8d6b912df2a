"""`sluice exec`: unmodified clients over HTTPS, exit codes and signals, locks, `sluice env` and `sluice ca`."""

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
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

    def everything(self, settings=()):
        """What the proxy under test is told besides."""
        return (RESOLVE, 'proxy.connect_ports=["*"]', 'tls.extra_ca="%s"' % self.authority.path, *settings)

    def command(self, *command, options=(), settings=(), policy=None):
        flags = [word for setting in self.everything(settings) for word in ("--set", setting)]
        if policy:
            policies = tempfile.mkdtemp(dir=self.directory)
            with open(os.path.join(policies, "policy.toml"), "w") as file:
                file.write(policy)
            flags += ["--policies", policies]
        return [binary(), "exec", "--state-dir", self.state, *flags, *options, "--", *command]

    def exec(self, *command, environment=None, **options):
        return subprocess.run(self.command(*command, **options), capture_output=True,
                              env=environment or self.environment(), timeout=60)

    def daemon(self, *settings, **options):
        """A proxy that runs already, with nothing of the tests' usual leniency."""
        daemon = Proxy(*self.everything(settings), **{"policy": None, **options})
        self.addCleanup(daemon.remove)
        record = os.path.join(daemon.state, "proxy.address")
        self.assertTrue(self.wait(lambda: os.path.exists(record)), daemon.log())
        return daemon

    def site(self, **options):
        site = Site(tls=server_context(self.certificate), **options)
        self.addCleanup(site.close)
        return site

    def wait(self, condition, timeout=10.0):
        deadline = time.monotonic() + timeout
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.01)
        return condition()


class ByDaemon:
    """Mixed into a test of exec: a daemon that runs already takes the part of the private proxy."""

    def command(self, *command, options=(), settings=(), policy=None):
        daemon = self.daemon(*settings, policy=policy)
        return [binary(), "exec", "--state-dir", daemon.state, *options, "--", *command]


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

    def test_a_limit_of_ours_can_be_read(self):
        limited = 'hosts = ["%s"]\n[limits]\nrequests = [{ count = 1, per = "1h" }]\n[hold]\nmax_wait = "2s"\n' % HOST
        site = self.site()
        client = self.client("get", "https://%s:%d/hello" % (HOST, site.port))
        done = self.exec("sh", "-c", '"$@" >/dev/null; "$@"', "sh", *client, policy=limited)
        self.assertIn("limits for %s:%d are used up" % (HOST, site.port), done.stdout.decode("latin-1"), done.stderr)
        self.assertEqual(len(site.requests), 1)

    def test_it_is_of_its_run(self):
        """Whether or not the client can show a name to a proxy."""
        site = self.site()
        client = self.client("get", "https://%s:%d/hello" % (HOST, site.port))
        done = self.exec("sh", "-c", '"$@" >/dev/null; "$@"', "sh", *client, options=("--job", "mine", "--max-requests", "1"))
        self.assertIn("job mine has sent the 1 requests it may send", done.stdout.decode("latin-1"), done.stderr)
        self.assertIn(b"sluice: job mine: 1 request, 0 held, 1 refused", done.stderr)
        self.assertEqual(len(site.requests), 1)

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


class NodeCase(Clients, ExecCase):
    needs = "node"
    script = None

    def client(self, action, url):
        return ["node", os.path.join(HERE, self.script), action, url, self.upload]

    def test_plain_http(self):
        origin = Origin()
        self.addCleanup(origin.close)
        done = self.exec(*self.client("get", "http://%s:%d/x?y" % (HOST, origin.port)))
        self.assertTrue(done.stdout.endswith(b"ok"), done)
        self.assertEqual(origin.requests[0].target, "/x?y")
        self.assertIn("sluice", origin.requests[0].get("Via", ""))
        self.assertEqual(origin.requests[0].all("Host"), ["%s:%d" % (HOST, origin.port)])
        self.assertFalse(origin.requests[0].has("Proxy-Authorization"))


class NodeFetch(NodeCase):
    script = "fetch_client.js"


class NodeHttps(NodeCase):
    script = "https_client.js"

    def test_a_body_that_waits_to_be_asked_for(self):
        """Node writes such a head down before an agent sees it."""
        site = self.site()
        for scheme in ("https", "http"):
            site = site if scheme == "https" else Site()
            self.addCleanup(site.close)
            done = self.exec(*self.client("expect", "%s://%s:%d/upload" % (scheme, HOST, site.port)))
            self.assertIn(hashlib.sha256(UPLOAD).hexdigest(), done.stdout.decode(), done.stderr)
            self.assertIn("sluice", site.requests[0].get("Via", ""))


class Java(Clients, ExecCase):
    needs = "javac"

    @classmethod
    def prepare(cls):
        subprocess.run(["javac", "-d", cls.directory, os.path.join(HERE, "JavaHttps.java")], check=True)

    def client(self, action, url):
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", self.directory, "JavaHttps", action, url, self.upload]


class Go(Clients, ExecCase):
    needs = "go"

    @classmethod
    def prepare(cls):
        environment = dict(os.environ, GOCACHE=os.path.join(cls.directory, "go"), GO111MODULE="off", CGO_ENABLED="0")
        cls.program = os.path.join(cls.directory, "go_client")
        subprocess.run(["go", "build", "-o", cls.program, os.path.join(HERE, "go_client.go")], check=True, env=environment)

    def client(self, action, url):
        return [self.program, action, url, self.upload]

    def test_without_the_ca_the_operator_is_told(self):
        daemon, site = self.daemon('tls.intercept="all"'), self.site()
        environment = self.environment(HTTPS_PROXY="http://%s:%d" % daemon.address)
        done = subprocess.run(self.client("get", "https://%s:%d/hello" % (HOST, site.port)), capture_output=True,
                              env=environment, timeout=60)
        self.assertIn(b"unknown authority", done.stderr)
        self.assertTrue(self.wait(lambda: "a client does not trust the CA" in daemon.log()), daemon.log())
        self.assertEqual(site.requests, [])


class Tools(ExecCase):
    """Programs that fetch from a registry, each asked for what costs it one or two requests."""

    def run_tool(self, answers, *command, **more):
        """What it prints when the site answers so: {path: body}."""
        def script(visit):
            while request := visit.read_request():
                body = answers.get(request.target.partition("?")[0])
                visit.send(response_bytes((body or "").replace("SITE", site).encode(), "200 OK" if body else "404 Not Found",
                                          "Content-Type: " + more.get("kind", "application/json")))

        origin = Origin(script, tls=server_context(self.certificate))
        self.addCleanup(origin.close)
        site = "https://%s:%d" % (HOST, origin.port)
        environment = self.environment(**more.get("variables", {}))
        if not shutil.which(command[0]) or subprocess.run([command[0], "--version"], capture_output=True,
                                                          env=environment).returncode != 0:
            self.skipTest(command[0] + " is not installed")
        done = self.exec(*[word.replace("SITE", site) for word in command], environment=environment)
        self.assertTrue(origin.requests, done)
        self.assertIn("sluice", origin.requests[0].get("Via", ""))
        return done.stdout.decode(), done

    def test_pip(self):
        said, done = self.run_tool({"/simple/thing/": '<a href="/thing-1.2.3.tar.gz">thing-1.2.3.tar.gz</a>'},
                                   "pip", "--disable-pip-version-check", "index", "versions", "thing", "-i", "SITE/simple",
                                   kind="text/html")
        self.assertIn("1.2.3", said, done)

    def test_npm(self):
        packument = {"name": "thing", "dist-tags": {"latest": "1.2.3"},
                     "versions": {"1.2.3": {"name": "thing", "version": "1.2.3", "dist": {"tarball": "SITE/t.tgz"}}}}
        said, done = self.run_tool({"/thing": json.dumps(packument)}, "npm", "view", "thing", "version", "--registry", "SITE/",
                                   variables={"npm_config_update_notifier": "false"})
        self.assertEqual(said, "1.2.3\n", done)

    def test_cargo(self):
        found = {"crates": [{"name": "thing", "max_version": "1.2.3", "description": "a thing"}], "meta": {"total": 1}}
        said, done = self.run_tool({"/config.json": '{"dl": "SITE/dl", "api": "SITE"}', "/api/v1/crates": json.dumps(found)},
                                   "cargo", "search", "thing", "--index", "sparse+SITE/",
                                   variables={"RUSTUP_HOME": os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))})
        self.assertIn('thing = "1.2.3"', said, done)

    def test_aws(self):
        listed = "<ListAllMyBucketsResult><Buckets><Bucket><Name>thing</Name></Bucket></Buckets></ListAllMyBucketsResult>"
        said, done = self.run_tool({"/": listed}, "aws", "s3api", "list-buckets", "--endpoint-url", "SITE", "--output", "json",
                                   "--region", "eu-central-1", kind="application/xml",
                                   variables={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})
        self.assertIn('"Name": "thing"', said, done)

    def test_curl_asks_exempt_hosts_itself(self):
        """NO_PROXY of the user's holds beside ours."""
        site = Site()
        self.addCleanup(site.close)
        for exempt, via in (("other.test, %s" % HOST, False), ("other.test", True)):
            done = self.exec("curl", "-sS", "--resolve", "%s:%d:127.0.0.1" % (HOST, site.port),
                             "http://%s:%d/hello" % (HOST, site.port), environment=self.environment(NO_PROXY=exempt))
            self.assertEqual(done.stdout, b"hello\n", done.stderr)
            self.assertEqual(site.requests[-1].has("Via"), via, exempt)


class Git(ExecCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("git"):
            raise unittest.SkipTest("git is not installed")
        super().setUpClass()

    def repository(self, name):
        """An empty one on a site: (site, its URL)."""
        repositories = os.path.join(self.directory, "repositories")
        bare = os.path.join(repositories, name)
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", bare], check=True, env=self.environment())
        subprocess.run(["git", "-C", bare, "config", "http.receivepack", "true"], check=True, env=self.environment())
        site = self.site(repositories=repositories)
        return site, "https://%s:%d/git/%s" % (HOST, site.port, name)

    def test_429_is_retried_for_it(self):
        site, url = self.repository("slow.git")
        site.too_much = 1
        done = self.exec("git", "ls-remote", url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(len(site.requests), 2)

    def test_a_refusal_is_told(self):
        keep, port = refusing_port()
        self.addCleanup(keep.close)
        done = self.exec("git", "ls-remote", "https://%s:%d/r.git" % (HOST, port))
        self.assertIn(b"502", done.stderr)

    def test_without_interception_it_tunnels(self):
        site, url = self.repository("tunnelled.git")
        done = self.exec("git", "ls-remote", url, settings=('tls.intercept="never"',),
                         environment=self.environment(SSL_CERT_FILE=self.authority.path))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(site.requests[0].has("Via"))

    def test_clone_and_push(self):
        url = self.repository("r.git")[1]
        work, copy = (os.path.join(self.directory, name) for name in ("work", "copy"))
        script = """set -e
            git clone -q "$0" "$1"; cd "$1"; cp "$3" data; git add data
            git -c user.name=T -c user.email=t@example.org commit -q -m five
            git push -q origin HEAD:main; git clone -q -b main "$0" "$2"; cmp data "$2/data"; echo same"""
        done = self.exec("sh", "-c", script, url, work, copy, self.upload)
        self.assertEqual(done.stdout, b"same\n", done.stderr)


for _client in (Curl, Wget, Urllib, Requests, Httpx, Aiohttp, NodeFetch, NodeHttps, Java, Go, Git):
    globals()[_client.__name__ + "ByDaemon"] = type(_client.__name__ + "ByDaemon", (ByDaemon, _client),
                                                    {"__module__": __name__})
del _client


class Exec(ExecCase):
    def test_exit_codes(self):
        self.assertEqual(self.exec("sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.exec("sh", "-c", "kill -TERM $$").returncode, 128 + signal.SIGTERM)
        missing = self.exec("no-such-command-anywhere")
        self.assertEqual(missing.returncode, 127)
        self.assertIn(b"no-such-command-anywhere", missing.stderr)
        plain = self.exec(self.upload)
        self.assertEqual(plain.returncode, 126)
        self.assertIn(b"Permission denied", plain.stderr)

    def said(self, *words):
        """What exec, called with these words, makes of them: (exit code, output, complaint)."""
        done = subprocess.run([binary(), "exec", "--state-dir", self.state, *words], capture_output=True, text=True,
                              env=self.environment(), timeout=30)
        return done.returncode, done.stdout, done.stderr

    def test_wrong_words_run_nothing(self):
        for words, complaint in ((("--exlusive", "sync", "--max-requests", "5", "--"), "not expected: --exlusive"),
                                 (("--exlusive=sync",), "not expected: --exlusive=sync"),
                                 (("--exclusive", "", "--"), "--exclusive: "),
                                 (("--exclusive", "a b", "--"), "--exclusive: \"a b\" is no name for a lock"),
                                 (("--exclusive", "x" * 65, "--"), "64 at most"),
                                 (("--max-requests", "-1", "--"), "--max-requests: "),
                                 (("--max-requests", "0", "--"), "--max-requests: "),
                                 (("--ttl", "1h", "--"), "--ttl requires --exclusive")):
            with self.subTest(words=words):
                code, said, told = self.said(*words, "sh", "-c", "echo ran")
                self.assertEqual((code, said), (2, ""))
                self.assertIn(complaint, told)

    def test_dashes_of_the_command_are_its_own(self):
        for words, wanted in ((("--", "sh", "-c", 'echo "$@"', "sh", "a", "--", "b"), "a -- b\n"),
                              (("sh", "-c", 'echo "$@"', "sh", "a", "--", "b"), "a -- b\n"),
                              (("--job", "j", "printf", "--", "%s", "x"), "x")):
            with self.subTest(words=words):
                code, said, told = self.said(*words)
                self.assertEqual((code, said), (0, wanted), told)

    def test_an_exit_code_where_ends_of_children_are_ignored(self):
        """Some supervisors start what they start with SIGCHLD ignored."""
        done = subprocess.run(self.command("sh", "-c", "exit 7"), env=self.environment(), timeout=30,
                              preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 7)

    def test_a_private_proxy_that_dies_is_missed(self):
        script = 'for p in $(cat /proc/$PPID/task/$PPID/children); do [ $p = $$ ] || kill -9 $p; done; read x; exit 4'
        with subprocess.Popen(self.command("sh", "-c", script), env=self.environment(), stdin=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            self.assertIn(b"the proxy for this command has ended", process.stderr.readline())
            process.communicate(b"\n", timeout=20)
            self.assertEqual(process.returncode, 4)

    def test_the_last_line_says_what_it_did(self):
        """One is under way, one waits behind it and too long, one finds no room to wait."""
        narrow = ('hosts = ["%s"]\n[pace]\nadapt = "off"\nmax_concurrency = 1\n[retry]\nmax = 0\n'
                  '[hold]\nmax_wait = "1s"\nmax_queue = 1\n' % HOST)
        site = self.site()
        url = "https://%s:%d" % (HOST, site.port)
        script = """curl -sSN "$0/stream" & first=$!; read x
            curl -sS "$0/hello" >"$1.a" & a=$!; curl -sS "$0/hello" >"$1.b" & b=$!; wait $a; wait $b; echo both; wait $first"""
        refused = os.path.join(self.directory, "refused")
        command = self.command("sh", "-c", script, url, refused, policy=narrow, options=("--job", "narrow"))
        with subprocess.Popen(command, env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"first\n")
            process.stdin.write(b"\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), b"both\n")
            site.seen_first.set()
            said = process.communicate(timeout=30)[1].decode()
        reasons = []
        for name in ("a", "b"):
            with open(refused + "." + name) as file:
                reasons.append(json.load(file)["reason"])
        self.assertEqual(sorted(reasons), ["hold-timeout", "queue-full"])
        self.assertRegex(said, r"(?m)^sluice: job narrow: 1 request, 1 held, 2 refused, waited [1-9][0-9.]* s, cost 0.00 USD$")

    def test_one_that_has_failed_works_again_when_it_is_started_again(self):
        daemon = self.daemon("jobs.fail_after=3", policy='hosts = ["*"]\n[breaker]\nconsecutive = 100\n[retry]\nmax = 0\n')
        keep, port = refusing_port()
        self.addCleanup(keep.close)
        site = self.site()
        good = "https://%s:%d/hello" % (HOST, site.port)

        def run(script):
            done = subprocess.run([binary(), "exec", "--state-dir", daemon.state, "--job", "crawl", "--", "sh", "-c", script,
                                   good, "https://%s:%d/" % (HOST, port)], capture_output=True, env=self.environment(), timeout=60)
            return done.stdout.decode(), done.stderr.decode()

        said, complaint = run('for i in 1 2 3; do curl -sS "$1"; echo; done; curl -sS "$0"')
        self.assertIn("job crawl has failed 3 times in a row; it may go on with its next run", said, complaint)
        self.assertEqual(site.requests, [])
        status = [binary(), "status", "--json", "--state-dir", daemon.state]
        jobs = lambda: json.loads(subprocess.run(status, capture_output=True, check=True).stdout)["jobs"]
        self.assertTrue(self.wait(lambda: [job["state"] for job in jobs()] == ["refused"]), jobs())
        said, complaint = run('curl -sS "$0"')
        self.assertEqual(said, "hello\n", complaint)

    def test_max_requests(self):
        site = self.site()
        url = "https://%s:%d/hello" % (HOST, site.port)
        for _ in range(2):  # a run of the same name begins anew
            done = self.exec("sh", "-c", 'curl -sS "$0"; curl -sS "$0"; curl -sS "$0"', url,
                             options=("--max-requests", "2", "--job", "short"))
            self.assertEqual(done.stdout.count(b"hello\n"), 2)
            self.assertIn(b"job-limit", done.stdout)
            self.assertIn(b"job short: 2 requests, 0 held, 1 refused", done.stderr)

    def test_signals_are_passed_on(self):
        script = "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
        with subprocess.Popen(self.command("sh", "-c", script), env=self.environment(), stdout=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.terminate()
            self.assertEqual(process.communicate(timeout=20)[0], b"caught\n")
            self.assertEqual(process.returncode, 3)

    def test_a_signal_before_the_command_is_there(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            def be_early():  # what is blocked and pending stays so through exec
                signal.pthread_sigmask(signal.SIG_BLOCK, [number])
                os.kill(os.getpid(), number)

            with self.subTest(number):
                done = subprocess.run(self.command("sh", "-c", "echo ran"), env=self.environment(), capture_output=True,
                                      timeout=30, preexec_fn=be_early)
                self.assertEqual((done.returncode, done.stdout), (128 + number, b""), done.stderr)

    def test_the_private_proxy_ends_with_the_command(self):
        done = self.exec("sh", "-c", "echo $http_proxy")
        port = int(done.stdout.decode().strip().rpartition(":")[2])
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", port), 2)

    def run_with_state(self, state, *command, cwd=None, **more):
        line = self.command(*command)
        line[line.index("--state-dir") + 1] = state
        return subprocess.run(line, capture_output=True, text=True, env=self.environment(**more), cwd=cwd, timeout=30)

    def test_a_relative_state_directory(self):
        """The command, and what it starts, may go elsewhere."""
        here = tempfile.mkdtemp(dir=self.directory)
        done = self.run_with_state("state", "sh", "-c", 'cd / && curl -sS "$0" && node -e "1"',
                                   "https://%s:%d/hello" % (HOST, self.site().port), cwd=here)
        self.assertEqual((done.returncode, done.stdout), (0, "hello\n"), done.stderr)

    def test_a_stop_and_a_port_that_is_not_allowed_are_told_inside(self):
        state = tempfile.mkdtemp(dir=self.directory)
        line = [binary(), "exec", "--state-dir", state, "--standalone", "--set", RESOLVE, "--",
                "curl", "-sS", "-w", " %{http_code} %{http_connect}", "https://%s:%d/" % (HOST, self.site().port)]
        ask = lambda: subprocess.run(line, capture_output=True, text=True, env=self.environment(), timeout=30).stdout
        denied = ask()
        self.assertIn("proxy.connect_ports", denied)
        self.assertTrue(denied.endswith(" 403 200"), denied)
        open(os.path.join(state, "EMERGENCY_STOP"), "w").close()
        stopped = ask()
        self.assertIn("emergency-stop", stopped)
        self.assertTrue(stopped.endswith(" 503 200"), stopped)

    def test_a_ca_that_the_user_names_for_one_client_stays_trusted(self):
        for name in ("GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"):
            done = self.exec("sh", "-c", 'cat "$%s"' % name, environment=self.environment(**{name: self.authority.path}))
            with open(self.authority.path) as file:
                self.assertIn(file.read(), done.stdout.decode())

    def test_job_names(self):
        named = self.exec("sh", "-c", "echo $HTTPS_PROXY", options=("--job", "nightly sync/é")).stdout.decode()
        self.assertRegex(named, "^http://nightly_sync___:sluice@127.0.0.1:[0-9]+\n$")
        unnamed = self.exec("/bin/sh", "-c", "echo $https_proxy").stdout.decode()
        self.assertRegex(unnamed, "^http://sh-[0-9]+:sluice@127.0.0.1:")

    def test_a_running_daemon_is_used(self):
        daemon = self.daemon()
        state = daemon.state
        site = self.site()
        url = "https://%s:%d/hello" % (HOST, site.port)
        command = [binary(), "exec", "--state-dir", state, "--", "sh", "-c", 'echo $http_proxy; curl -sS "$0"', url]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment(), timeout=30)
        self.assertRegex(done.stdout, r"@127.0.0.1:[0-9]+\nhello", done.stderr)
        self.assertIn("sluice", site.requests[0].get("Via", ""), "it was not looked into")
        self.assertNotIn("settings of its own", done.stderr)
        self.assertRegex(done.stderr, r"sluice: job sh-[0-9]+: 1 request, 0 held, 0 refused, waited 0 s, cost 0.00 USD\n$")
        set_here = [*command[:2], "--set", 'log.level="debug"', *command[2:]]
        warned = subprocess.run(set_here, capture_output=True, text=True, env=self.environment(), timeout=30)
        self.assertIn("settings of its own", warned.stderr)
        command.insert(2, "--standalone")
        alone = subprocess.run(command, capture_output=True, text=True, env=self.environment(), timeout=30)
        self.assertIn("proxy.connect_ports", alone.stdout)  # by its own settings, only 443 and 8443
        self.assertEqual(len(site.requests), 2)
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

    def test_the_address_is_the_runs_own(self):
        """Whatever a client shows or does not show, it is of this run; and gone when the run is."""
        site = self.site()
        url = "https://%s:%d/hello" % (HOST, site.port)
        script = """bare=${https_proxy##*@}; curl -sS -x $bare "$0"; curl -sS -x other:secret@$bare "$0"; curl -sS "$0"
            echo $bare"""
        done = self.exec("sh", "-c", script, url, options=("--job", "mine", "--max-requests", "2"))
        said = done.stdout.decode()
        self.assertEqual(said.count("hello\n"), 2, (said, done.stderr))
        self.assertIn("job-limit", said)
        self.assertIn(b"job mine: 2 requests, 0 held, 1 refused", done.stderr)
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", int(said.rpartition(":")[2])), 2)

    def test_many_clients_at_once(self):
        """All connected before the first has asked; each is served."""
        origin = Origin()
        self.addCleanup(origin.close)
        script = """import os, socket, urllib.parse
place = urllib.parse.urlsplit(os.environ["http_proxy"])
clients = [socket.create_connection((place.hostname, place.port), 30) for _ in range(400)]
for client in clients: client.sendall(b"GET http://%s:%d/ HTTP/1.1\\r\\nHost: %s:%d\\r\\nConnection: close\\r\\n\\r\\n")
good = 0
for client in clients:
    answer = b""
    while data := client.recv(4096): answer += data
    good += answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"ok")
print(good)""" % ((HOST, origin.port) * 2)
        done = self.exec(sys.executable, "-c", script, options=("--job", "burst"), policy='hosts = ["*"]\nmode = "observe"\n')
        self.assertEqual(done.stdout, b"400\n", done.stderr)
        self.assertIn(b"job burst: 400 requests", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_another_user_is_turned_away(self):
        site = self.site()
        url = "https://%s:%d/hello" % (HOST, site.port)
        script = """bare=${https_proxy##*@}
            setpriv --reuid=65534 --clear-groups -- curl -sS -k --noproxy "" -x $bare "$0" || echo away; curl -sS "$0" """
        done = self.exec("sh", "-c", script, url)
        self.assertEqual(done.stdout, b"away\nhello\n", done.stderr)
        self.assertIn(b"turned away a client of another user (65534)", done.stderr)
        self.assertEqual(len(site.requests), 1)

    def test_two_runs_of_one_job_at_once(self):
        """Each counts for itself, in its last line, in its caps and in `sluice status`."""
        daemon = self.daemon()
        site = self.site()
        url = "https://%s:%d/hello" % (HOST, site.port)
        runs = []
        for _ in range(2):
            runs.append(subprocess.Popen(
                [binary(), "exec", "--state-dir", daemon.state, "--job", "twin", "--max-requests", "2", "--", "sh", "-c",
                 'while read x; do curl -sS "$0" | head -c 5; echo; done', url],
                env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        for turn in range(2):
            for run in runs:
                run.stdin.write(b"\n")
                run.stdin.flush()
                self.assertEqual(run.stdout.readline(), b"hello\n", (turn, run.pid))

        def jobs(*more):
            done = subprocess.run([binary(), "status", "--state-dir", daemon.state, *more], capture_output=True, text=True,
                                  env=self.environment(), check=True)
            return done.stdout

        self.assertTrue(self.wait(lambda: [job["requests"] for job in json.loads(jobs("--json"))["jobs"]] == [2, 2]))
        self.assertTrue(self.wait(lambda: len(re.findall("(?m)^twin ", jobs())) == 2, 20), jobs())
        runs[0].stdin.write(b"\n")
        for run, wanted in zip(runs, (b"2 requests, 0 held, 1 refused", b"2 requests, 0 held, 0 refused")):
            self.assertIn(wanted, run.communicate(timeout=30)[1])

    def test_a_daemon_that_is_started_anew(self):
        """The next client of a command that goes on reaches it, and its counts go on."""
        first = self.daemon()
        site = self.site()
        url = "https://%s:%d/hello" % (HOST, site.port)
        run = subprocess.Popen([binary(), "exec", "--state-dir", first.state, "--job", "long", "--", "sh", "-c",
                                'while read x; do curl -sS "$0"; done', url],
                               env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(run.kill)
        for turn in range(2):
            run.stdin.write(b"\n")
            run.stdin.flush()
            self.assertEqual(run.stdout.readline(), b"hello\n", turn)
            if turn == 0:
                self.assertIsNone(first.stop())
                self.daemon(state=first.state)
        said = run.communicate(timeout=30)[1]
        self.assertIn(b"job long: 2 requests", said)


class Terminal(ExecCase):
    """What a terminal sends reaches the command, and once."""

    def start(self, *command):
        """A process that leads the session of a terminal of its own."""
        self.master, slave = os.openpty()

        def lead():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP):
                signal.signal(number, signal.SIG_DFL)  # whatever whoever runs the tests ignores

        process = subprocess.Popen(command, env=self.environment(), stdin=slave, stdout=slave, stderr=slave, preexec_fn=lead)
        os.close(slave)
        self.said = ""
        self.addCleanup(self.hang_up)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def hang_up(self):
        if self.master is not None:
            os.close(self.master)
            self.master = None

    def read_until(self, text):
        while text not in self.said:
            try:
                self.said += os.read(self.master, 4096).decode()
            except OSError:  # everybody has closed it
                self.fail("%r did not come, but %r" % (text, self.said))

    def test_ctrl_c_comes_once(self):
        script = "trap 'echo interrupted' INT; trap 'echo over; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
        process = self.start(*self.command("sh", "-c", script))
        self.read_until("ready")
        os.write(self.master, b"\x03")
        self.read_until("interrupted")
        process.terminate()
        self.read_until("over")
        self.assertEqual(process.wait(20), 3)
        self.assertEqual(self.said.count("interrupted"), 1, self.said)

    def test_the_end_of_the_terminal(self):
        seen = os.path.join(self.directory, "hung-up")
        script = "trap 'echo seen >\"$0\"; exit 4' HUP; echo ready; while :; do sleep 0.05; done"
        process = self.start(*self.command("sh", "-c", script, seen))
        self.read_until("ready")
        self.hang_up()
        self.assertEqual(process.wait(20), 4)
        self.assertTrue(os.path.exists(seen))

    def test_stopped_and_brought_back(self):
        shell = 'set -m; "$@"; echo stopped $?; fg >/dev/null; echo ended $?'
        self.start("bash", "-c", shell, "bash", *self.command("sh", "-c", "echo ready; read x; exit 6"))
        self.read_until("ready")
        os.write(self.master, b"\x1a")
        self.read_until("stopped %d" % (128 + signal.SIGTSTP))
        os.write(self.master, b"\n")
        self.read_until("ended 6")


class Locks(ExecCase):
    def hold(self, name, ttl="1h"):
        """A command that has the lock and waits; its attribute `child` is the pid of what it runs."""
        process = subprocess.Popen(self.command("sh", "-c", "echo $$; read x", options=("--exclusive", name, "--ttl", ttl)),
                                   env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(lambda: [pipe.close() for pipe in (process.stdin, process.stdout, process.stderr)])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)  # which ends the child as well
        line = process.stdout.readline()
        if not line:
            return None  # somebody else has it
        process.child = int(line)
        return process

    def lives(self, pid):
        try:
            with open("/proc/%d/stat" % pid) as file:
                return file.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

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

    def test_a_time_too_short_to_renew_in_is_refused(self):
        for ttl in ("900ms", "soon"):
            done = self.attempt("hasty", ttl)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"--ttl: ", done.stderr)

    def test_a_dead_owners_lock_ends(self):
        holder = self.hold("short", "2s")
        self.assertEqual(self.attempt("short").returncode, 75)
        holder.kill()
        holder.wait()
        self.assertTrue(self.wait(lambda: not self.lives(holder.child)), "what it ran goes on without the lock")
        self.assertTrue(self.wait(lambda: self.attempt("short").returncode == 0, 20))

    def test_it_is_kept_while_what_the_command_left_goes_on(self):
        """A shell that a signal ends leaves what it has started behind."""
        options = ("--exclusive", "left", "--ttl", "1h")
        with subprocess.Popen(self.command("sh", "-c", "sleep 300 >&2 & echo $!; wait", options=options),
                              env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            left = int(process.stdout.readline())
            self.addCleanup(os.kill, left, signal.SIGKILL)
            process.terminate()
            self.assertEqual(process.wait(20), 128 + signal.SIGTERM)
        self.assertTrue(self.lives(left))
        self.assertEqual(self.attempt("left").returncode, 75)

    def test_it_is_given_back_when_a_signal_ends_all_of_it(self):
        holder = self.hold("whole")
        holder.terminate()
        self.assertEqual(holder.wait(20), 128 + signal.SIGTERM)
        self.assertEqual(self.attempt("whole").returncode, 0)

    def test_it_is_renewed_whatever_signals_come(self):
        holder = self.hold("busy", "5s")
        until = time.monotonic() + 7
        while time.monotonic() < until:  # more often than it looks at the lock
            holder.send_signal(signal.SIGWINCH)
            time.sleep(0.1)
        self.assertEqual(self.attempt("busy").returncode, 75)
        self.assertTrue(self.lives(holder.child))

    def test_who_has_lost_it_ends(self):
        """Stopped for longer than the lock lasts, it finds another owner when it goes on."""
        holder = self.hold("lost", "5s")
        holder.send_signal(signal.SIGSTOP)
        others = []
        self.assertTrue(self.wait(lambda: any(others) or others.append(self.hold("lost")), 30), "nobody else got it")
        self.assertTrue(self.lives(holder.child))
        holder.send_signal(signal.SIGCONT)
        said = holder.stderr.read().decode()
        self.assertRegex(said, r"the lock lost was lost \(run [0-9a-f]+ of .*\), so the command is ended")
        self.assertEqual(holder.wait(20), 75)
        self.assertFalse(self.lives(holder.child))


class Env(ExecCase):
    def lines(self, *options):
        done = subprocess.run([binary(), "env", *(() if "--state-dir" in options else ("--state-dir", self.state)), *options], capture_output=True, text=True,
                              env=self.environment(NO_PROXY="internal.test", NODE_OPTIONS="--no-warnings"), check=True)
        return done.stdout

    def test_posix(self):
        script = self.lines("--shell", "bash", "--job", "it's") + '\nprintf "%s\\n" "$http_proxy" "$NO_PROXY" "$NODE_OPTIONS"\n' \
            'grep -c BEGIN "$CURL_CA_BUNDLE"; test -s "$NODE_EXTRA_CA_CERTS" && echo ca'
        said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split("\n")
        self.assertEqual(said[0], "http://it_s:sluice@127.0.0.1:7878")
        self.assertTrue(said[1].startswith("internal.test,localhost,"), said[1])
        self.assertIn("--no-warnings --require=", said[2])
        self.assertGreater(int(said[3]), 1)
        self.assertEqual(said[4], "ca")

    def test_every_client_is_thought_of(self):
        set_to = dict(re.findall(r"^export (\w+)='(.*)'$", self.lines("--shell", "sh"), re.MULTILINE))
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                     "npm_config_proxy", "npm_config_https_proxy", "CARGO_HTTP_PROXY"):
            self.assertEqual(set_to[name], "http://127.0.0.1:7878", name)
        for name in ("no_proxy", "NO_PROXY", "npm_config_noproxy"):
            self.assertEqual(set_to[name], "internal.test,localhost,127.0.0.0/8,127.0.0.1,::1", name)
        with open(os.path.join(self.state, "ca-cert.pem")) as file:
            ours = file.read()
        for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
                     "AWS_CA_BUNDLE", "PIP_CERT", "npm_config_cafile", "BUNDLE_SSL_CA_CERT", "NODE_EXTRA_CA_CERTS"):
            with open(set_to[name]) as file:
                self.assertIn(ours, file.read(), name)
        bundle = set_to["SSL_CERT_FILE"]
        with open(set_to["WGETRC"]) as file:
            self.assertIn("ca_certificate = %s\n" % bundle, file.read())
        with open(os.path.join(set_to["PHP_INI_SCAN_DIR"].lstrip(":"), "sluice.ini")) as file:
            self.assertIn('openssl.cafile = "%s"' % bundle, file.read())
        self.assertEqual(set_to["NODE_USE_ENV_PROXY"], "1")
        for option in ("-Dhttp.proxyHost=127.0.0.1", "-Dhttps.proxyPort=7878", "-Dhttp.nonProxyHosts=internal.test|*.internal.test|localhost"):
            self.assertIn(option, set_to["JAVA_TOOL_OPTIONS"])
        self.assertEqual(self.lines("--shell", "zsh"), self.lines("--shell", "sh"))

    def test_sourced_by_shells_and_used_by_curl(self):
        """As the help says it, in each shell; curl then goes through the proxy, of that job, and trusts its CA."""
        for shell, command in (("bash", ["bash", "--norc", "-c"]), ("zsh", ["zsh", "-f", "-c"]), ("fish", ["fish", "--no-config", "-c"])):
            with self.subTest(shell):
                if not shutil.which(shell):
                    self.skipTest(shell + " is not installed")
                daemon = self.daemon(policy='hosts = ["%s"]\nintercept = true\n' % HOST)
                site = self.site()
                env = "'%s' env --state-dir '%s' --job 'from %s' --shell %s" % (binary(), daemon.state, shell, shell)
                source = env + " | source" if shell == "fish" else 'eval "$(%s)"' % env
                url = "https://%s:%d/hello" % (HOST, site.port)
                done = subprocess.run([*command, "%s; curl -sS %s" % (source, url)], capture_output=True, timeout=40,
                                      env=self.environment(SHELL="/bin/" + shell))
                self.assertEqual((done.stdout, done.stderr), (b"hello\n", b""))
                self.assertIn("sluice", site.requests[0].get("Via", ""))
                status = [binary(), "status", "--json", "--state-dir", daemon.state]
                self.assertTrue(self.wait(lambda: [
                    job["name"] for job in json.loads(subprocess.run(status, capture_output=True, check=True).stdout)["jobs"]
                    if job["requests"] == 1] == ["from_" + shell]))

    def test_git_with_a_job_asks_for_no_password(self):
        daemon = self.daemon()
        script = self.lines("--shell", "bash", "--job", "mirror", "--state-dir", daemon.state) + \
            'git ls-remote http://%s:1/r.git' % HOST
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=40,
                              env=self.environment(GIT_TERMINAL_PROMPT="0"))
        self.assertNotIn("assword", done.stderr)
        self.assertIn("502", done.stderr)

    def test_a_shell_of_other_words(self):
        def env(*options):
            return subprocess.run([binary(), "env", "--state-dir", self.state, *options], capture_output=True, text=True,
                                  env=self.environment(SHELL="/usr/bin/tcsh"))

        refused = env()
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("does not speak the language of /usr/bin/tcsh; --shell ", refused.stderr)
        self.assertIn("export http_proxy=", env("--shell", "bash").stdout)

    def test_fish(self):
        self.assertIn("set -gx https_proxy 'http://127.0.0.1:7878'\n", self.lines("--shell", "fish"))


class Ca(ExecCase):
    def ca(self, *arguments):
        return subprocess.run([binary(), "ca", *arguments, "--state-dir", self.state], capture_output=True, text=True,
                              env=self.environment())

    def test_who_only_looks_makes_nothing(self):
        missing = os.path.join(self.directory, "typo", "x")
        for name in ("path", "export"):
            done = subprocess.run([binary(), "ca", name, "--state-dir", missing], capture_output=True, text=True,
                                  env=self.environment())
            self.assertEqual((done.returncode, done.stdout), (3, ""))
            self.assertIn("there is no state directory %s: `sluice ca init` makes it" % missing, done.stderr)
        self.assertFalse(os.path.exists(os.path.dirname(missing)))

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


del ByDaemon, ExecCase, Clients, NodeCase, PythonCase  # bases, not tests
