"""kill -9 at random moments under load: what a client has seen is not forgotten."""

import random
import threading
import time

from harness.message import Truncated, read_head, read_response, request_bytes, response_bytes
from harness.origin import OK
from harness.proxy import ANY_PORT, Proxy
from harness.stream import Ended, connect
from startup_test import OwnProxies

HOSTS = ["h%d.test" % i for i in range(12)]
RESOLVE = "proxy.resolve={ %s }" % ", ".join('"%s" = "127.0.0.1"' % host for host in HOSTS)
POLICY = """
hosts = ["*.test"]
[breaker]
jitter = 0.0
[pace]
adapt = "off"
[hold]
max_wait = "0s"
[retry]
max = 0
"""
ROUNDS = 50  # of each of the four tests
CLIENTS = 3


class Crashes(OwnProxies):
    weight = 4

    def setUp(self):
        super().setUp()
        self.random = random.Random(self.id())
        self.arrivals = []  # (time, round, host)
        self.seen = []      # (round, host, the end of the cooldown that a client was told of)
        self.listener = self.origin(self.script)

    def script(self, visit):
        """Refuses one in three for a few seconds, and says exactly until when."""
        while request := read_head(visit):
            now, host = time.monotonic(), request.get("Host").split(":")[0]
            self.arrivals.append((now, int(request.target.strip("/")), host))
            if self.random.random() < 0.33:
                length = self.random.choice((1, 2, 3))
                visit.send(response_bytes(b"no", "429 Too Many Requests", "Retry-After: %d" % length,
                                          "X-Until: %f" % (now + length)))
            else:
                visit.send(OK)

    def client(self, proxy, number, stop):
        """One request after the other, until the proxy is gone."""
        try:
            stream = connect(proxy.address)
            while not stop.is_set():
                host = "%s:%d" % (self.random.choice(HOSTS), self.listener.port)
                stream.send(request_bytes("GET", "http://%s/%d" % (host, number), ["Host: " + host]))
                answer = read_response(stream)
                if answer.status == 429:
                    self.seen.append((number, host.split(":")[0], float(answer.get("X-Until"))))
        except (OSError, Ended, Truncated, ValueError):
            pass

    def run_rounds(self):
        state = None
        for number in range(ROUNDS):
            proxy = Proxy(ANY_PORT, RESOLVE, "proxy.workers=2", policy=POLICY, state=state)
            if state is None:
                state, first = proxy.state, proxy
            stop = threading.Event()
            threads = [threading.Thread(target=self.client, args=(proxy, number, stop)) for _ in range(CLIENTS)]
            for thread in threads:
                thread.start()
            stop.wait(self.random.uniform(0.005, 0.12))
            proxy.kill()
            stop.set()
            for thread in threads:
                thread.join()
            if proxy is not first:
                proxy.remove()
        first.remove()
        self.assertGreater(len(self.seen), ROUNDS // 4, "the clients were refused too seldom to prove anything")
        for at, number, host in self.arrivals:
            for earlier, shut, until in self.seen:
                if shut == host and earlier < number and at < until - 0.01:
                    self.fail("round %d: %s was asked %.3f s before the end of a cooldown that a client had "
                              "seen in round %d" % (number, host, until - at, earlier))

    def test_a(self):
        self.run_rounds()

    def test_b(self):
        self.run_rounds()

    def test_c(self):
        self.run_rounds()

    def test_d(self):
        self.run_rounds()
