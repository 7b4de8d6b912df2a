"""The base of every end-to-end test: one proxy per class, origins and clients that clean up."""

import json
import os
import unittest

from harness import message
from harness.origin import Origin, refusing_port
from harness.proxy import ANY_PORT, Proxy
from harness.stream import connect


class ProxyCase(unittest.TestCase):
    settings = ()  # --set values of the class's proxy
    proxy = None

    @classmethod
    def setUpClass(cls):
        cls.proxy = Proxy(ANY_PORT, 'proxy.drain="1s"', *cls.settings)

    @classmethod
    def tearDownClass(cls):
        trouble, log = cls.proxy.stop(), cls.proxy.log()
        cls.proxy.remove()
        if trouble:
            raise AssertionError("%s\n%s" % (trouble, log[-4000:]))

    def setUp(self):
        self.log_start = self.proxy.log_size() if self.proxy else 0
        self.own_proxies = []

    def evidence(self):
        """What the proxies of this test logged."""
        logs = [self.proxy.log(self.log_start)] if self.proxy else []
        return "\n".join(logs + [proxy.log() for proxy in self.own_proxies if os.path.exists(proxy.log_path)])

    def start(self, *settings, **options):
        """A proxy for this test alone."""
        proxy = Proxy(ANY_PORT, 'proxy.drain="1s"', *settings, **options)
        self.own_proxies.append(proxy)
        self.addCleanup(proxy.kill)  # its files stay for evidence(); discard() removes them
        return proxy

    def discard(self):
        for proxy in self.own_proxies:
            proxy.remove()

    def origin(self, script=None, **options):
        origin = Origin(script, **options)
        self.addCleanup(origin.close)
        return origin

    def client(self, proxy=None, **options):
        stream = connect((proxy or self.proxy).address, **options)
        self.addCleanup(stream.close)
        return stream

    def refused_url(self):
        keep, port = refusing_port()
        self.addCleanup(keep.close)
        return "http://127.0.0.1:%d/" % port

    def fetch(self, url, method="GET", fields=(), body=b"", client=None, proxy=None):
        """One request with Host, the fields and a Content-Length when there is a body."""
        stream = client or self.client(proxy)
        authority = url.partition("://")[2].partition("/")[0]
        lines = ["Host: " + authority, *fields]
        if body:
            lines.append("Content-Length: %d" % len(body))
        stream.send(message.request_bytes(method, url, lines, body))
        return message.read_response(stream, method)

    def tunnel(self, authority, fields=(), early=b"", proxy=None, **options):
        """(client stream, the answer to CONNECT)."""
        stream = self.client(proxy, **options)
        head = message.request_bytes("CONNECT", authority, ["Host: " + authority, *fields])
        stream.send(head + early)
        return stream, message.read_response(stream, "CONNECT")

    def assert_problem(self, response, status, reason, host=None):
        """A refusal or error of the proxy's own, as a program and a person read it (DESIGN 3)."""
        self.assertEqual(response.status, status, response)
        self.assertEqual(response.get("Content-Type"), "application/problem+json", response)
        self.assertEqual(response.get("Cache-Control"), "no-store", response)
        self.assertRegex(response.get("Proxy-Status", ""), r'^sluice; ?error=[a-z_]+; ?details="[^"]+"')
        if reason:
            self.assertEqual(response.get("Sluice-Reason"), reason, response)
        if response.has("Retry-After"):
            self.assertRegex(response.get("Retry-After"), r"^[1-9][0-9]*$")
        problem = json.loads(response.body)
        self.assertEqual(problem["status"], status)
        self.assertEqual(problem["reason"], response.get("Sluice-Reason"))
        self.assertTrue(problem["title"])
        self.assertRegex(problem["detail"], r"\w+ \w+", "a sentence that a person understands")
        if host:
            self.assertEqual(problem["host"], host)
        return problem
