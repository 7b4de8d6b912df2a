"""The access log: what it says, and what it never says."""

import base64
import json
import os
import tempfile

from harness.message import read_response, request_bytes, response_bytes
from harness.origin import replying
from startup_test import OwnProxies

SECRETS = ("q-secret-1", "q-secret-2", "q-secret-3", "bearer-secret", "cookie-secret", "proxy-secret", "key-secret")


class AccessLog(OwnProxies):
    def logging(self, *settings):
        """(a proxy with an access log in a file, its path)."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, "access.log")
        return self.start(*settings, 'log.access="%s"' % path), path

    def lines(self, origin, path, count):
        """The lines of the file once there are that many: the log is asynchronous."""

        def read():
            if not os.path.exists(path):
                return None
            with open(path) as file:
                lines = file.read().splitlines()
            return lines if len(lines) >= count else None

        lines = origin.wait(read)
        self.assertTrue(lines, "fewer than %d lines" % count)
        return lines

    def traffic(self, proxy):
        """A GET, a POST, a HEAD, a CONNECT, an error; full of secrets."""
        origin = self.origin(replying(response_bytes(b"x" * 1234, "201 Created")))
        secret = base64.b64encode(b"job:proxy-secret").decode()
        fields = ["Authorization: Bearer bearer-secret", "Cookie: s=cookie-secret", "X-Api-Key: key-secret",
                  "Proxy-Authorization: Basic " + secret]
        query = "?api_key=q-secret-1&page=2&access_token=q-secret-2&sig=q-secret-3"
        self.fetch(origin.url("/things" + query), fields=fields, proxy=proxy)
        self.fetch(origin.url("/things"), "POST", fields, b"12345", proxy=proxy)
        self.fetch(self.refused_url() + "nowhere" + query, fields=fields, proxy=proxy)
        stream, _ = self.tunnel(origin.authority, fields, proxy=proxy)
        stream.close()
        return origin

    def test_text(self):
        proxy, path = self.logging()
        origin = self.traffic(proxy)
        get, post, error, tunnel = sorted_by_kind(self.lines(origin, path, 4))
        for word in ("GET", "127.0.0.1", "/things", "201", "1234"):
            self.assertIn(word, get)
        for word in ("POST", "/things", "201"):
            self.assertIn(word, post)
        for word in ("GET", "/nowhere", "502", "connect"):
            self.assertIn(word, error)
        for word in ("CONNECT", origin.authority.split(":")[0], str(origin.port), "200"):
            self.assertIn(word, tunnel)

    def test_json(self):
        proxy, path = self.logging('log.format="json"')
        origin = self.traffic(proxy)
        get, post, error, tunnel = [json.loads(line) for line in sorted_by_kind(self.lines(origin, path, 4))]
        self.assertEqual((get["method"], get["status"]), ("GET", 201))
        self.assertIn("127.0.0.1", get["host"])
        self.assertTrue(get["path"].startswith("/things"), get)
        self.assertIn(1234, get.values())
        self.assertEqual((post["method"], post["status"]), ("POST", 201))
        self.assertEqual((error["status"], error["reason"]), (502, "connect"))
        self.assertEqual((tunnel["method"], tunnel["status"]), ("CONNECT", 200))

    def test_secrets_never(self):
        for settings in ((), ('log.format="json"',), ('log.level="debug"',)):
            with self.subTest(settings):
                proxy, path = self.logging(*settings)
                origin = self.traffic(proxy)
                text = "\n".join(self.lines(origin, path, 4)) + proxy.log()
                self.assertIn("/things", text)
                for secret in SECRETS + (base64.b64encode(b"job:proxy-secret").decode(),):
                    self.assertNotIn(secret, text)

    def test_one_line_per_request_whatever_it_holds(self):
        proxy, path = self.logging()
        origin = self.origin()
        for name in ("/a%0d%0aFORGED", "/b%1b[31m", "/c\xe9"):
            client = self.client(proxy)
            client.send(request_bytes("GET", origin.url(name), ["Host: " + origin.authority, "User-Agent: x\ty"]))
            read_response(client)
        lines = self.lines(origin, path, 2)
        self.assertFalse([line for line in lines if line.startswith("FORGED") or "\x1b" in line], lines)

    def test_stdout(self):
        proxy = self.start('log.access="-"')
        origin = self.origin()
        self.fetch(origin.url("/seen"), proxy=proxy)
        self.assertTrue(origin.wait(lambda: "/seen" in proxy.log()))

    def test_off_by_default(self):
        proxy = self.start()
        self.fetch(self.origin().url("/unseen"), proxy=proxy)
        self.assertIsNone(proxy.stop())
        self.assertNotIn("/unseen", proxy.log())


def sorted_by_kind(lines):
    """GET, POST, the error, the tunnel: workers may write them in any order."""
    kinds = ("/nowhere", "CONNECT", "POST", "GET")
    found = {}
    for line in lines:
        found[next(kind for kind in kinds if kind in line)] = line
    return found["GET"], found["POST"], found["/nowhere"], found["CONNECT"]
