"""Limits of a policy and caps of a job: counted exactly, told truthfully."""

import base64
import concurrent.futures
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time

from breaker_test import SHORT, BreakerCase
from harness.message import Truncated, read_response, request_bytes
from harness.origin import OK
from harness.proxy import binary, free_port
from harness.stream import Ended

LIMITED = SHORT + '[limits]\nrequests = [{ count = 5, per = "1h" }]\n'


def named(job):
    return ["Proxy-Authorization: Basic " + base64.b64encode(job.encode() + b":").decode()]


class Limits(BreakerCase):
    def test_no_more_than_the_count_gets_through(self):
        proxy = self.enforcing(LIMITED)
        origin = self.origin()
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(lambda _: self.fetch(origin.url(), proxy=proxy), range(20)))
        self.assertEqual(sorted(a.status for a in answers), [200] * 5 + [429] * 15)
        self.assertEqual(len(origin.requests), 5)
        refused = next(a for a in answers if a.status == 429)
        problem = self.assert_problem(refused, 429, "limit")
        self.assertGreater(problem["retry_after_s"], 3000)

    def test_who_waits_for_those_of_a_role_holds_nobody_else_up(self):
        policy = SHORT.replace('max_wait = "0s"', 'max_wait = "20s"') + (
            '[roles.download]\npaths = ["/d/*"]\nlimits.requests = [{ count = 1, per = "8s" }]\n')
        proxy = self.enforcing(policy)
        origin = self.origin()
        self.assertEqual(self.fetch(origin.url("/d/1"), proxy=proxy).status, 200)
        streams = [self.client(proxy, timeout=30) for _ in range(2)]
        for number, stream in enumerate(streams):
            stream.send(request_bytes("GET", origin.url("/d/%d" % number), ["Host: " + origin.authority]))
        start = time.monotonic()
        for _ in range(5):
            self.assertEqual(self.fetch(origin.url("/page"), proxy=proxy).status, 200)
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(read_response(streams[0]).status, 200)
        self.assertGreater(time.monotonic() - start, 5)

    def test_they_survive_a_kill(self):
        proxy = self.enforcing(LIMITED)
        origin = self.origin()
        for _ in range(3):
            self.fetch(origin.url(), proxy=proxy)
        proxy.kill()
        again = self.start(policy=LIMITED, state=proxy.state)
        for _ in range(6):
            self.fetch(origin.url(), proxy=again)
        self.assertLessEqual(len(origin.requests), 5)


    def test_two_processes_share_them_and_a_kill_loses_a_place_at_most(self):
        policy = SHORT.replace('max_wait = "0s"', 'max_wait = "20s"') + LIMITED[len(SHORT):].replace("5", "40")
        origin = self.origin()
        proxies = [self.enforcing(policy)]
        proxies.append(self.start(policy=policy, state=proxies[0].state))
        kill_at, killed = 15, threading.Event()

        def client(number):
            """Until the limits say no; through the other one when its own is killed."""
            while True:
                try:
                    answer = self.fetch(origin.url(), proxy=proxies[number % len(proxies)])
                    if answer.get("Sluice-Reason") == "limit":
                        return answer
                    self.assertEqual(answer.status, 200)
                    if len(origin.requests) >= kill_at and not killed.is_set():
                        killed.set()
                        proxies[1].kill()
                except (OSError, Ended, Truncated):
                    number = 0

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(client, range(16)))
        self.assertTrue(killed.is_set())
        self.assertLessEqual(len(origin.requests), 40)
        # What the killed one held ahead, and what its clients had under way.
        self.assertGreaterEqual(len(origin.requests), 40 - 2 - 8)
        for answer in answers:
            self.assertGreater(int(answer.get("Retry-After")), 3000)

    def test_a_reload_does_not_begin_anew(self):
        proxy, origin = self.enforcing(LIMITED), self.origin()
        self.assertEqual(self.statuses(origin, 6, proxy), [200] * 5 + [429])
        proxy.write("policies/engine.toml", LIMITED.replace("5", "7"))
        os.kill(proxy.pid, signal.SIGHUP)
        self.assertTrue(origin.wait(lambda: self.statuses(origin, 1, proxy) and len(origin.requests) == 7, 10))
        self.assertEqual(self.statuses(origin, 3, proxy), [429] * 3)
        self.assertEqual(len(origin.requests), 7)

    def test_they_slide_and_the_time_told_is_true(self):
        proxy, origin = self.enforcing(LIMITED.replace('count = 5, per = "1h"', 'count = 3, per = "3s"')), self.origin()
        for _ in range(3):
            statuses = []
            while 429 not in statuses:
                answer = self.fetch(origin.url(), proxy=proxy)
                statuses.append(answer.status)
            self.assertGreaterEqual(statuses.count(200), 1, "the time that was told was too short")
            self.assertLessEqual(int(answer.get("Retry-After")), 4)
            time.sleep(int(answer.get("Retry-After")))  # as a client would

    def test_held_when_a_place_is_free_soon(self):
        policy = LIMITED.replace('count = 5, per = "1h"', 'count = 2, per = "1s"').replace('max_wait = "0s"', 'max_wait = "20s"')
        proxy, origin = self.enforcing(policy), self.origin()
        self.assertEqual(self.statuses(origin, 6, proxy), [200] * 6)
        self.assertGreaterEqual(origin.requests[-1].at - origin.requests[0].at, 1.0, "six in two windows' time at least")

    def test_an_impatient_client_waits_for_the_store_all_the_same(self):
        proxy, origin = self.enforcing(LIMITED), self.origin()
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(lambda _: self.fetch(origin.url(), proxy=proxy), range(20)))
        self.assertEqual(sorted(a.status for a in answers), [200] * 5 + [429] * 15)

    def test_what_was_not_sent_has_its_place_back(self):
        proxy = self.enforcing(LIMITED.replace("[breaker]", "[breaker]\nconsecutive = 1000", 1))
        url = self.refused_url()
        for _ in range(15):
            self.assertEqual(self.fetch(url, proxy=proxy).status, 502)

    def test_what_went_twice_counts_twice(self):
        """The origin takes each second request on a connection and closes without a word."""
        def script(visit):
            if visit.read_request():
                visit.send(OK)
                visit.read_request()

        proxy, origin = self.enforcing(LIMITED), self.origin(script)
        client = self.client(proxy)
        statuses = [self.fetch(origin.url(), client=client, proxy=proxy).status for _ in range(4)]
        self.assertEqual((statuses, len(origin.requests)), ([200, 200, 200, 429], 5))

    def test_a_role_has_windows_of_its_own(self):
        policy = LIMITED + '[roles.download]\npaths = ["/download/*"]\nlimits.requests = [{ count = 2, per = "1h" }]\n'
        proxy, origin = self.enforcing(policy), self.origin()
        turns = [self.fetch(origin.url(path), proxy=proxy).status for path in ["/x", "/download/y"] * 4]
        self.assertEqual(turns[0::2], [200] * 4)
        self.assertEqual(turns[1::2], [200, 200, 429, 429])

    def test_they_count_tunnels_and_answer_connect(self):
        proxy, origin = self.enforcing(LIMITED.replace("count = 5", "count = 2")), self.origin()
        answers = [self.tunnel(origin.authority, proxy=proxy)[1] for _ in range(3)]
        self.assertEqual([answer.status for answer in answers], [200, 200, 429])
        self.assert_problem(answers[-1], 429, "limit")
        self.assertTrue(origin.wait(lambda: len(origin.visits) == 2))

    def test_tunnels_keep_the_pace(self):
        """At once as many as may be; the next CONNECT is held until a place is free, and its time has come."""
        policy = SHORT.replace('max_wait = "0s"', 'max_wait = "20s"').replace(
            "[pace]", '[pace]\nmax_concurrency = 1\nmin_delay = "500ms"')
        proxy, origin = self.enforcing(policy), self.origin()
        began = time.monotonic()
        first, answer = self.tunnel(origin.authority, proxy=proxy)
        self.assertEqual(answer.status, 200)
        second = self.client(proxy)
        second.send(request_bytes("CONNECT", origin.authority, ["Host: " + origin.authority]))
        self.assertTrue(second.quiet_for(0.2), "there is no place yet")
        first.close()
        self.assertEqual(read_response(second, "CONNECT").status, 200)
        self.assertTrue(origin.wait(lambda: len(origin.visits) == 2))
        second.close()
        _, answer = self.tunnel(origin.authority, proxy=proxy)
        self.assertEqual(answer.status, 200)
        self.assertGreaterEqual(time.monotonic() - began, 1.0, "three within two delays")

    def test_who_only_observes_refuses_nobody(self):
        proxy, origin = self.enforcing('mode = "observe"\n' + LIMITED), self.origin()
        said = "enforced, it would be refused: its `limits` are used up"

        def goes_on():
            self.assertEqual(self.statuses(origin, 1, proxy), [200])
            return said in proxy.log() and len(origin.requests) >= 9

        self.assertTrue(origin.wait(goes_on, 10), "it did not say what it would have done")


