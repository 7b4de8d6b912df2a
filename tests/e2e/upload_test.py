"""Request bodies: framing, 100-continue, streaming, and answers that come before the end."""

import hashlib
import threading

from harness.case import ProxyCase
from harness.message import Truncated, chunk, read_head, read_response, request_bytes, response_bytes
from harness.origin import replying


def digest_of(request):
    return response_bytes(hashlib.sha256(request.body).hexdigest().encode())


class Uploads(ProxyCase):
    def open_upload(self, origin, *fields):
        client = self.client()
        client.send(request_bytes("POST", origin.url("/"), ["Host: " + origin.authority, *fields]))
        return client

    def test_length(self):
        body = bytes(range(256)) * 20_000
        response = self.fetch(self.origin(replying(digest_of)).url(), "POST", body=body)
        self.assertEqual(response.body.decode(), hashlib.sha256(body).hexdigest())

    def test_chunks_and_trailers(self):
        origin = self.origin()
        client = self.open_upload(origin, "Transfer-Encoding: chunked", "Trailer: X-Sum")
        client.send(chunk(b"one ") + chunk(b"y" * 100_000) + b"0\r\nX-Sum: 7\r\n\r\n")
        self.assertEqual(read_response(client).status, 200)
        self.assertEqual(origin.requests[0].body, b"one " + b"y" * 100_000)
        self.assertEqual(origin.requests[0].trailers, [("X-Sum", "7")])

    def test_first_bytes_arrive_before_the_last_are_sent(self):
        got_first = threading.Event()

        def script(visit):
            visit.read_head()
            visit.read_exact(5)
            got_first.set()
            visit.read_exact(5)
            visit.send(response_bytes(b"done"))

        client = self.open_upload(self.origin(script), "Content-Length: 10")
        client.send(b"first")
        self.assertTrue(got_first.wait(5), "the proxy held the first bytes back")
        client.send(b"last.")
        self.assertEqual(read_response(client).body, b"done")

    def test_100_continue_is_the_origins_to_give(self):
        asked, grant = threading.Event(), threading.Event()

        def script(visit):
            request = visit.read_head()
            asked.set()
            grant.wait(5)
            visit.read_body(request)
            visit.send(response_bytes(request.body))

        client = self.open_upload(self.origin(script), "Content-Length: 4", "Expect: 100-continue")
        self.assertTrue(asked.wait(5), "the head was not forwarded before the body")
        grant.set()
        self.assertEqual(read_head(client).status, 100)
        client.send(b"body")
        self.assertEqual(read_response(client).body, b"body")

    def test_100_continue_refused(self):
        def script(visit):
            visit.read_head()
            visit.send(response_bytes(b"too big", "417 Expectation Failed", "Connection: close"))

        client = self.open_upload(self.origin(script), "Content-Length: 4", "Expect: 100-continue")
        response = read_response(client)
        self.assertEqual((response.status, response.interim), (417, []))

    def test_early_response_reaches_a_client_still_sending(self):
        def script(visit):
            visit.read_head()
            visit.send(response_bytes(b"enough", "413 Content Too Large", "Connection: close"))

        client = self.open_upload(self.origin(script), "Content-Length: 50000000")
        client.send(b"x" * 1000)
        response = read_response(client)
        self.assertEqual((response.status, response.body), (413, b"enough"))

    def test_early_response_while_the_body_floods(self):
        def script(visit):
            visit.read_head()
            visit.send(response_bytes(b"enough", "413 Content Too Large", "Connection: close"))
            visit.wait_end(5)  # reads on, so that no RST destroys the answer

        client = self.open_upload(self.origin(script), "Content-Length: 50000000")

        def flood():
            while client.try_send(b"x" * 65536):
                pass

        sender = threading.Thread(target=flood, daemon=True)
        sender.start()
        self.assertEqual(read_response(client).status, 413)
        client.reset()
        sender.join(5)

    def test_a_client_that_leaves_halfway_frees_the_origin(self):
        origin = self.origin()
        client = self.open_upload(origin, "Content-Length: 1000")
        client.send(b"half")
        visit = origin.wait_visit()
        client.close()
        self.assertTrue(origin.wait(lambda: visit.closed_at), "the origin's connection stayed open")
        self.assertIsInstance(origin.failures[0], Truncated, "a cut upload was passed on as whole")

    def test_a_client_that_leaves_while_the_origin_takes_nothing(self):
        origin = self.origin(lambda visit: visit.read_head() and gone.wait(30))
        gone = threading.Event()
        self.addCleanup(gone.set)
        for framing in ("Content-Length: 100000000", "Transfer-Encoding: chunked"):
            with self.subTest(framing):
                before = self.proxy.sockets()
                client = self.open_upload(origin, framing)
                client.timeout = 1
                while client.try_send(chunk(bytes(65536)) if "chunked" in framing else bytes(65536)):
                    pass
                client.reset()
                self.assertTrue(origin.wait(lambda: self.proxy.sockets() <= before, 10), "the proxy holds on to it")

    def test_malformed_chunks_end_both_sides(self):
        origin = self.origin()
        client = self.open_upload(origin, "Transfer-Encoding: chunked")
        client.send(chunk(b"good") + b"zz\r\nbad\r\n")
        self.assertIsNotNone(client.wait_end(5))
        self.assertTrue(origin.wait(lambda: not origin.visits or origin.visits[0].closed_at))
        self.assertNotIn(b"HTTP/1.1 200", bytes(client.buffer))
