"""Bounds on what a client may send or take: heads, versions, connections, descriptors."""

import os
import threading
import time

from harness.case import ProxyCase
from harness.message import read_response, request_bytes, response_bytes
from harness.stream import Ended


class Heads(ProxyCase):
    settings = ('proxy.head_limit="8KiB"',)

    def status_of(self, data):
        client = self.client()
        client.try_send(data)
        response = read_response(client)
        self.assertIsNotNone(client.wait_end(5), "the connection stayed open after %d" % response.status)
        return response.status

    def test_too_long(self):
        rows = [("the target", request_bytes("GET", "http://h/" + "a" * 9000, ["Host: h"]), 414),
                ("a field", request_bytes("GET", "http://h/", ["Host: h", "X: " + "a" * 9000]), 431),
                ("many fields", request_bytes("GET", "http://h/", ["Host: h"] + ["X: a"] * 2000), 431),
                ("a name", request_bytes("GET", "http://h/", ["Host: h", "X" * 9000 + ": a"]), 431)]
        for name, data, status in rows:
            with self.subTest(name):
                self.assertEqual(self.status_of(data), status)

    def test_an_endless_head_is_cut_off(self):
        client = self.client()
        client.try_send(b"GET http://h/ HTTP/1.1\r\n")
        sent = 0
        while sent < 64 << 20 and client.try_send(b"X-%d: y\r\n" % sent * 1000):
            sent += 8000
        self.assertLess(sent, 64 << 20, "a head bomb was swallowed")

    def test_versions_and_codings(self):
        origin = self.origin()
        url, host = origin.url("/"), "Host: " + origin.authority
        rows = [("HTTP/2.0", request_bytes("GET", url, [host], version="HTTP/2.0"), (505,)),
                ("HTTP/3.7", request_bytes("GET", url, [host], version="HTTP/3.7"), (505,)),
                ("HTTP/0.9", b"GET " + url.encode() + b"\r\n\r\n", (400, 505)),
                ("an HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, 505)),
                ("an unknown coding", request_bytes("POST", url, [host, "Transfer-Encoding: rot13, chunked"]), (501, 400)),
                ("a coding that ends otherwise", request_bytes("POST", url, [host, "Transfer-Encoding: gzip"]), (400, 501))]
        for name, data, statuses in rows:
            with self.subTest(name):
                self.assertIn(self.status_of(data), statuses)
        self.assertEqual(origin.requests, [])

    def test_unknown_scheme(self):
        response = self.fetch("ftp://127.0.0.1/file")
        self.assertIn(response.status, (400, 501))

    def test_ambiguity_is_400_and_a_close(self):
        origin = self.origin()
        url, host = origin.url("/"), "Host: " + origin.authority
        rows = [request_bytes("POST", url, [host, "Content-Length: 1", "Content-Length: 2"], b"xy"),
                request_bytes("POST", url, [host, "Content-Length: 3", "Transfer-Encoding: chunked"], b"0\r\n\r\n"),
                request_bytes("POST", url, [host, "Content-Length: +3"], b"abc"),
                request_bytes("POST", url, [host, "Content-Length : 3"], b"abc"),
                request_bytes("GET", url, [host, host]),
                request_bytes("GET", url, [host, " folded: 1"]),
                request_bytes("GET", url, [host, "X: a\0b"]),
                request_bytes("GET", url, ["Host: a b"]),
                request_bytes("GET", url),  # HTTP/1.1 needs Host
                b"GET " + url.encode() + b" HTTP/1.1\nHost: x\n\n",
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100,
                b"GET\t" + url.encode() + b" HTTP/1.1\r\n\r\n"]
        for data in rows:
            with self.subTest(data[:120]):
                self.assertEqual(self.status_of(data), 400)
        self.assertEqual(origin.requests, [])


class Clients(ProxyCase):
    settings = ("proxy.max_clients=10", "proxy.workers=1")

    def test_one_too_many_waits_or_is_told(self):
        origin = self.origin()
        # The connection that found the proxy ready may still count for a moment.
        full = [origin.wait(lambda: self.admitted(origin)) for _ in range(10)]
        extra = self.client(timeout=1)
        try:
            response = self.fetch(origin.url(), client=extra)
            self.assertEqual(response.status, 503, response)
            self.assertRegex(response.get("Retry-After", ""), r"^[1-9][0-9]*$")
        except (TimeoutError, Ended, OSError):
            pass  # not accepted, or closed: both keep the bound
        self.assertEqual(len(origin.requests), 10, "the bound does not hold")
        extra.close()
        for client in full:
            client.close()
        self.assertTrue(origin.wait(lambda: self.served(origin)), "no recovery")

    def admitted(self, origin):
        """A client that was served and stays; None when it was one too many."""
        client = self.client(timeout=3)
        if self.fetch(origin.url(), client=client).status == 200:
            return client
        client.close()
        return None

    def served(self, origin):
        try:
            return self.fetch(origin.url(), client=self.client(timeout=1)).status == 200
        except (TimeoutError, Ended, OSError):
            return False


class Descriptors(ProxyCase):
    @classmethod
    def setUpClass(cls):
        pass  # each test starts its own

    @classmethod
    def tearDownClass(cls):
        pass

    def test_out_of_descriptors_and_back(self):
        proxy = self.start("proxy.workers=1", prefix=("prlimit", "--nofile=64:64"))
        origin = self.origin()
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        crowd = [self.client(proxy) for _ in range(100)]
        for client in crowd:
            client.try_send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
        self.assertTrue(origin.wait(lambda: said_so(proxy), 10), "it never said that descriptors ran out")
        self.assertLess(self.cpu_share(proxy), 0.5, "it spins while it cannot accept")
        for client in crowd:
            client.reset()
        deadline = time.monotonic() + 10
        while True:
            try:
                self.assertEqual(self.fetch(origin.url(), client=self.client(proxy, timeout=2)).status, 200)
                break
            except (OSError, Ended, AssertionError):
                if time.monotonic() > deadline:
                    raise
        self.assertIsNone(proxy.stop())

    def test_a_download_goes_on_without_a_descriptor_for_its_pipe(self):
        proxy = self.start("proxy.workers=1", prefix=("prlimit", "--nofile=64:64"))
        go, body = threading.Event(), os.urandom(1 << 20)
        self.addCleanup(go.set)

        def script(visit):
            visit.read_request()
            go.wait(10)
            visit.send(response_bytes(body))

        origin, client = self.origin(script), self.client(proxy)
        client.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
        origin.wait_visit()
        crowd = [self.client(proxy) for _ in range(100)]
        self.assertTrue(origin.wait(lambda: said_so(proxy), 10), "it never said that descriptors ran out")
        go.set()
        response = read_response(client)
        self.assertEqual((response.status, response.body == body), (200, True))
        for stream in crowd:
            stream.close()

    def cpu_share(self, proxy, seconds=0.5):
        """The share of one core that the proxy uses over that time."""

        def ticks():
            with open("/proc/%d/stat" % proxy.pid) as file:
                fields = file.read().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        before = ticks()
        time.sleep(seconds)
        return (ticks() - before) / 100 / seconds


def said_so(proxy):
    log = proxy.log().lower()
    return "descriptor" in log or "too many open files" in log
