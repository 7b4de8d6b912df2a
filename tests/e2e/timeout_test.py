"""Nobody may keep a connection by saying nothing."""

import time

from harness.case import ProxyCase
from harness.message import Truncated, read_head, request_bytes
from harness.origin import silent_port

LATE = 4.0  # seconds after the time-out at which the proxy is too late


class Timeouts(ProxyCase):
    settings = ('proxy.timeouts.head="800ms"', 'proxy.timeouts.idle="1s"',
                'proxy.timeouts.first_byte="1s"', 'proxy.timeouts.transfer_idle="1s"')

    def setUp(self):
        super().setUp()
        self.started = time.monotonic()

    def assert_took(self, least):
        took = time.monotonic() - self.started
        self.assertGreater(took, least * 0.9, "too early")
        self.assertLess(took, least + LATE, "too late")

    def assert_ended(self, stream, least):
        self.assertIsNotNone(stream.wait_end(least + LATE), "still open")
        self.assert_took(least)

    def test_half_a_head(self):
        client = self.client()
        client.send(b"GET http://127.0.0.1/ HTTP/1.1\r\nHos")
        self.assert_ended(client, 0.8)
        self.assertRegex(bytes(client.buffer), rb"^(HTTP/1\.1 408 |$)")

    def test_a_head_in_drops(self):
        """Slowloris: a byte now and then does not extend the time for a head."""
        client = self.client()
        client.send(b"GET http://127.0.0.1/ HTTP/1.1\r\n")
        deadline = time.monotonic() + 6
        while time.monotonic() < deadline and client.quiet_for(0.1):
            client.try_send(b"x")
        self.assert_ended(client, 0.8)

    def test_empty_lines_are_nothing(self):
        """They neither extend the time for a request nor come without end."""
        client = self.client()
        for _ in range(60):
            if not client.quiet_for(0.1):
                break
            client.try_send(b"\r\n")
        self.assert_ended(client, 0.8)

    def test_nothing_at_all(self):
        client = self.client()
        self.assert_ended(client, 0.8)
        self.assertEqual(bytes(client.buffer), b"")

    def test_idle_between_requests(self):
        client = self.client()
        self.fetch(self.origin().url(), client=client)
        self.started = time.monotonic()
        self.assert_ended(client, 1.0)
        self.assertEqual((client.end, bytes(client.buffer)), ("eof", b""))

    def test_an_idle_origin_connection_is_given_up(self):
        origin = self.origin()
        self.fetch(origin.url())
        self.assertTrue(origin.wait(lambda: origin.visits[0].closed_at, 1 + LATE), "still pooled")

    def test_first_byte(self):
        origin = self.origin(lambda visit: visit.read_request() and visit.wait_end(10))
        self.assert_problem(self.fetch(origin.url()), 504, "origin-timeout")
        self.assert_took(1.0)

    def test_a_response_that_stalls(self):
        def script(visit):
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            visit.wait_end(10)

        origin = self.origin(script)
        with self.assertRaises(Truncated):
            self.fetch(origin.url())
        self.assert_took(1.0)
        self.assertTrue(origin.wait(lambda: origin.visits[0].closed_at), "the origin's side stayed open")

    def test_an_upload_that_stalls(self):
        origin, client = self.origin(), self.client()
        client.send(request_bytes("POST", origin.url("/"), ["Host: " + origin.authority, "Content-Length: 9"], b"half"))
        self.assert_ended(client, 1.0)
        self.assertTrue(origin.wait(lambda: not origin.visits or origin.visits[0].closed_at))

    def test_a_tunnel_that_stalls(self):
        client, _ = self.tunnel(self.origin(lambda visit: visit.read_to_end()).authority)
        self.assert_ended(client, 1.0)

    def test_slow_but_steady_is_fine(self):
        """Each byte restarts transfer_idle; nothing limits the whole."""

        def script(visit):
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
            for _ in range(5):
                time.sleep(0.5)  # half of transfer_idle: this pause is the subject
                visit.send(b"x")

        self.assertEqual(self.fetch(self.origin(script).url()).body, b"xxxxx")

    def test_a_reader_that_stalls(self):
        def script(visit):
            visit.timeout = 30
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
            while visit.try_send(b"0" * 65536):
                pass

        origin, client = self.origin(script), self.client(receive_buffer=16384)
        client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
        read_head(client)
        self.assertTrue(origin.wait(lambda: origin.visits[0].closed_at, 1 + 2 * LATE), "held for a reader that sleeps")


class Connecting(ProxyCase):
    settings = ('proxy.timeouts.head="300ms"', 'proxy.timeouts.connect="900ms"')

    def test_it_is_connect_that_limits_a_connect(self):
        kept, port = silent_port()
        for sock in kept:
            self.addCleanup(sock.close)
        for name, ask in (("GET", lambda: self.fetch("http://127.0.0.1:%d/" % port)),
                          ("CONNECT", lambda: self.tunnel("127.0.0.1:%d" % port)[1])):
            with self.subTest(name):
                self.assert_problem(ask(), 504, "connect-timeout")


class Patience(ProxyCase):
    def test_keep_alive_outlives_a_pause(self):
        """With the default time-outs an idle second costs nothing."""
        origin, client = self.origin(), self.client()
        self.assertEqual(self.fetch(origin.url(), client=client).status, 200)
        self.assertTrue(client.quiet_for(1.5))
        self.assertEqual(self.fetch(origin.url(), client=client).status, 200)
        self.assertEqual(len(origin.visits), 1)
        self.assertEqual(len(origin.requests), 2)
