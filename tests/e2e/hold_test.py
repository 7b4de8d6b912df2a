"""Requests that wait inside the proxy: fair, in order, bounded, and let go when what they wait for changes."""

import base64
import collections
import concurrent.futures
import re
import socket
import subprocess
import threading
import unittest

from harness.message import read_response, request_bytes, response_bytes
from harness.origin import OK, in_turn, replying
from harness.proxy import binary, free_port, sanitized
from harness.stream import Ended, Stream, connect
from startup_test import OwnProxies

PACED = """
hosts = ["*"]
[pace]
adapt = "off"
min_delay = "%s"
[hold]
max_wait = "%s"
max_queue = %d
[retry]
max = 0
"""


def paced(min_delay="20ms", max_wait="30s", max_queue=20000):
    return PACED % (min_delay, max_wait, max_queue)


def jain(counts):
    return sum(counts) ** 2 / (len(counts) * sum(count * count for count in counts))


class HoldCase(OwnProxies):
    def ask(self, proxy, origin, path, source="127.0.0.1", fields=()):
        """A request on its way: its stream."""
        stream = Stream(socket.create_connection(proxy.address, 10, (source, 0)), timeout=40)
        self.addCleanup(stream.close)
        stream.send(request_bytes("GET", origin.url(path), ["Host: " + origin.authority, *fields]))
        return stream

    def start_watched(self, *settings, **options):
        """A proxy whose metrics can be read."""
        admin = free_port()
        proxy = self.start(*settings, admin="127.0.0.1:%d" % admin, **options)
        proxy.admin = ("127.0.0.1", admin)
        return proxy

    def held(self, proxy):
        """How many requests wait, by the proxy's own count."""
        stream = connect(proxy.admin)
        stream.send(request_bytes("GET", "/metrics", ["Host: %s:%d" % proxy.admin]))
        metrics = read_response(stream).body
        stream.close()
        return int(re.search(rb"^sluice_requests_held (\d+)", metrics, re.M).group(1))

    def paths(self, origin):
        return [request.target for request in origin.requests]


class Fairness(HoldCase):
    def greedy_and_modest(self, fields_of, sources):
        """200 requests of one party wait; then each of the others asks once: how long each must wait, in turns."""
        proxy = self.start("proxy.workers=2", policy=paced("15ms"))
        origin = self.origin()
        for i in range(200):
            self.ask(proxy, origin, "/greedy", sources[0], fields_of(0))
        self.assertTrue(origin.wait(lambda: len(origin.requests) >= 5))
        for i in range(1, 4):
            before = len(origin.requests)
            answer = read_response(self.ask(proxy, origin, "/modest%d" % i, sources[i], fields_of(i)))
            self.assertEqual(answer.status, 200)
            turns = self.paths(origin).index("/modest%d" % i) - before
            self.assertLessEqual(turns, 2, "one turn, and one that was under way")

    def test_between_clients(self):
        self.greedy_and_modest(lambda i: (), ["127.0.0.%d" % (i + 2) for i in range(4)])

    def test_between_jobs_of_one_client(self):
        def fields_of(i):
            return ["Proxy-Authorization: Basic " + base64.b64encode(b"job%d:" % i).decode()]

        self.greedy_and_modest(fields_of, ["127.0.0.1"] * 4)

    def test_one_a_hundred_times_as_greedy(self):
        proxy = self.start("proxy.workers=2", policy=paced("8ms"))
        origin, stop = self.origin(), threading.Event()

        def ask_on(path, source):
            try:
                while not stop.is_set():
                    read_response(self.ask(proxy, origin, path, source))
            except (OSError, Ended):
                pass

        def start(party, connections):
            threads = [threading.Thread(target=ask_on, args=("/%d" % party, "127.0.0.%d" % (party + 2)))
                       for _ in range(connections)]
            for thread in threads:
                thread.start()
            return threads

        threads = start(0, 200)
        self.assertTrue(origin.wait(lambda: len(origin.requests) >= 10))
        for party in range(1, 5):
            threads += start(party, 2)  # one waits while the other has its answer
        self.assertTrue(origin.wait(lambda: len(set(self.paths(origin))) == 5, 20))
        begin = len(origin.requests)
        self.assertTrue(origin.wait(lambda: len(origin.requests) >= begin + 200, 40))
        shares = collections.Counter(self.paths(origin)[begin:begin + 200])
        stop.set()
        for thread in threads:
            thread.join()
        self.assertGreaterEqual(jain([shares["/%d" % party] for party in range(5)]), 0.95, shares)

    def test_in_order_within_one_connection_and_first_come_first_served(self):
        proxy = self.start("proxy.workers=1", policy=paced("10ms"))
        origin = self.origin()
        stream = Stream(socket.create_connection(proxy.address, 10), timeout=20)
        self.addCleanup(stream.close)
        stream.send(b"".join(request_bytes("GET", origin.url("/%d" % i), ["Host: " + origin.authority]) for i in range(8)))
        for _ in range(8):
            self.assertEqual(read_response(stream).status, 200)
        self.assertEqual(self.paths(origin), ["/%d" % i for i in range(8)])


