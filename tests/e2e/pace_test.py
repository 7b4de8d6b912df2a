"""What was learned about a limit survives kill -9: in force with the first request after it. And how it is told."""

import collections
import math
import re
import subprocess
import threading
import time

from harness.message import Truncated, read_response, request_bytes, response_bytes
from harness.origin import OK, replying
from harness.proxy import binary, free_port
from harness.stream import Ended, connect
from startup_test import OwnProxies

POLICY = """
hosts = ["*"]
[breaker]
cooldown = ["1s", "2s"]
[hold]
max_wait = "60s"
[retry]
max = 5
"""
COUNT, LENGTH = 20, 2.0  # what the origin admits, in any such time
CLIENTS = 6


class Limited:
    """An origin's script that refuses what is too much, says for how long, and counts."""

    def __init__(self):
        self.lock = threading.Lock()
        self.admitted = collections.deque()
        self.arrivals = 0
        self.refused = 0

    def __call__(self, visit):
        while visit.read_request():
            visit.send(self.answer(time.monotonic()))

    def answer(self, now):
        with self.lock:
            self.arrivals += 1
            while self.admitted and self.admitted[0] <= now - LENGTH:
                self.admitted.popleft()
            if len(self.admitted) < COUNT:
                self.admitted.append(now)
                return OK
            self.refused += 1
            wait = math.ceil(self.admitted[0] + LENGTH - now)
        return response_bytes(b"slow down", "429 Too Many Requests", "Retry-After: %d" % wait)


class Observed(OwnProxies):
    def metrics(self, admin):
        stream = connect(admin)
        stream.send(request_bytes("GET", "/metrics", ["Host: %s:%d" % admin]))
        body = read_response(stream).body.decode()
        stream.close()
        return {name: float(value) for name, value in re.findall(r"^(sluice_\S+) (\S+)$", body, re.M)}

    def test_it_learns_and_reports_and_slows_nobody_down(self):
        admin = ("127.0.0.1", free_port())
        proxy = self.start(policy=POLICY.replace("[breaker]", 'mode = "observe"\n[breaker]', 1), admin="%s:%d" % admin)
        script = Limited()
        origin = self.origin(script)
        client = self.client(proxy)
        statuses = [self.fetch(origin.url("/"), client=client).status for _ in range(2 * COUNT)]
        self.assertEqual(len(origin.requests), 2 * COUNT, "each was forwarded, and once")
        self.assertEqual(statuses.count(429), script.refused)
        self.assertGreater(script.refused, 0)
        self.assertRegex(proxy.log(), r"only observes; enforced, it would (wait|be refused): ")
        self.assertIn(": no limit met, from 1 refusal; before: no limit met; because it refused with 429", proxy.log())
        seen = self.metrics(admin)
        would = seen['sluice_observed_total{instead="wait"}'] + seen['sluice_observed_total{instead="refuse"}']
        self.assertEqual(would, script.refused - 1, "all after the first 429")
        self.assertGreaterEqual(seen["sluice_pace_changes_total"], 1)