class Jobs(BreakerCase):
    def test_so_many_requests_in_a_run(self):
        proxy = self.start("jobs.max_requests=3", policy=SHORT)
        origin = self.origin()
        answers = [self.fetch(origin.url(), fields=named("nightly"), proxy=proxy) for _ in range(5)]
        self.assertEqual([a.status for a in answers], [200, 200, 200, 429, 429])
        self.assert_problem(answers[-1], 429, "job-limit")
        self.assertEqual(self.fetch(origin.url(), fields=named("other"), proxy=proxy).status, 200)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200, "of no job")
        self.assertFalse([r for r in origin.requests if r.has("Proxy-Authorization")])

    def test_one_that_only_fails_is_stopped(self):
        proxy = self.start("jobs.fail_after=4", policy=SHORT.replace("[breaker]", "[breaker]\nconsecutive = 100", 1))
        url = self.refused_url()
        answers = [self.fetch(url, fields=named("nightly"), proxy=proxy) for _ in range(6)]
        self.assertEqual([a.status for a in answers], [502] * 4 + [429] * 2)
        self.assert_problem(answers[-1], 429, "job-failed")

    def test_so_many_at_once(self):
        proxy = self.start("jobs.max_concurrency=2", policy=SHORT)
        gate = threading.Event()

        def script(visit):
            while visit.read_request():
                gate.wait(20)
                visit.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        origin = self.origin(script)
        self.addCleanup(gate.set)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(self.fetch, origin.url(), fields=named("nightly"), proxy=proxy) for _ in range(2)]
            self.assertTrue(origin.wait(lambda: len(origin.requests) == 2))
            refused = self.fetch(origin.url(), fields=named("nightly"), proxy=proxy)
            problem = self.assert_problem(refused, 429, "job-limit")
            self.assertIn("has 2 requests under way", problem["detail"])
            self.assertEqual(refused.get("Retry-After"), "1")
            self.assertFalse(refused.has("x-should-retry"), "waiting makes sense")
            other = pool.submit(self.fetch, origin.url(), fields=named("other"), proxy=proxy)
            gate.set()
            self.assertEqual([answer.result().status for answer in (*waiting, other)], [200] * 3)
        self.assertEqual(self.fetch(origin.url(), fields=named("nightly"), proxy=proxy).status, 200, "its places are free again")

    def test_tunnels_that_nobody_looks_into(self):
        """Their CONNECT is the request: refused there, before an origin hears of it."""
        proxy = self.start("jobs.max_requests=3", "jobs.named.wide.max_concurrency=1", policy=SHORT)
        origin = self.origin(lambda visit: visit.send(visit.read_some()))
        for turn in range(4):
            stream, answer = self.tunnel(origin.authority, named("nightly"), proxy=proxy)
            if turn < 3:
                self.assertEqual(answer.status, 200)
                stream.send(b"through")
                self.assertEqual(stream.read_exact(7), b"through")
            else:
                self.assert_problem(answer, 429, "job-limit")
        self.assertEqual(len(origin.visits), 3)
        first, answer = self.tunnel(origin.authority, named("wide"), proxy=proxy)
        self.assertEqual(answer.status, 200)
        self.assert_problem(self.tunnel(origin.authority, named("wide"), proxy=proxy)[1], 429, "job-limit")
        first.close()
        self.assertTrue(origin.wait(lambda: self.tunnel(origin.authority, named("wide"), proxy=proxy)[1].status == 200, 10),
                        "an ended tunnel keeps its place")

    def test_one_whose_tunnels_only_fail_is_stopped(self):
        proxy = self.start("jobs.fail_after=2", policy=SHORT.replace("[breaker]", "[breaker]\nconsecutive = 100", 1))
        authority = self.refused_url().partition("://")[2].rstrip("/")
        answers = [self.tunnel(authority, named("nightly"), proxy=proxy)[1] for _ in range(3)]
        self.assertEqual([answer.status for answer in answers], [502, 502, 429])
        self.assert_problem(answers[-1], 429, "job-failed")

    def test_inside_a_tunnel_that_is_looked_into(self):
        """The name is the CONNECT's, what counts are the requests, and the refusal can be read inside."""
        proxy = self.start("jobs.max_requests=2", 'tls.intercept="all"', policy=SHORT)
        origin = self.origin()
        authority = origin.authority
        subprocess.run([binary(), "ca", "init", "--state-dir", proxy.state], check=True, capture_output=True)
        context = ssl.create_default_context(cafile=os.path.join(proxy.state, "ca-cert.pem"))
        refused = self.refused_url().partition("://")[2].rstrip("/")
        stream, answer = self.tunnel(refused, named("nightly"), proxy=proxy)
        self.assertEqual(answer.status, 200)
        stream.sock = context.wrap_socket(stream.sock, server_hostname="127.0.0.1")
        statuses = []
        for _ in range(4):
            stream.send(request_bytes("GET", "/", ["Host: " + refused]))
            answer = read_response(stream)
            statuses.append(answer.status)
        self.assertEqual(statuses, [502, 502, 429, 429])
        self.assert_problem(answer, 429, "job-limit")
        self.assertEqual(self.fetch("http://%s/" % authority, fields=named("nightly"), proxy=proxy).status, 429, "of the same job")
        self.assertEqual(self.fetch("http://%s/" % authority, fields=named("other"), proxy=proxy).status, 200)

    def test_who_was_held_and_refused_shows(self):
        """In `sluice status`, its JSON and the admin side's."""
        port = free_port()
        policy = SHORT.replace('max_wait = "0s"', 'max_wait = "20s"') + '[limits]\nrequests = [{ count = 1, per = "1s" }]\n'
        proxy = self.start("jobs.max_requests=2", policy=policy, admin="127.0.0.1:%d" % port)
        origin = self.origin()
        answers = [self.fetch(origin.url(), fields=named("nightly"), proxy=proxy).status for _ in range(3)]
        self.assertEqual(answers, [200, 200, 429])
        with open(os.path.join(proxy.state, "admin.token")) as file:
            token = file.read().strip()
        admin = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        self.addCleanup(admin.close)
        admin.request("GET", "/api/status", headers={"Authorization": "Bearer " + token})
        job, = json.loads(admin.getresponse().read())["jobs"]
        self.assertEqual((job["name"], job["requests"], job["refused"]), ("nightly", 2, 1))
        self.assertGreaterEqual(job["held"], 1)
        self.assertGreater(job["waited_ms"], 0)

        def status(*more):
            done = subprocess.run([binary(), "status", "--state-dir", proxy.state, *more], capture_output=True, text=True,
                                  check=True, env={"HOME": proxy.directory, "PATH": os.environ["PATH"]})
            return done.stdout

        def stored():
            jobs = json.loads(status("--json"))["jobs"]
            return jobs and jobs[0]["held"] == job["held"] and jobs[0]["refused"] == 1 and jobs[0]["waited_s"] > 0

        self.assertTrue(origin.wait(stored, 10), status("--json"))
        row = r"(?m)^nightly +ok +2 +0 +0 +[12] +[0-9.]+ m?s +1 +- "
        self.assertTrue(origin.wait(lambda: re.search(row, status()), 20), status())