class Bounds(HoldCase):
    def test_a_full_queue_is_told_at_once(self):
        proxy = self.start_watched(policy=paced("60s", max_wait="120s", max_queue=3))
        origin = self.origin()
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        for _ in range(3):
            self.ask(proxy, origin, "/wait")
        self.assertTrue(origin.wait(lambda: self.held(proxy) == 3, 30))
        self.assert_problem(self.fetch(origin.url("/late"), proxy=proxy), 503, "queue-full")
        self.assertEqual(len(origin.requests), 1)

    def test_waiting_has_an_end(self):
        proxy = self.start(policy=paced("60s", max_wait="1s"))
        origin = self.origin(replying(OK))
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        refused = self.fetch(origin.url("/late"), proxy=proxy)
        self.assert_problem(refused, 503, "hold-timeout")
        self.assertGreater(int(refused.get("Retry-After")), 50, "the truth: the next slot is a minute away")

    def test_a_slot_that_comes_too_late_is_refused_at_once(self):
        proxy = self.start(policy=paced("60s", max_wait="30s"))
        origin = self.origin()
        self.fetch(origin.url(), proxy=proxy)
        stream = self.ask(proxy, origin, "/late")
        stream.timeout = 5  # not after thirty seconds of waiting for nothing
        self.assert_problem(read_response(stream), 503, "hold-timeout")

    def test_who_waits_for_an_open_tunnel_is_told_so(self):
        places = 'adapt = "off"\nmax_concurrency = 1'
        proxy = self.start(policy=paced("0s", max_wait="1s").replace('adapt = "off"', places))
        origin = self.origin(lambda visit: visit.wait_end(20))
        _, first = self.tunnel(origin.authority, proxy=proxy)
        self.assertEqual(first.status, 200)
        _, second = self.tunnel(origin.authority, proxy=proxy)
        problem = self.assert_problem(second, 503, "hold-timeout")
        self.assertIn("the only place of pace.max_concurrency is taken by an open tunnel", problem["detail"])

    def test_max_concurrency(self):
        proxy = self.start("proxy.workers=2", policy=paced("0s").replace('adapt = "off"', 'adapt = "off"\nmax_concurrency = 3'))
        lock, now, most = threading.Lock(), [0], [0]
        gate = threading.Semaphore(0)

        def script(visit):
            while visit.read_request():
                with lock:
                    now[0] += 1
                    most[0] = max(most[0], now[0])
                gate.acquire(timeout=10)
                with lock:
                    now[0] -= 1
                visit.send(OK)

        origin = self.origin(script)
        streams = [self.ask(proxy, origin, "/%d" % i) for i in range(12)]
        self.assertTrue(origin.wait(lambda: now[0] == 3))
        for _ in streams:
            gate.release()
        self.assertEqual([read_response(stream).status for stream in streams], [200] * 12)
        self.assertEqual(most[0], 3)


