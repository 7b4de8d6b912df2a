"""Upgrades: after 101 the connection is a relay; without it, it is not."""

from harness.case import ProxyCase
from harness.message import read_response, request_bytes, response_bytes
from harness.origin import replying

ASK = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
SWITCH = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")


class Upgrades(ProxyCase):
    def upgrade(self, script, early=b""):
        origin, client = self.origin(script), self.client()
        client.send(request_bytes("GET", origin.url("/chat"), ["Host: " + origin.authority, *ASK]) + early)
        return origin, client, read_response(client)

    def test_websocket_relays_both_ways(self):
        def script(visit):
            visit.read_head()
            visit.send(SWITCH + b"\x81\x05hello")  # the first frame in the same packet
            while data := visit.read_some():
                visit.send(data[::-1])

        origin, client, response = self.upgrade(script)
        self.assertEqual(response.status, 101)
        self.assertEqual(response.get("Upgrade"), "websocket")
        self.assertEqual(response.get("Connection", "").lower(), "upgrade")
        self.assertEqual(response.get("Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        self.assertEqual(client.read_exact(7), b"\x81\x05hello")
        for frame in (b"\x81\x83abcdef\0", bytes(range(256)), b"GET / HTTP/1.1\r\n\r\n"):
            client.send(frame)
            self.assertEqual(client.read_exact(len(frame)), frame[::-1])
        request = origin.requests[0]
        self.assertEqual((request.get("Upgrade"), request.get("Connection", "").lower()), ("websocket", "upgrade"))
        client.close()
        self.assertTrue(origin.wait(lambda: origin.visits[0].closed_at), "the origin's side stayed open")

    def test_the_origins_end_ends_the_client(self):
        def script(visit):
            visit.read_head()
            visit.send(SWITCH + b"bye")

        _, client, _ = self.upgrade(script)
        self.assertEqual(client.read_to_end(), b"bye")

    def test_refused_upgrade_is_an_ordinary_response(self):
        origin, client, response = self.upgrade(replying(response_bytes(b"no", "426 Upgrade Required")))
        self.assertEqual((response.status, response.body), (426, b"no"))
        self.assertEqual(self.fetch(origin.url("/next"), client=client).status, 426)

    def test_101_that_nobody_asked_for_is_an_error(self):
        origin = self.origin(replying(SWITCH))
        self.assertEqual(self.fetch(origin.url()).status, 502)

    def test_101_to_another_protocol_is_an_error(self):
        for upgrade in (b"h2c", b"websocket, x", b""):
            with self.subTest(upgrade):
                origin, _, response = self.upgrade(replying(SWITCH.replace(b"websocket", upgrade)))
                self.assert_problem(response, 502, "origin-closed")
                self.assertTrue(origin.wait(lambda: origin.visits[0].closed_at))

    def test_426_says_what_to_upgrade_to(self):
        answer = response_bytes(b"no", "426 Upgrade Required", "Connection: upgrade", "Upgrade: TLS/1.0")
        response = self.fetch(self.origin(replying(answer)).url())
        self.assertEqual((response.get("Upgrade"), response.get("Connection")), ("TLS/1.0", "Upgrade"))
