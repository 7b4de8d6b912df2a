"""CONNECT: where to, what passes, how it ends."""

import fcntl
import hashlib
import os
import select
import struct
import termios
import threading

from harness.case import ProxyCase
from harness.message import read_response, request_bytes
from harness.origin import refusing_port
from harness.proxy import Proxy


def echo(visit):
    while data := visit.read_some():
        visit.send(data)


class Tunnels(ProxyCase):
    def test_bytes_pass_both_ways(self):
        client, answer = self.tunnel(self.origin(echo).authority)
        self.assertEqual(answer.status, 200)
        self.assertFalse(answer.has("Content-Length") or answer.has("Transfer-Encoding"), answer)
        for data in (b"x", b"GET / HTTP/1.1\r\n\r\n", os.urandom(200_000)):
            client.send(data)
            self.assertEqual(client.read_exact(len(data)), data)

    def test_early_bytes_are_not_lost(self):
        for early in (b"early", os.urandom(40_000)):
            client, answer = self.tunnel(self.origin(echo).authority, early=early)
            self.assertEqual(answer.status, 200)
            self.assertEqual(client.read_exact(len(early)), early)

    def test_an_origin_that_speaks_first(self):
        def script(visit):
            visit.send(b"220 ready\r\n")
            visit.read_some()

        client, answer = self.tunnel(self.origin(script).authority)
        self.assertEqual(answer.status, 200)
        self.assertEqual(client.read_until(b"\r\n"), b"220 ready\r\n")

    def test_ipv6(self):
        client, answer = self.tunnel(self.origin(echo, host="::1").authority)
        self.assertEqual(answer.status, 200)
        client.send(b"six")
        self.assertEqual(client.read_exact(3), b"six")

    def test_a_name(self):
        origin = self.origin(echo)
        client, answer = self.tunnel("localhost:%d" % origin.port)
        self.assertEqual(answer.status, 200)
        client.send(b"named")
        self.assertEqual(client.read_exact(5), b"named")

    def test_half_close_by_the_client(self):
        def script(visit):
            visit.send(b"you said " + visit.read_to_end())

        client, _ = self.tunnel(self.origin(script).authority)
        client.send(b"all of it")
        client.finish_sending()
        self.assertEqual(client.read_to_end(), b"you said all of it")

    def test_half_close_by_the_origin(self):
        got = []

        def script(visit):
            visit.send(b"my part")
            visit.finish_sending()
            got.append(visit.read_to_end())

        origin = self.origin(script)
        client, _ = self.tunnel(origin.authority)
        self.assertEqual(client.read_to_end(), b"my part")
        client.send(b"a late word")
        client.finish_sending()
        self.assertTrue(origin.wait(lambda: got))
        self.assertEqual(got, [b"a late word"])

    def test_a_reset_passes_on(self):
        origin = self.origin(echo)
        client, _ = self.tunnel(origin.authority)
        client.send(b"x")
        client.read_exact(1)
        client.reset()
        self.assertTrue(origin.wait(lambda: origin.visits[0].closed_at), "the origin's side stayed open")
        self.assertEqual(origin.visits[0].end, "reset", "it was made a clean end")

    def test_a_reset_of_the_origin_passes_on(self):
        def script(visit):
            visit.read_exact(1)
            visit.send(b"half of it")
            visit.reset()

        client, _ = self.tunnel(self.origin(script).authority)
        client.send(b"x")
        self.assertEqual(client.wait_end(5), "reset", "it was made a clean end")
        self.assertEqual(client.take(99), b"half of it")

    def test_the_last_words_of_an_origin_that_does_not_listen(self):
        """It closes on a client that still sends: the kernel resets, behind what has arrived."""
        arrived = []

        def script(visit):
            visit.read_exact(1)
            sent = 0
            visit.sock.setblocking(False)
            while select.select([], [visit.sock], [], 0.2)[1]:  # until everything on the way is full
                sent += visit.sock.send(bytes(65536))
            left = struct.unpack("i", fcntl.ioctl(visit.sock, termios.TIOCOUTQ, bytes(4)))[0]
            visit.reset()
            arrived.append(sent - left)

        origin = self.origin(script)
        client, _ = self.tunnel(origin.authority, receive_buffer=16384)
        client.send(b"x")
        self.assertTrue(origin.wait(lambda: arrived, 30))
        client.send(b"more")
        client.timeout = 30
        self.assertGreaterEqual(len(client.read_to_end()), arrived[0])
        self.assertEqual(client.end, "reset")

    def test_a_client_that_has_gone_frees_the_origin(self):
        """It had ended its direction before, so only the broken write tells."""
        def script(visit):
            visit.read_to_end()
            while visit.try_send(bytes(1000)):
                pass

        origin = self.origin(script)
        client, _ = self.tunnel(origin.authority)
        client.finish_sending()
        client.read_exact(1)
        client.close()
        self.assertTrue(origin.wait(lambda: origin.visits[0].closed_at), "the origin's side stayed open")

    def test_bulk_both_ways_at_once_arrives_intact(self):
        size, block = 48 << 20, os.urandom(1 << 20)
        want = hashlib.sha256(block * 48).hexdigest()
        sums = {}

        def script(visit):
            sender = threading.Thread(target=pour, args=(visit,))
            sender.start()
            got = hashlib.sha256()
            visit.feed_digest(got, size)
            sums["there"] = got.hexdigest()
            sender.join()

        def pour(stream):
            for _ in range(48):
                stream.send(block)

        origin = self.origin(script)
        client, _ = self.tunnel(origin.authority)
        client.timeout = 30
        sender = threading.Thread(target=pour, args=(client,))
        sender.start()
        got = hashlib.sha256()
        client.feed_digest(got, size)
        sums["back"] = got.hexdigest()
        sender.join()
        origin.wait(lambda: "there" in sums)
        self.assertEqual(sums, {"there": want, "back": want})

    def test_refused_origin(self):
        keep, port = refusing_port()
        self.addCleanup(keep.close)
        _, answer = self.tunnel("127.0.0.1:%d" % port)
        self.assert_problem(answer, 502, "connect", host="127.0.0.1")

    def test_malformed_authorities(self):
        rows = ["127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:99999", "127.0.0.1:80x", ":443", "[::1",
                "[::1]", "::1:443", "a@127.0.0.1:443", "http://127.0.0.1:443", "127.0.0.1:443/x", "/", "*"]
        for authority in rows:
            with self.subTest(authority):
                _, answer = self.tunnel(authority)
                self.assertEqual(answer.status, 400, answer)

    def test_it_has_no_body(self):
        origin = self.origin(echo)
        for field in ("Content-Length: 5", "Transfer-Encoding: chunked"):
            with self.subTest(field):
                client, answer = self.tunnel(origin.authority, [field])
                self.assert_problem(answer, 400, "bad-request")
                self.assertEqual((answer.get("Connection"), origin.visits), ("close", []))
        _, answer = self.tunnel(origin.authority, ["Content-Length: 0"])
        self.assertEqual(answer.status, 200)

    def test_a_refusal_leaves_nothing_behind(self):
        """The bytes behind a refused CONNECT are never read as a request."""
        origin, client = self.origin(), self.client()
        inner = request_bytes("GET", origin.url("/smuggled"), ["Host: " + origin.authority])
        client.send(request_bytes("CONNECT", "169.254.169.254:443", ["Host: x"]) + inner)
        self.assertEqual(read_response(client, "CONNECT").status, 403)
        client.wait_end(1)
        self.assertEqual(origin.requests, [])


class Ports(ProxyCase):
    @classmethod
    def setUpClass(cls):
        cls.proxy = Proxy('proxy.drain="1s"')  # the default ports

    def test_other_ports_are_refused(self):
        for port in (19, 25, 80, 22, 8080):
            with self.subTest(port):
                _, answer = self.tunnel("127.0.0.1:%d" % port)
                self.assert_problem(answer, 403, None)

    def test_the_default_ports_are_tried(self):
        for port in (443, 8443):
            with self.subTest(port):
                _, answer = self.tunnel("127.0.0.1:%d" % port)
                self.assertIn(answer.status, (200, 502))

    def test_ranges(self):
        origin = self.origin(echo)
        near = self.start('proxy.connect_ports=[443, "%d-%d"]' % (origin.port - 1, origin.port))
        _, answer = self.tunnel(origin.authority, proxy=near)
        self.assertEqual(answer.status, 200)
        _, answer = self.tunnel("127.0.0.1:%d" % (origin.port + 1), proxy=near)
        self.assertEqual(answer.status, 403)
