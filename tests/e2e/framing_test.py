"""Where a response ends, in every framing, and that a cut one never looks whole."""

from harness.case import ProxyCase
from harness.message import Truncated, chunk, read_response, request_bytes, response_bytes
from harness.origin import replying, replying_once

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Framing(ProxyCase):
    def test_bodiless_responses_leave_the_connection_usable(self):
        rows = [("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", 200),
                ("HEAD", CHUNKED, 200),
                ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", 204),
                ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\nETag: \"x\"\r\n\r\n", 304),
                ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200)]
        for method, answer, status in rows:
            with self.subTest(answer):
                origin = self.origin(replying(answer, response_bytes(b"next")))
                client = self.client()
                self.assertEqual(self.fetch(origin.url(), method, client=client).status, status)
                self.assertEqual(self.fetch(origin.url(), client=client).body, b"next")

    def test_head_keeps_the_length_it_speaks_of(self):
        origin = self.origin(replying(b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"))
        self.assertEqual(self.fetch(origin.url(), "HEAD").get("Content-Length"), "1234")

    def test_until_close(self):
        body = b"x" * 300_000
        origin = self.origin(replying_once(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body))
        self.assertEqual(self.fetch(origin.url()).body, body)

    def test_http_10_origin(self):
        origin = self.origin(replying_once(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold"))
        self.assertEqual(self.fetch(origin.url()).body, b"old")

    def test_chunks_and_trailers(self):
        answer = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                  + chunk(b"a" * 70_000) + b"3;ext=1\r\nbcd\r\n" + b"0\r\nX-Sum: 42\r\n\r\n")
        origin = self.origin(replying(answer, response_bytes(b"next")))
        client = self.client()
        response = self.fetch(origin.url(), fields=["TE: trailers"], client=client)
        self.assertEqual(response.body, b"a" * 70_000 + b"bcd")
        self.assertEqual(response.trailers, [("X-Sum", "42")])
        self.assertEqual(self.fetch(origin.url(), client=client).body, b"next")

    def test_trailers_that_connection_names_stay_here(self):
        seen = []
        answer = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: X-Hop\r\nTrailer: X-Hop, X-Sum\r\n\r\n"
                  b"0\r\nX-Hop: 1\r\nX-Sum: 42\r\n\r\n")

        def script(visit):
            request = visit.read_request()
            seen.append(request.trailers)
            visit.send(answer)

        origin, client = self.origin(script), self.client()
        client.send(request_bytes("POST", origin.url("/"), ["Host: " + origin.authority, "Connection: X-Up",
                                                            "Transfer-Encoding: chunked"],
                                  b"0\r\nX-Up: 1\r\nX-Kept: 2\r\n\r\n"))
        response = read_response(client)
        self.assertEqual(seen, [[("X-Kept", "2")]])
        self.assertEqual((response.get("Trailer"), response.trailers), ("X-Sum", [("X-Sum", "42")]))

    def test_interim_responses_have_an_end(self):
        flood = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        origin = self.origin(replying(100 * flood + response_bytes()))
        self.assertEqual(self.fetch(origin.url()).status, 200)
        origin = self.origin(replying(101 * flood + response_bytes()))
        self.assert_problem(self.fetch(origin.url()), 502, "origin-closed")

    def test_interim_responses_pass(self):
        hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"
        origin = self.origin(replying(hints + response_bytes(b"done")))
        response = self.fetch(origin.url())
        self.assertEqual(response.body, b"done")
        self.assertEqual([(part.status, part.get("Link")) for part in response.interim],
                         [(103, "</a>; rel=preload")])

    def test_a_head_in_single_bytes(self):
        def script(visit):
            visit.read_request()
            for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n":
                visit.send(bytes([byte]))

        self.assertEqual(self.fetch(self.origin(script).url()).body, b"ok")

    def test_garbage_instead_of_a_response(self):
        rows = [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"\0" * 200, b"HTTP/1.1 2000 OK\r\n\r\n",
                b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy",
                b"HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n"]
        for answer in rows:
            with self.subTest(answer):
                response = self.fetch(self.origin(replying_once(answer)).url())
                self.assertEqual(response.status, 502, response)


class Cuts(ProxyCase):
    """A response cut by the origin ends the client's connection, never as a clean end."""

    def cut(self, data, how, version="HTTP/1.1"):
        """What the client saw of an origin that sends data and then ends: the Truncated."""

        def script(visit):
            visit.read_request()
            visit.send(data)
            if how == "reset":
                # The bytes must be on their way before the RST overtakes them.
                self.assertTrue(visit.quiet_for(0.2))
                visit.reset()

        origin, client = self.origin(script), self.client()
        client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority], version=version))
        with self.assertRaises(Truncated, msg="the cut response looked whole") as caught:
            read_response(client)
        return caught.exception

    def test_content_length(self):
        for how in ("eof", "reset"):
            with self.subTest(how):
                seen = self.cut(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", how)
                self.assertEqual(seen.message.body, b"half")

    def test_chunked(self):
        rows = [chunk(b"half"), b"40\r\nhalf", chunk(b"half") + b"0\r\n", chunk(b"half") + b"5"]
        for body in rows:
            for how in ("eof", "reset"):
                with self.subTest(body=body, how=how):
                    self.assertIn(b"half", self.cut(CHUNKED + body, how).message.body)

    def test_until_close_reset(self):
        for version in ("HTTP/1.1", "HTTP/1.0"):
            with self.subTest(version):
                self.cut(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf", "reset", version)

    def test_broken_chunk_framing(self):
        self.cut(CHUNKED + chunk(b"good") + b"zz\r\nbad\r\n", "eof")

    def test_head_cut(self):
        for data in (b"", b"HTTP/1.1 200 OK\r\nContent-Le"):
            with self.subTest(data):
                response = self.fetch(self.origin(replying_once(data)).url(), "POST", body=b"x")
                self.assert_problem(response, 502, "origin-closed")
