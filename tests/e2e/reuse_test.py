"""Connections used again: pipelining, the pool of origin connections, stale ones, closes."""

import threading

from harness.case import ProxyCase
from harness.message import chunk, read_response, request_bytes, response_bytes
from harness.origin import OK, replying


def echo_target(request):
    return response_bytes(request.target.encode())


class Reuse(ProxyCase):
    def test_pipelined_requests_are_answered_in_order(self):
        origins = [self.origin(replying(echo_target)) for _ in range(3)]
        client = self.client()
        wanted, sent = [], b""
        for number in range(60):
            origin = origins[number % 3]
            method = "POST" if number % 7 == 0 else "GET"
            fields = ["Host: " + origin.authority] + (["Content-Length: 3"] if method == "POST" else [])
            sent += request_bytes(method, origin.url("/%d" % number), fields, b"abc" if method == "POST" else b"")
            wanted.append(b"/%d" % number)
        client.send(sent)
        self.assertEqual([read_response(client).body for _ in wanted], wanted)

    def test_pipelined_bytes_one_by_one(self):
        origin, client = self.origin(replying(echo_target)), self.client()
        for path in ("/a", "/b"):
            for byte in request_bytes("GET", origin.url(path), ["Host: " + origin.authority]):
                client.send(bytes([byte]))
        self.assertEqual([read_response(client).body for _ in range(2)], [b"/a", b"/b"])

    def test_a_connection_that_is_authenticated_stays_its_clients(self):
        """NTLM and Negotiate vouch for a connection (RFC 4559): nobody else may come through it."""
        challenge = response_bytes(b"who?", "401 Unauthorized", "WWW-Authenticate: Negotiate abc")

        def answer(request):
            return challenge if request.target == "/challenge" else echo_target(request)

        rows = [("by the request", "/x", ["Authorization: NTLM TlRMTVNTUAABAAAA"]), ("by the challenge", "/challenge", [])]
        for name, path, fields in rows:
            with self.subTest(name):
                origin, client, other = self.origin(replying(answer)), self.client(), self.client()
                self.fetch(origin.url(path), fields=fields, client=client)
                self.assertEqual(self.fetch(origin.url("/other"), client=other).body, b"/other")
                self.assertEqual(self.fetch(origin.url("/own"), client=client).body, b"/own")
                visits = {request.target: request.visit for request in origin.requests}
                self.assertNotEqual(visits["/other"], visits[path], "shared with another client")
                self.assertEqual(visits["/own"], visits[path], "the handshake cannot go on")
                client.close()
                self.assertTrue(origin.wait(lambda: origin.visits[0].closed_at), "kept for nobody")

    def test_an_origin_connection_is_reused(self):
        origin, client = self.origin(replying(echo_target)), self.client()
        for number in range(20):
            path = "/%d" % number
            self.assertEqual(self.fetch(origin.url(path), client=client).body, path.encode())
        self.assertEqual(len(origin.visits), 1)

    def test_not_reused_after_close_or_until_close_or_upgrade_refusal(self):
        rows = [response_bytes(b"x", "200 OK", "Connection: close"), b"HTTP/1.0 200 OK\r\n\r\nx"]
        for answer in rows:
            with self.subTest(answer):
                def script(visit):
                    visit.read_request()
                    visit.send(answer)

                origin = self.origin(script)
                for _ in range(2):
                    self.assertEqual(self.fetch(origin.url()).body, b"x")
                self.assertEqual(len(origin.visits), 2)

    def test_not_reused_when_the_origin_said_too_much(self):
        smuggled = response_bytes(b"ok") + response_bytes(b"smuggled")
        origin, client = self.origin(replying(smuggled, response_bytes(b"true"))), self.client()
        self.assertEqual(self.fetch(origin.url(), client=client).body, b"ok")
        second = self.fetch(origin.url(), client=self.client())
        self.assertNotEqual(second.body, b"smuggled")

    def test_client_close_is_honoured(self):
        origin, client = self.origin(), self.client()
        response = self.fetch(origin.url(), fields=["Connection: close"], client=client)
        self.assertEqual(response.status, 200)
        self.assertEqual(client.wait_end(5), "eof")

    def test_a_client_that_leaves_frees_its_origin_connection(self):
        waiting = threading.Event()

        def script(visit):
            visit.read_request()
            waiting.set()
            visit.end_seen = visit.wait_end(10)

        origin, client = self.origin(script), self.client()
        client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
        self.assertTrue(waiting.wait(5))
        client.reset()
        self.assertTrue(origin.wait(lambda: origin.visits[0].closed_at), "the origin still waits")

    def test_a_half_read_response_frees_both(self):
        def script(visit):
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while visit.try_send(chunk(b"z" * 65536)):
                pass

        origin, client = self.origin(script), self.client()
        client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
        client.read_exact(100_000)
        client.reset()
        self.assertTrue(origin.wait(lambda: origin.visits[0].closed_at), "the origin still sends")


class Stale(ProxyCase):
    """A pooled connection that the origin closes just when it is used again."""

    def prepare(self, trigger):
        """An origin that serves each connection once and drops it at its second request; the pool is warm."""

        def script(visit):
            visit.read_request()
            visit.send(OK)
            if visit.read_request():
                trigger(visit)

        origin, client = self.origin(script), self.client()
        self.assertEqual(self.fetch(origin.url("/warm"), client=client).status, 200)
        return origin, client

    def test_get_is_retried_once_on_a_fresh_one(self):
        for name, trigger in (("eof", lambda visit: None), ("reset", lambda visit: visit.reset())):
            with self.subTest(name):
                origin, client = self.prepare(trigger)
                self.assertEqual(self.fetch(origin.url("/again"), client=client).status, 200)
                self.assertEqual([(r.target, r.visit) for r in origin.requests],
                                 [("/warm", 0), ("/again", 0), ("/again", 1)])

    def test_post_is_never_sent_twice(self):
        def script(visit):
            while (request := visit.read_request()) and request.method == "GET":
                visit.send(OK)

        origin, client = self.origin(script), self.client()
        self.assertEqual(self.fetch(origin.url("/warm"), client=client).status, 200)
        response = self.fetch(origin.url("/pay"), "POST", body=b"money", client=client)
        self.assert_problem(response, 502, "origin-closed")
        self.assertEqual([r.method for r in origin.requests], ["GET", "POST"])

    def test_a_fresh_connection_that_dies_is_not_retried(self):
        origin = self.origin(lambda visit: visit.read_request())
        self.assert_problem(self.fetch(origin.url()), 502, "origin-closed")
        self.assertEqual(len(origin.requests), 1)

    def test_no_retry_after_the_first_response_byte(self):
        origin, client = self.prepare(lambda visit: visit.send(b"HTTP/1.1 2"))
        self.assertEqual(self.fetch(origin.url("/again"), client=client).status, 502)
        self.assertEqual(len(origin.visits), 1)

    def test_closed_while_idle(self):
        def script(visit):
            visit.read_request()
            visit.send(OK)

        origin, client = self.origin(script), self.client()
        for _ in range(20):
            self.assertEqual(self.fetch(origin.url(), client=client).status, 200)
            origin.wait(lambda: origin.visits[-1].closed_at)
