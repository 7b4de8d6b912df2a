"""What connections and bodies cost in memory. Skipped for sanitizer builds, whose RSS says nothing."""

import threading
import time
import unittest

from harness.case import ProxyCase
from harness.message import read_head, read_response, request_bytes, response_bytes
from harness.origin import replying
from harness.proxy import sanitized

MIB = 1 << 20


class Memory(ProxyCase):
    weight = 20  # seconds: start it first
    settings = ("proxy.workers=1",)

    @classmethod
    def setUpClass(cls):
        if sanitized():
            raise unittest.SkipTest("memory of a sanitizer build")
        super().setUpClass()

    def test_a_gibibyte_to_a_slow_reader(self):
        """1 GiB at 64 MiB/s: the proxy never holds more than its buffers."""
        size = 1024 * MIB

        def script(visit):
            visit.timeout = 60
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            zeros = bytes(MIB)
            for _ in range(size // MIB):
                visit.send(zeros)

        self.fetch(self.origin().url())
        before = self.proxy.resident()
        origin, client = self.origin(script), self.client()
        client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
        read_head(client)
        got, peak, started = len(client.buffer), 0, time.monotonic()
        view = memoryview(bytearray(MIB))
        while got < size:
            count = client.sock.recv_into(view)
            self.assertGreater(count, 0, "ended after %d bytes" % got)
            got += count
            peak = max(peak, self.proxy.resident()) if got % (4 * MIB) < count else peak
            ahead = got / (64 * MIB) - (time.monotonic() - started)
            if ahead > 0.02:
                time.sleep(ahead)  # the throttle is the subject
        self.assertEqual(got, size)
        self.assertLess(peak - before, 4 * MIB, "RSS grew by %.1f MiB" % ((peak - before) / MIB))

    def test_an_upload_to_a_slow_origin(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def script(visit):
            visit.read_head()
            go.wait(10)

        self.fetch(self.origin().url())
        before = self.proxy.resident()
        origin, client = self.origin(script), self.client(timeout=1)
        client.send(request_bytes("POST", origin.url("/"), ["Host: " + origin.authority, "Content-Length: %d" % (1 << 30)]))
        while client.try_send(bytes(MIB)):
            pass
        self.assertLess(self.proxy.resident() - before, 4 * MIB)

    def test_idle_connections(self):
        """2,000 keep-alive clients that have made a request: at most 6 KiB each."""
        origin = self.origin()
        crowd = []
        for _ in range(50):
            self.fetch(origin.url())
        before = self.proxy.resident()
        for _ in range(2000):
            client = self.client()
            self.assertEqual(self.fetch(origin.url(), client=client).status, 200)
            crowd.append(client)
        each = (self.proxy.resident() - before) / len(crowd)
        self.assertLess(each, 6 * 1024, "%.1f KiB each" % (each / 1024))
        for client in crowd:
            self.assertFalse(client.end)

    def test_a_fat_head_leaves_no_fat(self):
        """Clients and origins that have sent a head near the limit rest like all others."""
        fields = ["X: " + "x" * 40000, "Connection: keep-alive"] + 900 * ["a:"]
        origin = self.origin(replying(response_bytes(b"ok", "200 OK", *fields)))
        crowd = []
        for _ in range(50):
            self.fetch(origin.url(), fields=fields)
        before = self.proxy.resident()
        for _ in range(200):
            client = self.client()
            head = request_bytes("GET", origin.url("/"), ["Host: " + origin.authority, *fields])
            client.send(head[:30000])
            client.send(head[30000:])
            self.assertEqual(read_response(client).status, 200)
            crowd.append(client)
        each = (self.proxy.resident() - before) / len(crowd)
        self.assertLess(each, 12 * 1024, "%.1f KiB each" % (each / 1024))

    def test_descriptors_come_back(self):
        origin = self.origin()
        self.fetch(origin.url())
        before = self.proxy.sockets()
        crowd = [self.client() for _ in range(200)]
        for number, client in enumerate(crowd):
            client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
            client.reset() if number % 2 else client.close()
        self.assertTrue(origin.wait(lambda: self.proxy.sockets() <= before + 70),
                        "%d sockets before, %d after" % (before, self.proxy.sockets()))
