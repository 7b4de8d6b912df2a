"""Names: what the resolver answers decides, also against the client."""

import subprocess
import tempfile
import time
import unittest

from harness import name_server
from harness.case import ProxyCase
from harness.proxy import ANY_PORT, Proxy

ANSWERS = {
    "plain.test": ["127.0.0.1"],
    "six.test": ["::1"],
    "both.test": ["::1", "127.0.0.1"],
    "metadata.test": ["169.254.169.254"],
    "rebind.test": ["169.254.169.254", "127.0.0.1"],
    "many.test": ["127.0.0.1"] * 40,
    "broken.test": "servfail",
    "silent.test": "silence",
}


class Names(ProxyCase):
    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        if not name_server.may_use():
            raise unittest.SkipTest("needs root for port 53 and a resolv.conf of its own")
        cls.server = name_server.NameServer(ANSWERS)
        cls.addClassCleanup(cls.server.close)
        prefix = name_server.prefix(cls.server, directory)
        if subprocess.run([*prefix, "true"], capture_output=True).returncode:
            raise unittest.SkipTest("mount namespaces are not allowed here")
        cls.proxy = Proxy(ANY_PORT, 'proxy.drain="1s"', "proxy.workers=1", 'proxy.timeouts.connect="2s"', prefix=prefix)

    def ask(self, name, origin):
        return self.fetch("http://%s:%d/" % (name, origin.port))

    def test_an_address_is_found(self):
        origin = self.origin()
        self.assertEqual(self.ask("plain.test", origin).status, 200)
        self.assertEqual(origin.requests[0].get("Host"), "plain.test:%d" % origin.port)
        self.assertEqual(self.ask("PLAIN.Test", origin).status, 200)

    def test_ipv6_only(self):
        self.assertEqual(self.ask("six.test", self.origin(host="::1")).status, 200)

    def test_the_other_family_is_tried(self):
        """Nobody listens on [::1]: Happy Eyeballs (RFC 8305) goes on to 127.0.0.1."""
        self.assertEqual(self.ask("both.test", self.origin()).status, 200)
        self.assertEqual(self.ask("both.test", self.origin(host="::1")).status, 200)

    def test_more_addresses_than_a_datagram_holds(self):
        self.assertEqual(self.ask("many.test", self.origin()).status, 200)

    def test_answers_are_remembered(self):
        origin = self.origin()
        for _ in range(5):
            self.assertEqual(self.ask("plain.test", origin).status, 200)
        asked = [question for question in self.server.questions if question == ("plain.test", "A")]
        self.assertLessEqual(len(asked), 1)

    def test_no_such_name(self):
        problem = self.assert_problem(self.fetch("http://nowhere.test/"), 502, "dns", host="nowhere.test")
        self.assertIn("nowhere.test", problem["detail"])
        _, answer = self.tunnel("nowhere.test:443")
        self.assert_problem(answer, 502, "dns", host="nowhere.test")

    def test_a_failing_server(self):
        self.assert_problem(self.fetch("http://broken.test/"), 502, "dns")

    def test_a_silent_server(self):
        started = time.monotonic()
        response = self.fetch("http://silent.test/")
        self.assertIn((response.status, response.get("Sluice-Reason")), ((502, "dns"), (504, "connect-timeout")))
        self.assertLess(time.monotonic() - started, 6)

    def test_a_name_cannot_lead_where_its_address_may_not(self):
        self.assert_problem(self.fetch("http://metadata.test/latest/meta-data/"), 403, None)
        _, answer = self.tunnel("metadata.test:443")
        self.assert_problem(answer, 403, None)

    def test_only_the_permitted_address_is_tried(self):
        origin = self.origin()
        self.assertIn(self.ask("rebind.test", origin).status, (200, 403))

    def test_a_name_that_leads_back_here(self):
        self.assert_problem(self.fetch("http://plain.test:%d/" % self.proxy.port), 508, None)
