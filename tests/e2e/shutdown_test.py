"""SIGTERM drains; a second one does not wait."""

import threading

from harness.message import chunk, read_head, read_response, request_bytes, response_bytes
from harness.stream import connect
from startup_test import OwnProxies


class Shutdown(OwnProxies):
    def in_flight(self, proxy):
        """A request that the origin answers when told to: (client, release)."""
        release = threading.Event()
        self.addCleanup(release.set)

        def script(visit):
            visit.timeout = 30
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"first "))
            release.wait(20)
            visit.send(chunk(b"last") + b"0\r\n\r\n")

        origin, client = self.origin(script), self.client(proxy)
        client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
        self.assertEqual(read_head(client).status, 200)
        client.read_until(b"first ")
        return client, release

    def refuses_new(self, proxy):
        """Until no new connection is taken."""
        origin = self.origin()

        def refused():
            try:
                connect(proxy.address, 1).close()
                return False
            except OSError:
                return True

        return origin.wait(refused)

    def test_an_idle_proxy_ends_at_once(self):
        proxy = self.start('proxy.drain="30s"')
        client = self.client(proxy)
        self.fetch(self.origin().url(), client=client)
        proxy.terminate()
        self.assertEqual(proxy.wait(3), 0)
        self.assertEqual(client.wait_end(1), "eof")

    def test_in_flight_requests_finish(self):
        proxy = self.start('proxy.drain="30s"')
        client, release = self.in_flight(proxy)
        proxy.terminate()
        self.assertTrue(self.refuses_new(proxy), "still accepting")
        self.assertIsNone(proxy.process.poll(), "it left a request behind")
        release.set()
        self.assertIn(b"last", client.read_until(b"0\r\n\r\n"))
        self.assertEqual(proxy.wait(5), 0)

    def test_a_request_in_the_queue_of_an_open_connection(self):
        """A response that comes while draining says that the connection ends."""
        proxy = self.start('proxy.drain="30s"')
        asked, release = threading.Event(), threading.Event()
        self.addCleanup(release.set)

        def script(visit):
            visit.read_request()
            asked.set()
            release.wait(10)
            visit.send(response_bytes(b"done"))

        origin, client = self.origin(script), self.client(proxy)
        client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
        self.assertTrue(asked.wait(5))
        proxy.terminate()
        self.assertTrue(self.refuses_new(proxy))
        release.set()
        response = read_response(client)
        self.assertEqual((response.body, response.get("Connection", "").lower()), (b"done", "close"))
        self.assertEqual(proxy.wait(5), 0)

    def test_the_drain_has_an_end(self):
        proxy = self.start('proxy.drain="500ms"')
        client, _ = self.in_flight(proxy)
        proxy.terminate()
        self.assertEqual(proxy.wait(5), 0)
        self.assertEqual(client.wait_end(1), "reset", "half an answer looks whole")

    def test_a_tunnel_lasts_as_long_as_the_drain(self):
        proxy = self.start('proxy.connect_ports=["*"]', 'proxy.drain="1s"')
        origin = self.origin(lambda visit: visit.send(visit.read_exact(5)) or visit.read_to_end())
        client, _ = self.tunnel(origin.authority, proxy=proxy)
        proxy.terminate()
        self.assertTrue(self.refuses_new(proxy))
        client.send(b"still")
        self.assertEqual(client.read_exact(5), b"still")
        self.assertEqual(proxy.wait(5), 0)
        self.assertEqual(client.wait_end(1), "reset")

    def test_a_second_signal_ends_at_once(self):
        proxy = self.start('proxy.drain="30s"')
        self.in_flight(proxy)
        proxy.terminate()
        self.assertTrue(self.refuses_new(proxy))
        proxy.terminate()
        proxy.wait(2)

    def test_the_port_is_free_afterwards(self):
        first = self.start()
        self.fetch(self.origin().url(), proxy=first)
        self.assertIsNone(first.stop())
        second = self.start(ready=False, listen="127.0.0.1:%d" % first.port)
        second.address = first.address
        second.wait_ready()
        self.assertEqual(self.fetch(self.origin().url(), proxy=second).status, 200)
