"""How a request and a response are rebuilt on their way through."""

from harness.case import ProxyCase
from harness.message import chunk, read_response, request_bytes, response_bytes
from harness.origin import replying


class Forwarding(ProxyCase):
    def arrival(self, *fields, method="GET", path="/", body=b""):
        """The request as the origin got it."""
        origin = self.origin()
        self.assertEqual(self.fetch(origin.url(path), method, fields, body).status, 200)
        return origin.requests[0]

    def test_absolute_form_becomes_origin_form(self):
        rows = [("/a/b?c=d&e", "/a/b?c=d&e"), ("/", "/"), ("", "/"), ("?q=1", "/?q=1"),
                ("/%7Euser/%2F%00?%20", "/%7Euser/%2F%00?%20"), ("//double", "//double")]
        for path, target in rows:
            with self.subTest(path):
                origin = self.origin()
                client = self.client()
                client.send(request_bytes("GET", origin.url(path), ["Host: " + origin.authority]))
                self.assertEqual(read_response(client).status, 200)
                self.assertEqual(origin.requests[0].start, "GET %s HTTP/1.1" % target)

    def test_host_comes_from_the_target(self):
        origin = self.origin()
        client = self.client()
        client.send(request_bytes("GET", origin.url("/"), ["Host: elsewhere.example"]))
        response = read_response(client)
        if response.status != 400:  # refusing the contradiction is right too
            self.assertEqual(origin.requests[0].all("Host"), [origin.authority])

    def test_hop_by_hop_fields_stay_here(self):
        request = self.arrival(
            "Connection: keep-alive, X-Private", "X-Private: 1", "Keep-Alive: timeout=5", "TE: trailers",
            "Proxy-Connection: keep-alive", "Proxy-Authorization: Basic bmlnaHRseTp4",
            "Proxy-Anything: 1", "Proxy: http://elsewhere.example", "X-Public: 2")
        self.assertEqual(request.get("X-Public"), "2")
        for name in ("X-Private", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Proxy-Anything", "Proxy"):
            self.assertFalse(request.has(name), "%s was forwarded: %r" % (name, request))

    def test_end_to_end_fields_arrive_unchanged_and_in_order(self):
        sent = ["X-One: 1", "Accept: a/b;q=0.1,  c/d", "X-Many: first", "Cookie: a=b; c=d", "X-Many: second",
                "Authorization: Bearer abc", "X-Empty:", "X-Latin: caf\xe9"]
        request = self.arrival(*sent)
        names = {line.partition(":")[0] for line in sent}
        got = ["%s: %s" % field for field in request.fields if field[0] in names]
        self.assertEqual(got, [line.replace("X-Empty:", "X-Empty: ") for line in sent])

    def test_via_is_added_both_ways_behind_what_was_there(self):
        origin = self.origin(replying(response_bytes(b"ok", "200 OK", "Via: 1.0 inner")))
        response = self.fetch(origin.url(), fields=["Via: 1.0 outer"])
        there = ", ".join(origin.requests[0].all("Via"))
        back = ", ".join(response.all("Via"))
        self.assertRegex(there, r"^1\.0 outer, 1\.1 \S*sluice")
        self.assertRegex(back, r"^1\.0 inner, 1\.1 \S*sluice")

    def test_response_hop_by_hop_fields_stay_here(self):
        origin = self.origin(replying(response_bytes(
            b"ok", "200 OK", "Connection: keep-alive, X-Private", "X-Private: 1", "Keep-Alive: timeout=5",
            "Proxy-Authenticate: Basic", "X-Public: 2", "Set-Cookie: a=1", "Set-Cookie: b=2")))
        response = self.fetch(origin.url())
        self.assertEqual(response.get("X-Public"), "2")
        self.assertEqual(response.all("Set-Cookie"), ["a=1", "b=2"])
        for name in ("X-Private", "Keep-Alive", "Proxy-Authenticate"):
            self.assertFalse(response.has(name), "%s was forwarded: %r" % (name, response))

    def test_any_method(self):
        for method in ("PUT", "PATCH", "DELETE", "PROPFIND", "PURGE", "REPORT"):
            with self.subTest(method):
                request = self.arrival(method=method, body=b"12345")
                self.assertEqual((request.method, request.body), (method, b"12345"))

    def test_status_line_and_reason_arrive(self):
        for status in ("200 OK", "404 Not Here", "500 Oops", "299 Odd", "451 Unavailable"):
            with self.subTest(status):
                origin = self.origin(replying(response_bytes(b"body", status)))
                response = self.fetch(origin.url())
                self.assertEqual((response.status, response.body), (int(status[:3]), b"body"))

    def test_http_10_client_gets_a_plain_body_and_a_close(self):
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        origin = self.origin(replying(head + chunk(b"one ") + chunk(b"two") + b"0\r\n\r\n"))
        client = self.client()
        client.send(request_bytes("GET", origin.url("/"), version="HTTP/1.0"))
        response = read_response(client)
        self.assertFalse(response.has("Transfer-Encoding"), response)
        self.assertEqual(response.body, b"one two")
        self.assertEqual(client.wait_end(5), "eof")

    def test_options_asterisk(self):
        origin = self.origin()
        client = self.client()
        client.send(request_bytes("OPTIONS", "http://" + origin.authority, ["Host: " + origin.authority]))
        self.assertEqual(read_response(client).status, 200)
        self.assertEqual(origin.requests[0].start, "OPTIONS * HTTP/1.1")  # RFC 9112 3.2.4

    def test_max_forwards_counts_down(self):
        for method in ("OPTIONS", "TRACE"):
            with self.subTest(method):
                request = self.arrival("Max-Forwards: 3", method=method)
                self.assertEqual(request.get("Max-Forwards"), "2")

    def test_max_forwards_twice(self):
        origin = self.origin()
        fields = ["Max-Forwards: 999999"] + 900 * ["Max-Forwards:"]
        for method, status in (("OPTIONS", 400), ("TRACE", 400), ("GET", 200)):
            with self.subTest(method):
                self.assertEqual(self.fetch(origin.url(), method, fields).status, status)

    def test_trace_has_no_body(self):
        origin = self.origin()
        self.assert_problem(self.fetch(origin.url(), "TRACE", body=b"x"), 400, "bad-request")
        self.assertEqual(origin.visits, [])

    def test_an_echo_tells_no_secret(self):
        fields = ["Max-Forwards: 0", "X-Api-Key: s3cret", "X-Auth-Token: s3cret", "Cookie: s3cret", "X-Plain: seen"]
        body = self.fetch(self.origin().url(), "TRACE", fields).body
        self.assertNotIn(b"s3cret", body)
        self.assertIn(b"X-Plain: seen", body)

    def test_an_old_client_gets_one_answer(self):
        """RFC 9112 9.3: what HTTP/1.0 says of keep-alive may be of a hop before and means nothing to a proxy."""
        for url in (self.origin().url(), self.refused_url()):
            client = self.client()
            client.send(request_bytes("GET", url, ["Connection: keep-alive"], version="HTTP/1.0"))
            self.assertEqual(read_response(client).get("Connection"), "close")
            self.assertEqual(client.wait_end(5), "eof")

    def test_a_body_for_the_help_page(self):
        """Nobody reads it, so the connection cannot go on, and the answer says so."""
        for method in ("GET", "POST"):
            client = self.client()
            client.send(request_bytes(method, "/", ["Host: x", "Content-Length: 5"]))
            self.assertEqual(read_response(client).get("Connection"), "close")
            self.assertEqual(client.wait_end(5), "eof")

    def test_only_get_and_head_get_the_help_page(self):
        rows = [("GET", "/", 200), ("HEAD", "/x", 200), ("OPTIONS", "*", 200), ("OPTIONS", "/", 400),
                ("POST", "/", 400), ("DELETE", "/x", 400), ("TRACE", "/", 400)]
        client = self.client()
        for method, target, status in rows:
            with self.subTest(method=method, target=target):
                client.send(request_bytes(method, target, ["Host: x"]))
                response = read_response(client, method)
                self.assertEqual((response.status, response.has("Connection")), (status, False))

    def test_the_asterisk_is_for_options(self):
        for method in ("GET", "HEAD", "POST", "TRACE"):
            client = self.client()
            client.send(request_bytes(method, "*", ["Host: x"]))
            response = read_response(client, method)
            self.assertEqual((response.status, response.get("Connection")), (400, "close"))

    def test_max_forwards_zero_is_answered_here(self):
        for method in ("OPTIONS", "TRACE"):
            with self.subTest(method):
                origin = self.origin()
                response = self.fetch(origin.url(), method, ["Max-Forwards: 0", "Authorization: Basic c2VjcmV0"])
                self.assertEqual(response.status, 200, response)
                self.assertEqual(origin.requests, [])
                self.assertNotIn(b"c2VjcmV0", response.body)