class Learned(OwnProxies):
    weight = 3

    def crowd(self, proxy, origin, stop):
        """Clients that ask as fast as they get answers, until `stop` or the end of the proxy."""

        def ask():
            try:
                stream = connect(proxy.address, timeout=70)
                while not stop.is_set():
                    stream.send(request_bytes("GET", origin.url("/"), ["Host: " + origin.authority]))
                    read_response(stream)
            except (OSError, Ended, Truncated):
                pass

        clients = [threading.Thread(target=ask, daemon=True) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        return clients

    def arrive(self, origin, script, number, timeout=60):
        """Waits for so many more requests to get there."""
        goal = script.arrivals + number
        self.assertTrue(origin.wait(lambda: script.arrivals >= goal, timeout), script.arrivals)

    def test_a_window(self):
        script = Limited()
        origin = self.origin(script)
        first = self.start(policy=POLICY)
        clients = self.crowd(first, origin, threading.Event())
        self.arrive(origin, script, 4 * COUNT + COUNT // 2)  # the fifth window is under way
        self.assertGreaterEqual(script.refused, 1, "there was something to learn")
        first.kill()
        for client in clients:
            client.join(10)
        refused = script.refused
        stop = threading.Event()
        again = self.start(policy=POLICY, state=first.state)
        clients = self.crowd(again, origin, stop)
        self.arrive(origin, script, 2 * COUNT)
        stop.set()
        self.assertEqual(script.refused, refused, "nobody had to be refused again")
        for client in clients:
            client.join(10)

    def test_a_delay(self):
        origin = self.origin(lambda visit: [visit.send(response_bytes(b"no", "429 Too Many Requests"))
                                            for _ in iter(visit.read_request, None)])
        policy = """hosts = ["*"]
[breaker]
consecutive = 60
window = { failures = 64, kind = "rate_limited", within = "1s" }
[pace]
adapt = "linear"
step = "500ms"
[retry]
max = 0
"""
        first = self.start(policy=policy)
        for _ in range(3):
            self.assertEqual(self.fetch(origin.url("/"), proxy=first).status, 429)
        first.kill()
        again = self.start(policy=policy, state=first.state)
        before = len(origin.requests)
        for _ in range(2):
            self.fetch(origin.url("/"), proxy=again)
        gap = origin.requests[before + 1].at - origin.requests[before].at
        self.assertGreaterEqual(gap, 1.5, "three refusals, half a second each")


class Told(OwnProxies):
    """An origin that admits, and says that nothing is left for five minutes."""

    policy = 'hosts = ["*"]\n[hold]\nmax_wait = "0s"\n[retry]\nmax = 0\n'

    def exhausted(self, *fields):
        return self.origin(replying(response_bytes(b"ok", "200 OK", "X-RateLimit-Remaining: 0",
                                                   "X-RateLimit-Reset: 300", *fields)))

    def assert_waits(self, proxy, origin, least):
        refused = self.fetch(origin.url("/"), proxy=proxy)
        self.assert_problem(refused, 503, "hold-timeout")
        self.assertGreater(int(refused.get("Retry-After")), least)
        self.assertEqual(len(origin.requests), 1)

    def test_what_headers_told_is_not_forgotten(self):
        for fields in ((), ("X-RateLimit-Limit: 60",)):
            with self.subTest(fields):
                origin = self.exhausted(*fields)
                first = self.start(policy=self.policy)
                self.assertEqual(self.fetch(origin.url("/"), proxy=first).status, 200)
                first.kill()
                self.assert_waits(self.start(policy=self.policy, state=first.state), origin, 100)

    def test_an_operator_lifts_it(self):
        for running in (True, False):
            with self.subTest(running=running):
                origin = self.exhausted("X-RateLimit-Limit: 60")
                proxy = self.start(policy=self.policy)
                self.assertEqual(self.fetch(origin.url("/"), proxy=proxy).status, 200)
                self.assert_waits(proxy, origin, 100)
                if not running:
                    proxy.kill()
                closed = subprocess.run([binary(), "close", origin.authority, "--state-dir", proxy.state],
                                        capture_output=True, text=True, timeout=30)
                self.assertEqual(closed.returncode, 0, closed.stderr)
                if not running:
                    proxy = self.start(policy=self.policy, state=proxy.state)
                self.assertEqual(self.fetch(origin.url("/"), proxy=proxy).status, 200)


class Slow(OwnProxies):
    """One request that takes long, the first to its host, keeps nobody else waiting: by the default policy."""

    def others_go(self, script, other="/plain", number=1):
        """The first request is on its way at least; then others are answered."""
        proxy = self.start(policy=None)
        origin = self.origin(script)
        first = self.client(proxy)
        first.send(request_bytes("GET", origin.url("/slow"), ["Host: " + origin.authority]))
        self.assertTrue(origin.wait(lambda: origin.requests))
        for _ in range(number):
            self.assertEqual(self.fetch(origin.url(other), proxy=proxy).status, 200)

    def slowly(self, beginning):
        """A script that begins an answer to /slow and does not end it before the test does."""
        ended = threading.Event()
        self.addCleanup(ended.set)

        def script(visit):
            while request := visit.read_request():
                if request.target == "/slow":
                    visit.send(beginning)
                    ended.wait()
                    return
                visit.send(OK)

        return script

    def test_server_sent_events(self):
        self.others_go(self.slowly(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n"))

    def test_a_long_poll(self):
        self.others_go(self.slowly(b""))

    def test_a_body_that_trickles_in(self):
        self.others_go(self.slowly(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                   b"Content-Length: 100\r\n\r\n{"))

    def test_many_tunnels(self):
        proxy = self.start(policy=None)
        origin = self.origin()
        for _ in range(12):
            self.assertEqual(self.tunnel(origin.authority, proxy=proxy)[1].status, 200)

    def test_many_long_downloads(self):
        proxy = self.start(policy=None)
        origin = self.origin(self.slowly(b"HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\n"
                                         b"Content-Length: 100\r\n\r\nPK"))
        for _ in range(12):
            stream = self.client(proxy)
            stream.send(request_bytes("GET", origin.url("/slow"), ["Host: " + origin.authority]))
            self.assertIn(b" 200 ", stream.read_until(b"\r\n\r\n"))
