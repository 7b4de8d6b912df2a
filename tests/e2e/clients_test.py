"""Real clients through the built proxy. Each gets a page, posts 5 MiB, reads a stream while it is made,
follows a redirect, and shows an error that a person understands."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness.case import ProxyCase
from harness.site import Site
from harness.tls import make_certificate, server_context

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients")
UPLOAD = bytes(range(256)) * (5 * 4096)  # 5 MiB
MODULES = "/usr/share/nodejs"  # Debian's; a Node from elsewhere does not look there by itself


class ClientCase(ProxyCase):
    """The tests that every client takes. A subclass says how the client is called."""

    needs = None  # the Debian package that holds it
    forwards = True  # False: it tunnels plain http too, so there is no Via to see
    proxies_https = True

    @classmethod
    def setUpClass(cls):
        if cls.missing():
            raise unittest.SkipTest("%s is not installed" % cls.needs)
        super().setUpClass()
        cls.directory = tempfile.mkdtemp(prefix="sluice-clients-")
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        cls.upload = os.path.join(cls.directory, "upload")
        with open(cls.upload, "wb") as file:
            file.write(UPLOAD)
        cls.certificate = make_certificate(cls.directory)
        cls.prepare()

    @classmethod
    def missing(cls):
        return False

    @classmethod
    def prepare(cls):
        """What must be built once."""

    def command(self, action, url):
        """The command whose output is the status line and the body."""
        raise NotImplementedError

    def environment(self):
        proxy = self.proxy.url
        clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        return dict(clean, http_proxy=proxy, https_proxy=proxy, HTTP_PROXY=proxy, HTTPS_PROXY=proxy,
                    SSL_CERT_FILE=self.certificate, REQUESTS_CA_BUNDLE=self.certificate, NODE_PATH=MODULES,
                    HOME=self.directory)

    def site(self, **options):
        site = Site(**options)
        self.addCleanup(site.close)
        return site

    def run_client(self, action, url):
        """(status, body, what it complained about)."""
        done = subprocess.run(self.command(action, url), env=self.environment(), capture_output=True, timeout=40)
        status, _, body = done.stdout.partition(b"\n")
        return status.decode("latin-1").strip(), body.decode("latin-1"), done.stderr.decode("latin-1")

    def assert_came_through(self, site):
        self.assertTrue(site.requests, "the origin was not contacted")
        if self.forwards:
            self.assertIn("sluice", site.requests[0].get("Via", ""), "the client went around the proxy")

    def test_get(self):
        site = self.site()
        status, body, complaint = self.run_client("get", site.url("/hello"))
        self.assertEqual((status, body), ("200", "hello\n"), complaint)
        self.assert_came_through(site)

    def test_post_5_mib(self):
        site = self.site()
        status, body, complaint = self.run_client("post", site.url("/upload"))
        self.assertEqual((status, body.strip()), ("200", hashlib.sha256(UPLOAD).hexdigest()), complaint)
        self.assertEqual(len(site.requests), 1)

    def test_stream(self):
        site = self.site()
        with subprocess.Popen(self.command("stream", site.url("/stream")), env=self.environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            got = b""
            while b"first\n" not in got and (data := os.read(process.stdout.fileno(), 4096)):
                got += data
            site.seen_first.set()
            rest, complaint = process.communicate(timeout=30)
        self.assertTrue((got + rest).endswith(b"first\nlast\n"), (got, rest, complaint))
        self.assertTrue(site.streamed, "the first bytes came only with the last")

    def test_redirect(self):
        site = self.site()
        status, body, complaint = self.run_client("get", site.url("/redirect"))
        self.assertEqual((status, body), ("200", "hello\n"), complaint)
        self.assertEqual([request.target for request in site.requests], ["/redirect", "/hello"])

    def test_error(self):
        status, body, complaint = self.run_client("get", self.refused_url())
        self.assertEqual(status, "502", complaint)
        self.assertIn("127.0.0.1", body)
        self.assertIn("refused", body)

    def test_https_by_connect(self):
        if not self.proxies_https:
            self.skipTest("this client has no CONNECT of its own")
        site = self.site(tls=server_context(self.certificate))
        status, body, complaint = self.run_client("get", site.url("/hello"))
        self.assertEqual((status, body), ("200", "hello\n"), complaint)


class Curl(ClientCase):
    needs = "curl"

    @classmethod
    def missing(cls):
        return not shutil.which("curl")

    def command(self, action, url, *options):
        command = ["curl", "-sSLN", "-w", "%{stderr}%{http_code}", "--cacert", self.certificate, *options]
        return command + (["-T", self.upload, "-X", "POST"] if action == "post" else []) + [url]

    def run_client(self, action, url, *options):
        done = subprocess.run(self.command(action, url, *options), env=self.environment(), capture_output=True, timeout=40)
        complaint = done.stderr.decode()
        return complaint[-3:], done.stdout.decode(), complaint

    def test_proxy_user(self):
        """Without users a name is a job's; the password stays here."""
        site = self.site()
        status, body, _ = self.run_client("get", site.url("/hello"), "--proxy-user", "nightly:secret")
        self.assertEqual((status, body), ("200", "hello\n"))
        self.assertFalse(site.requests[0].has("Proxy-Authorization"))

    def test_proxy_user_that_is_asked_for(self):
        hashed = subprocess.run(["openssl", "passwd", "-6", "secret"], check=True, capture_output=True, text=True)
        users = os.path.join(self.directory, "users")
        with open(users, "w") as file:
            file.write("nightly:" + hashed.stdout)
        os.chmod(users, 0o600)
        closed = self.start('access.users="%s"' % users)
        plain, secure = self.site(), self.site(tls=server_context(self.certificate))
        for url in (plain.url("/hello"), secure.url("/hello")):
            for pair, wanted in (("nightly:secret", "200"), ("nightly:wrong", "407")):
                with self.subTest(url=url, pair=pair):
                    write_out = "%{stderr}%{http_code} %{http_connect}"
                    done = subprocess.run(["curl", "-s", "-w", write_out, "--cacert", self.certificate, "-x", closed.url,
                                           "--proxy-user", pair, url], capture_output=True, text=True, timeout=40)
                    self.assertIn(wanted, done.stderr)

    def test_proxytunnel(self):
        site = self.site()
        status, body, complaint = self.run_client("get", site.url("/hello"), "--proxytunnel")
        self.assertEqual((status, body), ("200", "hello\n"), complaint)

    def test_expect_100_continue(self):
        site = self.site()
        status, body, complaint = self.run_client("post", site.url("/upload"), "-H", "Expect: 100-continue")
        self.assertEqual((status, body.strip()), ("200", hashlib.sha256(UPLOAD).hexdigest()), complaint)

    def test_chunked_upload(self):
        site = self.site()
        status, body, complaint = self.run_client("post", site.url("/upload"), "-H", "Transfer-Encoding: chunked")
        self.assertEqual((status, body.strip()), ("200", hashlib.sha256(UPLOAD).hexdigest()), complaint)


