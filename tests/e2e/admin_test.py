"""The admin side of a running proxy: who gets in, what it shows, what it can do."""

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import time

from harness import message
from harness.case import ProxyCase
from harness.origin import replying
from harness.proxy import Proxy, binary, free_port
from harness.stream import Stream, connect

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
POLICY = 'hosts = ["*"]\n[breaker]\nconsecutive = 2\n[hold]\nmax_wait = "0s"\n[pace]\nadapt = "off"\n[retry]\nmax = 0\n'


def eventually(what, seconds=10):
    deadline = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


class AdminCase(ProxyCase):
    @classmethod
    def setUpClass(cls):
        cls.admin = ("127.0.0.1", free_port())
        cls.proxy = Proxy('proxy.connect_ports=["*"]', 'proxy.drain="1s"', policy=POLICY,
                          admin="%s:%d" % cls.admin)
        cls.state = os.path.join(cls.proxy.directory, "state")
        with open(os.path.join(cls.state, "admin.token")) as file:
            cls.token = file.read().strip()

    def talk(self, data, address=None):
        stream = connect(address or self.admin)
        self.addCleanup(stream.close)
        stream.send(data)
        return message.read_response(stream)

    def ask(self, path, method="GET", fields=None, body=b"", host=None, token=True):
        lines = ["Host: " + (host or "%s:%d" % self.admin), *(fields or [])]
        if token:
            lines.append("Authorization: Bearer " + self.token)
        if body:
            lines += ["Content-Type: application/json", "Content-Length: %d" % len(body)]
        return self.talk(message.request_bytes(method, path, lines, body))

    def read(self, path):
        response = self.ask(path)
        self.assertEqual(response.status, 200, response)
        return json.loads(response.body)

    def order(self, path, **body):
        response = self.ask(path, "POST", body=json.dumps(body).encode())
        self.assertEqual(response.status, 200, response)
        return json.loads(response.body)["done"]


