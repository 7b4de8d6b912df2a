"""Peers that vanish at every point of a message: nothing hangs, leaks, or mistakes the cut for an end."""

import threading

from harness.case import ProxyCase
from harness.message import Truncated, chunk, read_response, request_bytes, response_bytes
from harness.stream import Ended

MIB = 1 << 20


class Aborts(ProxyCase):
    settings = ("proxy.workers=1",)
    weight = 10

    def setUp(self):
        super().setUp()
        self.steady = self.origin()
        self.fetch(self.steady.url())
        self.sockets = self.proxy.sockets()

    def assert_unharmed(self):
        """Every socket of the aborted ones comes back, and others are served."""
        self.assertEqual(self.fetch(self.steady.url()).status, 200)
        self.assertTrue(self.steady.wait(lambda: self.proxy.sockets() <= self.sockets + 2, 10),
                        "%d sockets before, %d after" % (self.sockets, self.proxy.sockets()))

    def test_a_client_at_every_byte_of_its_request(self):
        whole_ones = []

        def script(visit):
            while request := visit.read_request():
                whole_ones.append(request)
                visit.send(response_bytes(b"ok", "200 OK", "Connection: close"))

        origin = self.origin(script)
        body = chunk(b"hello") + b"0\r\nT: 1\r\n\r\n"
        whole = request_bytes("POST", origin.url("/"), ["Host: " + origin.authority, "Transfer-Encoding: chunked"], body)
        for cut in range(len(whole)):
            client = self.client()
            client.send(whole[:cut])
            client.reset() if cut % 2 else client.close()
        self.assert_unharmed()
        self.assertEqual(whole_ones, [], "a cut request looked whole")

    def test_a_client_at_every_kind_of_moment_of_the_response(self):
        """After some of a response that is copied, or one that the kernel moves (a write there would raise SIGPIPE)."""
        for size in (1000, 300_000, 40 * MIB):
            for taken in (0, 1, 200, 70_000, 400_000):
                for leave in ("reset", "close"):
                    with self.subTest(size=size, taken=taken, leave=leave):
                        self.leave_midway(size, min(taken, size), leave)
        self.assert_unharmed()

    def test_a_client_that_ends_its_side_has_left(self):
        """A close and a half-close look the same until somebody writes: working on for nobody would cost the origin."""
        origin, client = self.origin(lambda visit: visit.read_request() and visit.read_to_end()), self.client()
        client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
        client.finish_sending()
        self.assertEqual(client.read_to_end(), b"")
        self.assertTrue(origin.wait(lambda: not origin.visits or origin.visits[0].closed_at))
        self.assert_unharmed()

    def leave_midway(self, size, taken, leave):
        def script(visit):
            visit.read_request()
            visit.try_send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % size + bytes(size))

        origin, client = self.origin(script), self.client()
        client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
        client.read_exact(taken)
        client.reset() if leave == "reset" else client.close()
        self.assertTrue(origin.wait(lambda: origin.visits and origin.visits[0].closed_at), "the origin still sends")

    def test_an_origin_at_every_byte_of_its_response(self):
        whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"hello") + b"0\r\n\r\n"
        head = whole.index(b"\r\n\r\n") + 4
        cuts = iter(range(len(whole)))

        def script(visit):
            visit.read_request()
            cut = next(cuts)
            visit.send(whole[:cut])
            if cut % 3 == 0:
                visit.reset()

        origin = self.origin(script)
        for cut in range(len(whole)):
            with self.subTest(cut):
                client = self.client()
                client.send(request_bytes("POST", origin.url("/"), ["Host: " + origin.authority, "Content-Length: 0"]))
                try:
                    status = read_response(client).status
                except (Ended, Truncated):
                    status = None
                client.close()
                # A reset may overtake the bytes before it, so behind the head both are right.
                self.assertIn(status, (502,) if cut < head else (502, None), "a cut response looked whole")
        self.assert_unharmed()

    def test_a_tunnel_whose_client_vanishes_while_the_origin_takes_nothing(self):
        gone = threading.Event()
        self.addCleanup(gone.set)
        origin = self.origin(lambda visit: gone.wait(60))
        client, answer = self.tunnel(origin.authority, timeout=1)
        self.assertEqual(answer.status, 200)
        while client.try_send(bytes(65536)):
            pass
        client.reset()
        self.assertTrue(origin.wait(lambda: self.proxy.sockets() <= self.sockets, 40), "the proxy holds on to it")

    def test_a_tunnel_whose_ends_vanish(self):
        def script(visit):
            while visit.try_send(bytes(65536)):
                pass

        origin = self.origin(script)
        for number in range(20):
            client, answer = self.tunnel(origin.authority)
            self.assertEqual(answer.status, 200)
            client.read_exact(200_000)
            client.reset() if number % 2 else client.close()
        self.assertTrue(origin.wait(lambda: all(visit.closed_at for visit in origin.visits)), "an origin still sends")
        self.assert_unharmed()