class Wget(ClientCase):
    needs = "wget"

    @classmethod
    def missing(cls):
        return not shutil.which("wget")

    def command(self, action, url):
        command = ["wget", "-O", "-", "--content-on-error", "--server-response", "--tries=1", "--no-verbose",
                   "--ca-certificate", self.certificate]
        return command + (["--post-file", self.upload] if action == "post" else []) + [url]

    def run_client(self, action, url):
        done = subprocess.run(self.command(action, url), env=self.environment(), capture_output=True, timeout=40)
        complaint = done.stderr.decode()
        statuses = [line.split()[1] for line in complaint.splitlines() if line.strip().startswith("HTTP/1.")]
        return (statuses or [""])[-1], done.stdout.decode(), complaint


class PythonCase(ClientCase):
    script = module = None

    @classmethod
    def missing(cls):
        return importlib.util.find_spec(cls.module) is None

    def command(self, action, url):
        return [sys.executable, os.path.join(HERE, self.script), action, url, self.upload]


class Urllib(PythonCase):
    script, module, needs = "urllib_client.py", "urllib.request", "python3"


class Requests(PythonCase):
    script, module, needs = "requests_client.py", "requests", "python3-requests"


class Httpx(PythonCase):
    script, module, needs = "httpx_client.py", "httpx", "python3-httpx"