class Guard(AdminCase):
    def test_only_the_token_opens(self):
        for path in ("/api/keys", "/api/status", "/api/budget", "/api/anomalies", "/api/events", "/api/keys/x"):
            with self.subTest(path):
                self.assertEqual(self.ask(path, token=False).status, 401)
                wrong = self.ask(path, token=False, fields=["Authorization: Bearer " + "0" * 64])
                self.assertEqual(wrong.status, 401)
                self.assertIn("Bearer", wrong.get("WWW-Authenticate"))
                self.assertEqual(self.ask(path, token=False, fields=["Cookie: token=" + self.token]).status, 401)
                self.assertEqual(self.ask(path + "?token=" + self.token, token=False).status, 401)
        for path in ("/api/stop", "/api/resume", "/api/keys/x.test/open", "/api/keys/x.test/close"):
            self.assertEqual(self.ask(path, "POST", token=False).status, 401)
        for path in ("/healthz", "/readyz", "/metrics", "/"):
            self.assertEqual(self.ask(path, token=False).status, 200)
        self.assertFalse(os.path.exists(os.path.join(self.state, "EMERGENCY_STOP")))

    def test_a_name_that_was_rebound_to_loopback(self):
        for host in ("evil.example:%d" % self.admin[1], "127.0.0.1.evil.example", "localhost.evil.example", "[::1]"):
            for path in ("/", "/metrics", "/api/keys", "/healthz"):
                with self.subTest(host=host, path=path):
                    self.assertEqual(self.ask(path, host=host).status, 403)
        self.assertEqual(self.ask("/api/keys", host="localhost:%d" % self.admin[1]).status, 200)
        self.assertEqual(self.talk(b"GET /healthz HTTP/1.0\r\n\r\n").status, 403, "no Host at all")

    def test_other_sites_pages_cannot_order(self):
        own = "http://%s:%d" % self.admin
        rows = [(["Origin: http://evil.example"], 403), (["Origin: null"], 403),
                (["Origin: http://127.0.0.1:%d" % (self.admin[1] ^ 1)], 403), (["Origin: https" + own[4:]], 403),
                (["Sec-Fetch-Site: cross-site"], 403), (["Sec-Fetch-Site: same-site"], 403),
                (["Origin: " + own, "Sec-Fetch-Site: same-origin"], 200)]
        for fields, status in rows:
            with self.subTest(fields):
                self.assertEqual(self.ask("/api/resume", "POST", fields=fields).status, status)
        own_token = ["Host: %s:%d" % self.admin, "Authorization: Bearer " + self.token]
        form = self.talk(message.request_bytes("POST", "/api/stop", own_token + ["Content-Type: text/plain", "Content-Length: 2"], b"{}"))
        self.assertEqual(form.status, 400, "what a form can send is no order")
        preflight = self.ask("/api/stop", "OPTIONS", token=False, fields=["Origin: http://evil.example"])
        self.assertFalse(preflight.has("Access-Control-Allow-Origin"))

    def test_no_answer_may_be_framed_sniffed_or_kept(self):
        for path in ("/", "/app.js", "/api/keys", "/nothing", "/metrics"):
            response = self.ask(path)
            with self.subTest(path):
                self.assertTrue(response.get("Content-Security-Policy").startswith("default-src 'self'"), response)
                self.assertEqual(response.get("X-Content-Type-Options"), "nosniff")
                self.assertEqual(response.get("Cache-Control"), "no-store")
                self.assertEqual(response.get("X-Frame-Options"), "DENY")

    def test_the_page_asks_for_nothing_from_outside(self):
        page = self.ask("/").body.decode()
        self.assertNotRegex(page, r"https?://|//[a-z]|<script(?! type=\"module\" src=\"/)| style=| on[a-z]+=")
        for name in re.findall(r'(?:src|href)="(/[^"]+)"', page):
            self.assertEqual(self.ask(name).status, 200, name)

    def test_secrets_are_their_owners(self):
        for name, kind in (("admin.token", stat.S_ISREG), ("admin.sock", stat.S_ISSOCK)):
            about = os.lstat(os.path.join(self.state, name))
            self.assertTrue(kind(about.st_mode))
            self.assertEqual(about.st_mode & 0o777, 0o600)
        self.assertNotIn(self.token, self.proxy.log())

    def test_the_unix_socket_knows_its_user(self):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(os.path.join(self.state, "admin.sock"))
        stream = Stream(sock, 10)
        self.addCleanup(stream.close)
        stream.send(b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(message.read_response(stream).status, 200)

    def test_the_unix_socket_refuses_another_user(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("only root can be somebody else")
        path = os.path.join(self.state, "admin.sock")
        modes = [(self.proxy.directory, 0o755), (self.state, 0o755), (path, 0o666)]
        before = [(name, os.stat(name).st_mode & 0o777) for name, _ in modes]
        self.addCleanup(lambda: [os.chmod(name, mode) for name, mode in before])
        for name, mode in modes:  # even when somebody has opened it to everybody
            os.chmod(name, mode)
        script = ("import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
                  "s.send(b'GET /api/status HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); print(len(s.recv(99)))")
        command = ["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", script, path]
        out = subprocess.run(command, capture_output=True, text=True, timeout=20)
        self.assertTrue(out.stdout.strip() == "0" or "reset" in out.stderr.lower() or "broken" in out.stderr.lower(), out)


class Apart(AdminCase):
    def test_the_proxy_does_not_forward_to_it(self):
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]"):
            with self.subTest(host):
                url = "http://%s:%d/api/keys" % (host, self.admin[1])
                # 502: localhost is ::1 too, where nobody listens.
                self.assertIn(self.fetch(url, fields=["Authorization: Bearer " + self.token]).status, (403, 502, 508))
                _, answer = self.tunnel("%s:%d" % (host, self.admin[1]))
                self.assertIn(answer.status, (403, 502, 508))

    def test_the_proxy_port_serves_none_of_it(self):
        for path in ("/healthz", "/metrics", "/api/keys", "/api/status"):
            response = self.talk(message.request_bytes("GET", path, ["Host: 127.0.0.1:%d" % self.proxy.port]), self.proxy.address)
            self.assertNotIn(b"sluice_", response.body)
            self.assertNotIn(b'"keys"', response.body)

    def test_it_is_no_proxy(self):
        origin = self.origin()
        response = self.talk(message.request_bytes("GET", origin.url(), ["Host: %s:%d" % self.admin]))
        self.assertEqual(response.status, 400)
        self.assertEqual(self.talk(message.request_bytes("CONNECT", "127.0.0.1:443", ["Host: %s:%d" % self.admin])).status // 100, 4)


class Work(AdminCase):
    def test_a_trip_is_seen_and_lifted(self):
        origin = self.origin(replying(message.response_bytes(b"slow down", "429 Too Many Requests", "Retry-After: 300")))
        key = origin.authority
        self.assertEqual(self.fetch(origin.url()).status, 429)
        row = eventually(lambda: next((k for k in self.read("/api/keys")["keys"] if k["key"] == key and k["state"] == "open"), None))
        self.assertTrue(row)
        self.assertEqual(row["cause"], "named-time")
        self.assertGreater(row["cooldown_left_ms"], 280000)
        self.assertIn("429", row["sentence"])
        self.assertEqual(self.fetch(origin.url()).status, 503)
        events = self.read("/api/events")["events"]
        self.assertTrue(any(e["key"] == key and e["kind"] == "transition" for e in events), events)
        self.assertIn("lets requests through", self.order("/api/keys/%s/close" % key))
        self.assertEqual(self.read("/api/keys/" + key)["state"], "closed")
        self.assertEqual(self.fetch(origin.url()).status, 429, "it was asked again")

    def test_an_operator_shuts_a_key(self):
        origin = self.origin()
        key = origin.authority
        self.assertEqual(self.fetch(origin.url()).status, 200)
        said = self.order("/api/keys/%s/open" % key.replace(":", "%3A"), **{"for": "5m", "reason": "<b>noise</b>"})
        self.assertIn("5 min", said)
        row = self.read("/api/keys/" + key)
        self.assertEqual((row["state"], row["cause"], row["reason"]), ("open", "operator", "<b>noise</b>"))
        self.assertEqual(self.fetch(origin.url()).status, 503)
        self.order("/api/keys/127.0.0.1/close")  # the bare host: every key of it
        self.assertEqual(self.fetch(origin.url()).status, 200)

    def test_stop_and_resume(self):
        path = os.path.join(self.state, "EMERGENCY_STOP")
        self.order("/api/stop", reason="fire")
        self.addCleanup(lambda: os.path.exists(path) and os.remove(path))
        self.assertTrue(os.path.exists(path))
        self.assertEqual(self.read("/api/status")["stop"]["reason"], "fire")
        self.assertRegex(self.ask("/metrics").body.decode(), r"(?m)^sluice_emergency_stop 1$")
        self.order("/api/resume")
        self.assertFalse(os.path.exists(path))

    def test_events_as_they_happen(self):
        stream = connect(self.admin)
        self.addCleanup(stream.close)
        lines = ["Host: %s:%d" % self.admin, "Authorization: Bearer " + self.token, "Accept: text/event-stream"]
        stream.send(message.request_bytes("GET", "/api/events", lines))
        self.assertEqual(message.read_head(stream).get("Content-Type"), "text/event-stream")
        stream.read_until(b": sluice\n\n")
        self.order("/api/keys/live.test/open", **{"for": "1m"})
        key = None
        while key != "live.test":  # what tests before this one did may still be on its way
            block = stream.read_until(b"\n\n").decode()
            self.assertRegex(block, r"^id: \d+\ndata: \{")
            key = json.loads(block.partition("data: ")[2])["key"]

    def test_metrics_are_what_prometheus_reads(self):
        self.fetch(self.origin().url())
        response = self.ask("/metrics", token=False)
        self.assertEqual(response.get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8")
        text = response.body.decode()
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) sluice_[a-z_]+ .+|sluice_[a-z_]+(\{([a-z_]+="([^"\\]|\\.)*",?)+\})? [-+0-9.eInf]+)$')

    def test_promtool_accepts_the_metrics(self):
        found = subprocess.run([os.path.join(ROOT, "tools/promtool")], capture_output=True, text=True, timeout=80)
        if found.returncode:
            self.skipTest(found.stderr.strip())
        self.fetch(self.origin().url())
        self.order("/api/keys/prom.test/open", **{"for": "1m"})
        page = self.ask("/metrics", token=False).body
        self.assertIn(b'key="prom.test"', page)
        for text, good in ((page, True), (page + b"# TYPE sluice_clients counter\n", False)):
            checked = subprocess.run([found.stdout.strip(), "check", "metrics"], input=text, capture_output=True, timeout=30)
            self.assertEqual(checked.returncode == 0 and not checked.stderr, good, checked.stderr.decode())

    def test_the_reference_is_true(self):
        """Every address of docs/ADMIN.md answers as it says, and there is no other; its example has the fields of today."""
        with open(os.path.join(ROOT, "docs/ADMIN.md")) as file:
            text = file.read()
        self.order("/api/keys/reference.test/open", **{"for": "1m"})
        self.addCleanup(self.order, "/api/resume")
        told = re.findall(r"(?m)^\| `(GET|POST) (/[^`]*)`", text)
        for method, path in told:
            with self.subTest(path):
                response = self.ask(path.replace("{key}", "reference.test"), method)
                self.assertEqual(response.status, 503 if path == "/api/alerts/test" else 200, response)
        with open(os.path.join(ROOT, "proxy/admin/api.cpp")) as file:
            known = set(re.findall(r'path == "(/[a-z/]+)"', file.read()))
        self.assertLessEqual(known - {"/"}, {path for _, path in told})
        example = json.loads(re.search(r"```json\n(\{\"key\".*?)```", text, re.DOTALL)[1])
        row = next(row for row in self.read("/api/keys")["keys"] if row["key"] == "reference.test")
        self.assertEqual(sorted(example), sorted(row))
        self.assertEqual(sorted(example["counts"]), sorted(row["counts"]))

    def test_closing_what_nobody_knows(self):
        response = self.ask("/api/keys/never-seen.test/close", "POST")
        self.assertEqual((response.status, json.loads(response.body)["error"]), (404, "nothing is known about never-seen.test"))

    def test_a_bad_policy_is_shown(self):
        self.proxy.write("policies/broken.toml", 'hots = ["x.test"]\n')
        self.addCleanup(os.remove, os.path.join(self.proxy.directory, "policies/broken.toml"))
        problems = eventually(lambda: self.read("/api/status")["policy_problems"])
        self.assertTrue(problems[0]["place"].endswith("broken.toml:1:1"), problems)


class Starting(ProxyCase):
    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def test_off_means_none(self):
        proxy = self.start(admin="off")
        self.assertFalse([name for name in os.listdir(proxy.state) if name.startswith("admin")])
        self.assertNotIn("admin", proxy.log())

    def test_other_machines_need_an_invitation(self):
        proxy = self.start(admin="0.0.0.0:%d" % free_port(), ready=False)
        self.assertEqual(proxy.wait(10), 2, proxy.log())
        self.assertIn("admin.listen", proxy.log())
        self.assertIn("access.clients", proxy.log())

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            proxy = self.start(admin="127.0.0.1:%d" % taken.getsockname()[1], ready=False)
            self.assertEqual(proxy.wait(10), 2, proxy.log())
            self.assertIn("--admin A:P", proxy.log())

    def test_any_port_is_known_as_its_own(self):
        """Port 0: the proxy must refuse to forward to the port that it was given."""
        proxy = self.start(admin="127.0.0.1:0")
        port = int(eventually(lambda: re.search(r"admin http://127\.0\.0\.1:(\d+)/", proxy.log()))[1])
        self.assertNotEqual(port, 0)
        self.assertEqual(self.fetch("http://127.0.0.1:%d/metrics" % port, proxy=proxy).status, 508)

    def test_a_token_that_others_can_read(self):
        proxy = self.start(admin="127.0.0.1:0")
        token = os.path.join(proxy.directory, "state/admin.token")
        self.assertIsNone(proxy.stop())
        self.assertFalse(os.path.exists(os.path.join(proxy.directory, "state/admin.sock")), "it goes with its process")
        os.chmod(token, 0o644)
        again = subprocess.run([binary(), "run", "--listen", "127.0.0.1:%d" % free_port(), "--admin", "127.0.0.1:0",
                                "--state-dir", os.path.dirname(token)], capture_output=True, text=True, timeout=20)
        self.assertEqual(again.returncode, 2, again)
        self.assertIn("can be read by others", again.stderr)
