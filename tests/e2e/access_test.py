"""Who may use the proxy, and where to."""

import base64
import json
import socket
import subprocess
import tempfile

from harness.case import ProxyCase
from harness.message import read_response, request_bytes
from harness.proxy import Proxy
from harness.stream import Ended, connect

# Of "slow", in so many rounds that a check takes far longer than 100 ms.
SLOW_HASH = "$6$rounds=2000000$sluice$y..riNnTtJ5chIVXPARCEI/xVq5HOxZsPTQSA6qcq.af4RO0o9DNBfghwok6gRMNZejRmHxlISV6F516mfI8K0"
FIXED = ('proxy.resolve={"metadata.test"="169.254.169.254", "here.test"="127.0.0.1", "six.test"="::1",'
         ' "banned.test"="127.66.66.66"}')


class Destinations(ProxyCase):
    settings = (FIXED, 'access.deny=["127.66.0.0/16", "*.internal", "secret.example"]')

    def assert_denied(self, host, status=403):
        """Refused in both ways to get there, before any connection is made."""
        response = self.fetch("http://%s/" % host)
        self.assert_problem(response, status, None)
        _, answer = self.tunnel(host if ":" in host.rpartition("]")[2] else host + ":443")
        self.assert_problem(answer, status, None)

    def test_link_local_and_metadata(self):
        for host in ("169.254.169.254", "169.254.1.1", "[fe80::1]", "[::ffff:169.254.169.254]", "100.100.100.200",
                     "[fd00:ec2::254]", "[64:ff9b::a9fe:a9fe]"):
            with self.subTest(host):
                self.assert_denied(host)

    def test_unspecified_and_multicast(self):
        for host in ("0.0.0.0", "[::]", "224.0.0.1", "[ff02::1]", "255.255.255.255"):
            with self.subTest(host):
                self.assert_denied(host)

    def test_odd_spellings_of_an_address(self):
        """Forms that a lenient parser reads as 169.254.169.254: an error, never a connection."""
        for host in ("2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "169.254.169.254."):
            with self.subTest(host):
                self.assertIn(self.fetch("http://%s/" % host).status, (400, 403, 502, 504))

    def test_names_are_judged_by_their_address(self):
        for host in ("metadata.test", "METADATA.test", "banned.test"):
            with self.subTest(host):
                self.assert_denied(host)

    def test_configured_addresses_and_names(self):
        for host in ("127.66.66.66", "127.66.0.1", "db.internal", "a.b.INTERNAL", "secret.example", "secret.example."):
            with self.subTest(host):
                self.assert_denied(host)

    def test_fixed_names_reach_their_address(self):
        origin = self.origin()
        self.assertEqual(self.fetch("http://here.test:%d/" % origin.port).status, 200)
        self.assertEqual(origin.requests[0].get("Host"), "here.test:%d" % origin.port)
        six = self.origin(host="::1")
        self.assertEqual(self.fetch("http://six.test:%d/" % six.port).status, 200)
        self.assertEqual(self.fetch(six.url()).status, 200)

    def test_private_ranges_only_when_asked(self):
        careful = self.start('access.deny=["private"]')
        for host in ("10.0.0.1", "192.168.1.1", "172.16.0.1", "[fd12::1]"):
            with self.subTest(host):
                self.assertEqual(self.fetch("http://%s/" % host, proxy=careful).status, 403)


class Loops(ProxyCase):
    settings = (FIXED,)

    def test_its_own_port(self):
        for host in ("127.0.0.1", "localhost", "here.test", "[::ffff:127.0.0.1]"):
            with self.subTest(host):
                url = "http://%s:%d/" % (host, self.proxy.port)
                self.assert_problem(self.fetch(url), 508, None)

    def test_its_own_port_by_connect(self):
        _, answer = self.tunnel("127.0.0.1:%d" % self.proxy.port)
        self.assert_problem(answer, 508, None)

    def test_its_own_via(self):
        origin = self.origin()
        self.fetch(origin.url())
        via = origin.requests[0].get("Via")
        response = self.fetch(origin.url(), fields=["Via: 1.0 other, %s, 1.1 third" % via])
        self.assert_problem(response, 508, None)
        self.assertEqual(len(origin.requests), 1)

    def test_another_proxys_via_is_no_loop(self):
        origin = self.origin()
        self.assertEqual(self.fetch(origin.url(), fields=["Via: 1.1 squid, 1.1 varnish"]).status, 200)


class Clients(ProxyCase):
    """Only 127.1.0.0/16 may come in; everything else is a stranger."""

    settings = ('access.clients=["127.1.0.0/16"]',)

    def answer_to(self, source):
        origin = self.origin()
        client = connect(self.proxy.address, source=source)
        self.addCleanup(client.close)
        client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
        return origin, client

    def test_a_listed_address(self):
        _, client = self.answer_to("127.1.2.3")
        self.assertEqual(read_response(client).status, 200)

    def test_a_stranger(self):
        origin, client = self.answer_to("127.2.0.1")
        try:
            self.assertEqual(read_response(client).status, 403)
        except Ended:
            pass  # closed without a word is fine as well
        self.assertEqual(origin.visits, [])


class Users(ProxyCase):
    @classmethod
    def setUpClass(cls):
        hashes = {name: subprocess.run(["openssl", "passwd", "-6", password], check=True, capture_output=True,
                                       text=True).stdout.strip()
                  for name, password in (("ann", "open sesame"), ("bob", "p:w:d"), ("cy", "new here"))}
        cls.file = cls.enterClassContext(tempfile.NamedTemporaryFile("w"))
        cls.file.write("# who may\n\n" + "".join("%s:%s\n" % item for item in hashes.items()))
        cls.file.flush()
        cls.proxy = Proxy('proxy.connect_ports=["*"]', 'proxy.drain="1s"', 'access.users="%s"' % cls.file.name)

    def credentials(self, pair):
        return ["Proxy-Authorization: Basic " + base64.b64encode(pair.encode()).decode()]

    def test_nobody_is_asked_for_a_name(self):
        origin = self.origin()
        response = self.fetch(origin.url())
        self.assertEqual(response.status, 407, response)
        self.assertRegex(response.get("Proxy-Authenticate", ""), r'^Basic realm="[^"]+"')
        self.assertEqual(json.loads(response.body)["status"], 407)
        self.assertEqual(origin.visits, [])

    def test_right_and_wrong(self):
        rows = [("ann:open sesame", 200), ("bob:p:w:d", 200), ("ann:open", 407), ("bob:open sesame", 407),
                ("carol:open sesame", 407), ("ann:", 407), (":", 407), ("ann", 407), ("# who may:", 407)]
        for pair, status in rows:
            for turn in ("first", "remembered"):
                with self.subTest(pair=pair, turn=turn):
                    origin = self.origin()
                    response = self.fetch(origin.url(), fields=self.credentials(pair))
                    self.assertEqual(response.status, status, response)
                    for request in origin.requests:
                        self.assertFalse(request.has("Proxy-Authorization"), "the password left the house")

    def test_nonsense_instead_of_credentials(self):
        for value in ("Basic", "Basic !!!", "Bearer abc", "Basic " + "A" * 5000, "Digest username=ann", ""):
            with self.subTest(value):
                response = self.fetch(self.origin().url(), fields=["Proxy-Authorization: " + value])
                self.assertIn(response.status, (400, 407), response)

    def test_then_on_the_same_connection(self):
        origin, client = self.origin(), self.client()
        self.assertEqual(self.fetch(origin.url(), client=client).status, 407)
        right = self.credentials("ann:open sesame")
        self.assertEqual(self.fetch(origin.url(), fields=right, client=client).status, 200)
        self.assertEqual(self.fetch(origin.url(), client=client).status, 407, "every request must say who")

    def test_the_last_hop_is_here_though_the_password_is_new(self):
        origin = self.origin()
        fields = ["Max-Forwards: 0", *self.credentials("cy:new here")]
        for turn in ("first", "remembered"):
            with self.subTest(turn):
                self.assertEqual(self.fetch(origin.url(), "OPTIONS", fields).status, 200)
                self.assertEqual(origin.visits, [])

    def test_connect(self):
        origin = self.origin(lambda visit: visit.send(b"hi"))
        _, answer = self.tunnel(origin.authority)
        self.assertEqual(answer.status, 407)
        client, answer = self.tunnel(origin.authority, self.credentials("ann:open sesame"))
        self.assertEqual(answer.status, 200)
        self.assertEqual(client.read_to_end(), b"hi")

    def test_passwords_are_not_logged(self):
        self.fetch(self.origin().url(), fields=self.credentials("ann:open sesame"))
        self.fetch(self.origin().url(), fields=self.credentials("ann:wrong-guess"))
        for secret in ("sesame", "wrong-guess", base64.b64encode(b"ann:open sesame").decode()):
            self.assertNotIn(secret, self.proxy.log())


class SlowCheck(ProxyCase):
    @classmethod
    def setUpClass(cls):
        cls.file = cls.enterClassContext(tempfile.NamedTemporaryFile("w"))
        cls.file.write("slow:%s\n" % SLOW_HASH)
        cls.file.flush()
        cls.proxy = Proxy('proxy.drain="1s"', 'access.users="%s"' % cls.file.name, 'proxy.timeouts.head="100ms"')

    def test_a_check_that_outlasts_the_time_for_a_head(self):
        """It has a limit of its own, and one request has one answer."""
        origin, client = self.origin(), self.client()
        fields = ["Proxy-Authorization: Basic " + base64.b64encode(b"slow:slow").decode()]
        self.assertEqual(self.fetch(origin.url("/1"), fields=fields, client=client).body, b"ok")
        self.assertEqual(self.fetch(origin.url("/2"), fields=fields, client=client).body, b"ok")
        self.assertEqual([request.target for request in origin.requests], ["/1", "/2"])


class Names(ProxyCase):
    def test_a_user_name_without_users_is_just_a_job(self):
        origin = self.origin()
        pair = base64.b64encode(b"nightly:").decode()
        response = self.fetch(origin.url(), fields=["Proxy-Authorization: Basic " + pair])
        self.assertEqual(response.status, 200)
        self.assertFalse(origin.requests[0].has("Proxy-Authorization"))

    def test_the_help_page(self):
        """Origin-form to the proxy port: what this is and how to use it."""
        for path in ("/", "/index.html", "/metrics", "/api/keys", "/healthz"):
            with self.subTest(path):
                client = self.client()
                client.send(request_bytes("GET", path, ["Host: 127.0.0.1:%d" % self.proxy.port]))
                response = read_response(client)
                self.assertIn(b"http_proxy", response.body)
                self.assertIn(b"luice", response.body)
                self.assertNotIn(b"sluice_", response.body, "that is the admin's side")

    def test_it_listens_on_loopback_only(self):
        outside = next((address for address in own_addresses() if not address.startswith("127.")), None)
        if outside is None:
            self.skipTest("this machine has no address but loopback")
        with self.assertRaises(OSError):
            socket.create_connection((outside, self.proxy.port), 2)


def own_addresses():
    """The IPv4 addresses by which this machine would go out; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))
            return [sock.getsockname()[0]]
        except OSError:
            return []
