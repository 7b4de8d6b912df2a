"""Bytes pass when they come, and stop when nobody takes them."""

import hashlib
import threading
import time

from harness.case import ProxyCase
from harness.message import chunk, read_head, request_bytes

SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


class Streaming(ProxyCase):
    def open_stream(self, script, **options):
        origin, client = self.origin(script), self.client(**options)
        client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
        return client

    def test_each_event_passes_before_the_next_is_made(self):
        rows = [SSE + b"Transfer-Encoding: chunked\r\n\r\n", SSE + b"Connection: close\r\n\r\n"]
        for head in rows:
            with self.subTest(head):
                step = threading.Semaphore(0)

                def script(visit):
                    visit.read_request()
                    visit.send(head)
                    for number in range(3):
                        event = b"data: %d\n\n" % number
                        visit.send(chunk(event) if b"chunked" in head else event)
                        step.acquire(timeout=5)

                client = self.open_stream(script)
                self.assertEqual(read_head(client).status, 200)
                for number in range(3):
                    client.read_until(b"data: %d\n\n" % number)  # the origin waits for us
                    step.release()

    def test_the_head_does_not_wait_for_the_body(self):
        go = threading.Event()

        def script(visit):
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
            go.wait(5)
            visit.send(b"ok")

        client = self.open_stream(script)
        self.assertEqual(read_head(client).status, 200)
        go.set()
        self.assertEqual(client.read_exact(2), b"ok")

    def test_a_slow_client_stops_the_origin(self):
        sent = [0]

        def script(visit):
            visit.timeout = 60
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
            while visit.try_send(b"0" * 65536):
                sent[0] += 65536

        client = self.open_stream(script, receive_buffer=65536)
        read_head(client)
        self.assertLess(self.settled(sent), 32 << 20, "the proxy took far more than its client")
        before = sent[0]
        client.read_exact(48 << 20)
        self.assertGreater(sent[0], before, "the origin was never let on")

    def test_a_slow_origin_stops_the_client(self):
        stall = threading.Event()
        self.addCleanup(stall.set)

        def script(visit):
            visit.read_head()
            stall.wait(30)

        origin, client = self.origin(script), self.client()
        client.send(request_bytes("POST", origin.url("/"),
                                  ["Host: " + origin.authority, "Content-Length: 1073741824"]))
        sent = [0]

        def flood():
            client.timeout = 30
            while client.try_send(b"0" * 65536):
                sent[0] += 65536

        threading.Thread(target=flood, daemon=True).start()
        self.assertLess(self.settled(sent), 32 << 20)

    def settled(self, counter):
        """The counter once it has stood still for half a second, within 20 s."""
        last, since, deadline = -1, 0, time.monotonic() + 20
        while time.monotonic() < deadline:
            if counter[0] != last:
                last, since = counter[0], time.monotonic()
            elif time.monotonic() - since > 0.5 and last > 0:
                return last
            time.sleep(0.02)
        self.fail("it never stopped: %d bytes" % counter[0])

    def test_bulk_arrives_intact(self):
        block = hashlib.sha256(b"seed").digest() * 32768  # 1 MiB
        want = hashlib.sha256()
        for number in range(48):
            want.update(b"%08d" % number + block[8:])

        def script(visit):
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (48 << 20))
            for number in range(48):
                visit.send(b"%08d" % number + block[8:])

        client = self.open_stream(script)
        read_head(client)
        got = hashlib.sha256()
        client.feed_digest(got, 48 << 20)
        self.assertEqual(got.hexdigest(), want.hexdigest())