class Changes(HoldCase):
    """What waits is planned again when what it waits for changes."""

    def test_a_cooldown_lifted_by_an_operator(self):
        proxy = self.start(policy=paced("0s", max_wait="60s"))
        origin = self.origin(in_turn(response_bytes(b"no", "429 Too Many Requests", "Retry-After: 50"), OK))
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 429)
        streams = [self.ask(proxy, origin, "/%d" % i) for i in range(5)]
        subprocess.run([binary(), "close", origin.authority, "--state-dir", proxy.state], check=True,
                       capture_output=True, timeout=20)
        self.assertEqual([read_response(stream).status for stream in streams], [200] * 5)

    def test_a_cooldown_that_opens_beyond_patience_refuses_those_who_wait(self):
        proxy = self.start(policy=paced("2s", max_wait="20s"))
        origin = self.origin(in_turn(OK, response_bytes(b"no", "429 Too Many Requests", "Retry-After: 300"), OK))
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        streams = [self.ask(proxy, origin, "/%d" % i) for i in range(4)]
        statuses = sorted(read_response(stream).status for stream in streams)
        self.assertEqual(statuses, [429, 503, 503, 503])
        self.assertEqual(len(origin.requests), 2, "nobody went into the cooldown")

    def test_a_policy_that_is_faster_now(self):
        proxy = self.start(policy=paced("50s", max_wait="100s"))
        origin = self.origin()
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        streams = [self.ask(proxy, origin, "/%d" % i) for i in range(3)]
        proxy.write("policies/engine.toml", paced("10ms", max_wait="100s"))
        for stream in streams:
            stream.timeout = 10
            self.assertEqual(read_response(stream).status, 200)

    def test_a_place_that_comes_free_is_taken_on_another_worker(self):
        proxy = self.start("proxy.workers=2", policy=paced("0s").replace('adapt = "off"', 'adapt = "off"\nmax_concurrency = 1'))
        origin = self.origin()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda i: read_response(self.ask(proxy, origin, "/%d" % i)).status, range(64)))
        self.assertEqual(answers, [200] * 64)

    def test_those_who_leave_cost_nothing_and_hold_nobody_up(self):
        proxy = self.start(policy=paced("300ms"))
        origin = self.origin()
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        leavers = [self.ask(proxy, origin, "/left") for _ in range(20)]
        stays = self.ask(proxy, origin, "/stays")
        for stream in leavers:
            stream.close()
        self.assertEqual(read_response(stays).status, 200)
        self.assertLessEqual(self.paths(origin).count("/left"), 1, "one may have had its turn already")


class Many(HoldCase):
    weight = 15

    @unittest.skipIf(sanitized(), "memory of a sanitizer build")
    def test_ten_thousand_held(self):
        proxy = self.start_watched("proxy.workers=2", "proxy.timeouts.idle=\"5m\"", policy=paced("60s", max_wait="300s"))
        origin = self.origin()
        count = 10000
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        request = request_bytes("GET", origin.url("/held"), ["Host: " + origin.authority])
        sockets = []
        self.addCleanup(lambda: [sock.close() for sock in sockets])

        def connected(source):
            sock = socket.create_connection(proxy.address, 20, (source, 0))
            sockets.append(sock)
            return sock

        for i in range(count):
            connected("127.0.1.%d" % (i % 250 + 1))
        # What an idle connection costs is not the holding's; a connection that was served once has its buffers.
        self.assertTrue(origin.wait(lambda: proxy.sockets() >= count, 20))
        before = proxy.resident()
        for sock in sockets:
            sock.sendall(request)
        last = self.ask(proxy, origin, "/last")
        self.assertTrue(origin.wait(lambda: self.held(proxy) > count, 30), "held: %d" % self.held(proxy))
        each = (proxy.resident() - before) / count
        self.assertLess(each, 4096, "%.0f bytes for each held request" % each)
        self.assertEqual(len(origin.requests), 1)
        last.close()
