"""Sending a refused request again for the client: when it is safe, and never a side effect twice."""

import threading

from harness.message import Truncated, response_bytes
from harness.origin import OK, in_turn, replying, replying_once
from harness.stream import Ended
from startup_test import OwnProxies

POLICY = """
hosts = ["*"]
[breaker]
consecutive = 100000
window = { failures = 64, kind = "rate_limited", within = "1s" }
jitter = 0.0
[pace]
adapt = "off"
[hold]
max_wait = "%s"
[retry]
max = %d
"""
BUSY = response_bytes(b"busy", "503 Service Unavailable")
NOT_NOW = response_bytes(b"no", "429 Too Many Requests")


def policy(max_wait="5s", retries=2):
    return POLICY % (max_wait, retries)


class Orders:
    """An origin that does something for each POST that arrives whole, and then fails in its own manner."""

    def __init__(self, failing):
        self.failing = failing
        self.lock = threading.Lock()
        self.done = []

    def script(self, visit):
        while request := visit.read_head():
            if request.method != "POST":
                visit.send(OK)  # leaves a connection to rest in the proxy's pool
                continue
            if self.failing == "before the body":
                return visit.reset()
            visit.read_body(request)
            with self.lock:
                self.done.append(request.body)
            if self.failing == "reset":
                return visit.reset()
            if self.failing == "close":
                return
            if self.failing == "silence":
                visit.wait_end(5)
                return
            if self.failing == "half an answer":
                visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
                return
            if self.failing == "half a head":
                visit.send(b"HTTP/1.1 200 OK\r\nContent-")
                return
            visit.send({"503": BUSY, "429": NOT_NOW, "garbage": b"\x00\x01\x02\r\n\r\n"}[self.failing])


class SideEffects(OwnProxies):
    WAYS = ("before the body", "reset", "close", "silence", "half an answer", "half a head", "503", "429", "garbage")

    def test_no_post_is_done_twice_whatever_breaks(self):
        proxy = self.start("proxy.workers=1", 'proxy.timeouts.first_byte="300ms"', policy=policy())
        for failing in self.WAYS:
            for rested in (False, True):
                with self.subTest(failing, on_a_pooled_connection=rested):
                    orders = Orders(failing)
                    origin = self.origin(orders.script)
                    if rested:
                        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
                    try:
                        self.fetch(origin.url("/order"), "POST", body=b"one coffee", proxy=proxy)
                    except (Ended, Truncated) as cut:
                        self.assertEqual(failing, "half an answer", cut)
                    self.assertLessEqual(len(orders.done), 1)

    def test_a_pooled_connection_that_the_origin_closes_under_a_post(self):
        """Stale: the request must not be sent again, or nothing of it may have left."""
        proxy = self.start("proxy.workers=1", policy=policy())
        done = []

        def script(visit):
            request = visit.read_request()
            if request and request.method == "POST":
                done.append(request.body)
            visit.send(OK)  # and closes, without a word about it

        origin = self.origin(script)
        for i in range(50):
            self.fetch(origin.url(), proxy=proxy)
            self.fetch(origin.url("/order"), "POST", body=b"%d" % i, proxy=proxy)
        self.assertEqual(len(done), len(set(done)))
        # One that ends while the request is on its way is nobody's fault; one that is known to be gone is not used.
        self.assertGreater(len(done), 25)


class Safe(OwnProxies):
    def tries(self, method, answers, fields=(), body=b"", **numbers):
        proxy = self.start(policy=policy(**numbers))
        origin = self.origin(in_turn(*answers))
        reply = self.fetch(origin.url(), method, fields, body, proxy=proxy)
        return reply.status, len(origin.requests)

    def test_which_requests(self):
        rows = [("GET", (), b"", (200, 3)), ("HEAD", (), b"", (200, 3)), ("OPTIONS", (), b"", (200, 3)),
                ("POST", (), b"x", (503, 1)), ("PUT", (), b"x", (503, 1)), ("DELETE", (), b"", (503, 1)),
                ("POST", ["Idempotency-Key: 7"], b"x", (200, 3)),
                ("POST", ["Idempotency-Key: 7"], b"x" * 100_000, (503, 1))]  # too much to keep
        for method, fields, body, expected in rows:
            with self.subTest("%s %r %d" % (method, fields, len(body))):
                self.assertEqual(self.tries(method, (BUSY, BUSY, OK), fields, body), expected)

    def test_as_often_as_the_policy_says(self):
        self.assertEqual(self.tries("GET", (BUSY, BUSY, OK), retries=1), (503, 2))
        self.assertEqual(self.tries("GET", (BUSY, OK), retries=0), (503, 1))

    def test_the_origin_may_forbid_it(self):
        for name in ("X-Should-Retry", "Stripe-Should-Retry"):
            with self.subTest(name):
                no = response_bytes(b"no", "429 Too Many Requests", name + ": false")
                self.assertEqual(self.tries("GET", (no, OK)), (429, 1))

    def test_not_beyond_max_wait(self):
        later = response_bytes(b"no", "429 Too Many Requests", "Retry-After: 3")
        self.assertEqual(self.tries("GET", (later, OK), max_wait="1s"), (429, 1))

    def test_never_after_a_byte_of_the_answer(self):
        proxy = self.start(policy=policy())
        origin = self.origin(replying_once(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"))
        client = self.client(proxy)
        client.send("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % origin.url())
        self.assertIsNotNone(client.wait_end(5))
        self.assertIn(b"half", bytes(client.buffer))
        self.assertEqual(len(origin.requests), 1)

    def test_no_more_than_a_fifth_of_the_traffic(self):
        proxy = self.start(policy=policy())
        origin = self.origin(replying(BUSY))
        client = self.client(proxy)
        for _ in range(200):
            self.fetch(origin.url(), client=client)
        self.assertLessEqual(len(origin.requests), 200 * 1.2 + 3, "retries: %d" % (len(origin.requests) - 200))
        self.assertGreater(len(origin.requests), 210, "there were some")