class Aiohttp(PythonCase):
    script, module, needs = "aiohttp_client.py", "aiohttp", "python3-aiohttp"


class NodeHttp(ClientCase):
    needs = "nodejs"

    @classmethod
    def missing(cls):
        return not shutil.which("node")

    def command(self, action, url):
        file = [self.upload] if action == "post" else []
        return ["node", os.path.join(HERE, "node_http_client.js"), action, url, *file]


class NodeUndici(ClientCase):
    needs = "node-undici"
    forwards = False

    @classmethod
    def missing(cls):
        return not shutil.which("node") or not os.path.isdir(os.path.join(MODULES, "undici"))

    def command(self, action, url):
        return ["node", os.path.join(HERE, "undici_client.js"), action, url, self.upload]

    def test_error(self):
        """A refused CONNECT: undici says so in its own words."""
        _, _, complaint = self.run_client("get", self.refused_url())
        self.assertRegex(complaint, "error: .*(502|Proxy response)")


class Java(ClientCase):
    needs = "default-jdk-headless"
    proxies_https = False  # its trust store cannot be given a PEM file

    @classmethod
    def missing(cls):
        return not shutil.which("java") or not shutil.which("javac")

    @classmethod
    def prepare(cls):
        subprocess.run(["javac", "-d", cls.directory, os.path.join(HERE, "JavaClient.java")], check=True)

    def command(self, action, url):
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", self.directory, "JavaClient", action, url, self.upload]


class Git(ClientCase):
    """git has other verbs: clone gets, push posts 5 MiB."""

    needs = "git"
    test_get = test_post_5_mib = test_stream = test_redirect = test_https_by_connect = None

    @classmethod
    def missing(cls):
        return not shutil.which("git")

    @classmethod
    def prepare(cls):
        cls.repositories = os.path.join(cls.directory, "repositories")
        cls.git("init", "-q", "--bare", os.path.join(cls.repositories, "repo.git"))
        cls.git("-C", os.path.join(cls.repositories, "repo.git"), "config", "http.receivepack", "true")

    @classmethod
    def git(cls, *arguments, environment=None, check=True):
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main",
                    "-c", "gc.auto=0"]
        base = dict(environment or os.environ, HOME=cls.directory, GIT_CONFIG_NOSYSTEM="1", GIT_TERMINAL_PROMPT="0")
        return subprocess.run(["git", *identity, *arguments], env=base, capture_output=True, text=True, check=check, timeout=60)

    def test_clone_push_and_a_moved_repository(self):
        site = self.site(repositories=self.repositories)
        work, copy, moved = (os.path.join(self.directory, name) for name in ("work", "copy", "moved"))
        environment = self.environment()
        self.git("clone", "-q", site.url("/git/repo.git"), work, environment=environment)
        with open(os.path.join(work, "data"), "wb") as file:
            file.write(os.urandom(5 << 20))
        self.git("-C", work, "add", "data")
        self.git("-C", work, "commit", "-q", "-m", "five mebibytes")
        self.git("-C", work, "push", "-q", "origin", "HEAD:main", environment=environment)
        self.assertTrue([r for r in site.requests if r.method == "POST" and len(r.body) > 5 << 20], "no large POST")
        for url, path in ((site.url("/git/repo.git"), copy), (site.url("/git-moved/repo.git"), moved)):
            self.git("clone", "-q", "-b", "main", url, path, environment=environment)
            with open(os.path.join(work, "data"), "rb") as mine, open(os.path.join(path, "data"), "rb") as theirs:
                self.assertEqual(mine.read(), theirs.read())
        self.assert_came_through(site)

    def test_error(self):
        done = self.git("clone", "-q", self.refused_url() + "repo.git", os.path.join(self.directory, "none"),
                        environment=self.environment(), check=False)
        self.assertIn("502", done.stderr)


del ClientCase, PythonCase  # bases, not tests
