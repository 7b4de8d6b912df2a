"""What a client is told when there is no answer from the origin."""

import json

from harness.case import ProxyCase
from harness.message import read_response
from harness.origin import silent_port


class Errors(ProxyCase):
    settings = ('proxy.timeouts.connect="700ms"', 'proxy.timeouts.first_byte="700ms"')

    def silent_url(self):
        kept, port = silent_port()
        for sock in kept:
            self.addCleanup(sock.close)
        return "http://127.0.0.1:%d/" % port

    def test_connection_refused(self):
        problem = self.assert_problem(self.fetch(self.refused_url()), 502, "connect", host="127.0.0.1")
        self.assertIn("127.0.0.1", problem["detail"])
        self.assertIn("refused", problem["detail"].lower())

    def test_connect_time_out(self):
        self.assert_problem(self.fetch(self.silent_url()), 504, "connect-timeout", host="127.0.0.1")

    def test_origin_time_out(self):
        origin = self.origin(lambda visit: visit.read_request() and visit.wait_end(10))
        self.assert_problem(self.fetch(origin.url()), 504, "origin-timeout", host="127.0.0.1")
        self.assertTrue(origin.wait(lambda: origin.visits[0].closed_at), "its connection stayed open")

    def test_origin_closed(self):
        origin = self.origin(lambda visit: visit.read_request())
        self.assert_problem(self.fetch(origin.url()), 502, "origin-closed", host="127.0.0.1")

    def test_origin_reset(self):
        origin = self.origin(lambda visit: visit.read_request() and visit.reset())
        self.assert_problem(self.fetch(origin.url()), 502, "origin-closed", host="127.0.0.1")

    def test_connect_time_out_of_a_tunnel(self):
        authority = self.silent_url().split("/")[2]
        _, answer = self.tunnel(authority)
        self.assert_problem(answer, 504, "connect-timeout", host="127.0.0.1")

    def test_proxy_status_names_the_error(self):
        """RFC 9209 2.3: the registered error types."""
        closed = self.origin(lambda visit: visit.read_request())
        rows = [(self.refused_url(), "connection_refused"), (self.silent_url(), "connection_timeout"),
                (closed.url(), "connection_terminated")]
        for url, error in rows:
            with self.subTest(error):
                self.assertIn("error=" + error, self.fetch(url).get("Proxy-Status", ""))

    def test_the_connection_stays_usable(self):
        client, origin = self.client(), self.origin()
        self.assertEqual(self.fetch(self.refused_url(), client=client).status, 502)
        self.assertEqual(self.fetch(origin.url(), client=client).status, 200)

    def test_what_cannot_be_read_names_no_host(self):
        """Least of all that of the request before it."""
        origin, client = self.origin(), self.client()
        client.send("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (origin.url(), origin.authority))
        self.assertEqual(read_response(client).status, 200)
        client.send(b"GET bad\x01 HTTP/1.1\r\n\r\n")
        self.assertNotIn("host", self.assert_problem(read_response(client), 400, "bad-request"))

    def test_head_gets_no_body(self):
        client, origin = self.client(), self.origin()
        self.assertEqual(self.fetch(self.refused_url(), "HEAD", client=client).status, 502)
        self.assertEqual(self.fetch(origin.url(), client=client).status, 200)

    def test_an_upload_to_nowhere(self):
        response = self.fetch(self.refused_url(), "POST", body=b"x" * 300_000)
        self.assert_problem(response, 502, "connect")

    def test_the_client_chooses_how_to_read_it(self):
        rows = [("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"), ("text/plain", "text/plain"),
                ("application/json", "application/problem+json"), ("*/*", "application/problem+json"),
                (None, "application/problem+json"), ("application/problem+json", "application/problem+json")]
        for accept, wanted in rows:
            with self.subTest(accept):
                fields = ["Accept: " + accept] if accept else []
                response = self.fetch(self.refused_url(), fields=fields)
                self.assertEqual(response.status, 502)
                self.assertEqual(response.get("Content-Type").split(";")[0], wanted)
                self.assertIn(b"127.0.0.1", response.body)

    def test_html_escapes_what_the_client_sent(self):
        url = self.refused_url() + "?<script>alert(1)</script>"
        response = self.fetch(url, fields=["Accept: text/html"])
        self.assertNotIn(b"<script>alert", response.body)

    def test_json_survives_odd_bytes(self):
        response = self.fetch(self.refused_url() + '"\\', fields=[])
        if response.status == 502:
            json.loads(response.body)
        else:
            self.assertEqual(response.status, 400)
