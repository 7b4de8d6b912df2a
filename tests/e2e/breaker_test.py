"""Breakers: when traffic stops, what a client is told, how it comes back, what is remembered."""

import concurrent.futures
import gzip
import json
import os
import threading
import time

from harness.message import Truncated, chunk, read_head, response_bytes
from harness.origin import OK, in_turn, replying, replying_once
from harness.stream import Ended
from startup_test import OwnProxies

TOO_MANY = response_bytes(b"slow down", "429 Too Many Requests")
# Short times, so that a test can wait them out; pacing has tests of its own.
SHORT = """
hosts = ["*"]
[breaker]
cooldown = ["1s", "2s"]
antibot_cooldown = ["30s"]
retry_after_cap = "60s"
jitter = 0.0
probe_timeout = "2s"
[pace]
adapt = "off"
[hold]
max_wait = "0s"
[retry]
max = 0
"""


def retry_after(seconds):
    return response_bytes(b"slow down", "429 Too Many Requests", "Retry-After: %s" % seconds)


class BreakerCase(OwnProxies):
    def enforcing(self, policy=SHORT, **options):
        return self.start(policy=policy, **options)

    def statuses(self, origin, count, proxy, path="/"):
        return [self.fetch(origin.url(path), proxy=proxy).status for _ in range(count)]


class Trips(BreakerCase):
    def test_a_named_time_shuts_at_once_and_for_that_time(self):
        proxy = self.enforcing()
        origin = self.origin(replying(retry_after(30)))
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 429, "the client sees what was said")
        refused = self.fetch(origin.url(), proxy=proxy)
        problem = self.assert_problem(refused, 503, "breaker-open", host="127.0.0.1")
        self.assertEqual(len(origin.requests), 1, "nothing reaches the origin while it is shut")
        self.assertIn(int(refused.get("Retry-After")), (29, 30))
        self.assertEqual(problem["retry_after_s"], int(refused.get("Retry-After")))
        self.assertEqual(problem["key"], origin.authority)
        self.assertEqual(problem["policy"], "engine")
        self.assertEqual(problem["state"], "open")
        self.assertRegex(problem["until"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(problem["override"], "sluice close " + origin.authority)
        self.assertIn("429", problem["detail"])

    def test_a_refusal_in_the_words_the_client_asked_for(self):
        proxy = self.enforcing()
        origin = self.origin(replying(retry_after(30)))
        self.fetch(origin.url(), proxy=proxy)
        for accept, kind in (("text/html", "text/html"), ("text/plain", "text/plain"),
                             ("application/json", "application/problem+json")):
            with self.subTest(accept):
                refused = self.fetch(origin.url(), fields=["Accept: " + accept], proxy=proxy)
                self.assertEqual(refused.status, 503)
                self.assertTrue(refused.get("Content-Type").startswith(kind), refused)
                self.assertIn(b"sluice close", refused.body)

    def test_three_429_without_a_time_waste_three_requests(self):
        proxy = self.enforcing(SHORT.replace('cooldown = ["1s", "2s"]', 'cooldown = ["5m"]', 1))
        origin = self.origin(replying(TOO_MANY))
        self.assertEqual(self.statuses(origin, 6, proxy), [429, 429, 429, 503, 503, 503])
        self.assertEqual(len(origin.requests), 3)

    def test_so_with_the_pace_that_is_learned_by_default(self):
        """It has only a guess of when to ask again, and that is not what requests are refused by."""
        for breaker in ('consecutive = 3\ncooldown = ["5m"]', 'cooldown = ["5m"]'):
            with self.subTest(breaker):
                proxy = self.enforcing('hosts = ["*"]\n[breaker]\n%s\n[retry]\nmax = 0\n' % breaker)
                origin = self.origin(replying(TOO_MANY))
                answers = [self.fetch(origin.url(), proxy=proxy) for _ in range(6)]
                self.assertEqual([a.status for a in answers], [429, 429, 429, 503, 503, 503])
                self.assertEqual({a.get("Sluice-Reason") for a in answers[3:]}, {"breaker-open"})
                self.assertIn(int(answers[3].get("Retry-After")), range(290, 331))
                self.assertEqual(len(origin.requests), 3)

    def test_consecutive_server_errors(self):
        proxy = self.enforcing()
        origin = self.origin(replying(response_bytes(b"oops", "500 Internal Server Error")))
        self.assertEqual(self.statuses(origin, 7, proxy), [500] * 5 + [503] * 2)

    def test_neutral_answers_leave_it_closed(self):
        proxy = self.enforcing()
        for status in ("404 Not Found", "401 Unauthorized", "403 Forbidden", "410 Gone", "451 Unavailable"):
            with self.subTest(status):
                origin = self.origin(replying(response_bytes(b"no", status)))
                self.assertEqual(set(self.statuses(origin, 50, proxy)), {int(status[:3])})

    def test_a_block_in_a_compressed_page_with_status_200(self):
        proxy = self.enforcing()
        page = gzip.compress(b"<html>" + b"x" * 20000 + b"Sign in to confirm you're not a bot</html>")
        origin = self.origin(replying(response_bytes(page, "200 OK", "Content-Type: text/html",
                                                     "Content-Encoding: gzip")))
        first = self.fetch(origin.url(), proxy=proxy)
        self.assertEqual((first.status, first.body), (200, page), "the bytes pass as they came")
        problem = self.assert_problem(self.fetch(origin.url(), proxy=proxy), 503, "breaker-open")
        self.assertGreaterEqual(problem["retry_after_s"], 29)
        self.assertEqual(len(origin.requests), 1)

    BLOCKS = (("429 Too Many Requests", b"<html><div id='px-captcha'></div></html>"),
              ("503 Service Unavailable", b"<title>Just a moment...</title><script>window._cf_chl_opt={}</script>"),
              ("429 Too Many Requests", b"Our systems have detected unusual traffic from your computer network."),
              ("503 Service Unavailable", b"<div class='g-recaptcha'></div>"))

    def assert_blocked(self, origin, proxy, requests=1):
        problem = self.assert_problem(self.fetch(origin.url(), proxy=proxy), 503, "breaker-open")
        self.assertGreaterEqual(problem["retry_after_s"], 29, "the ladder of blocks")
        self.assertIn("anti-bot", problem["detail"])
        self.assertEqual(len(origin.requests), requests)

    def test_a_block_page_with_a_status_of_rates_or_errors(self):
        """One request is enough, also where such a status alone would be tried again."""
        for retries in (0, 2):
            proxy = self.enforcing(SHORT.replace("max = 0", "max = %d" % retries).replace('"0s"', '"1s"'))
            for status, page in self.BLOCKS:
                for fields, body in (((), page), (("Content-Encoding: gzip",), gzip.compress(page))):
                    with self.subTest(page, status=status, fields=fields, retries=retries):
                        origin = self.origin(replying(response_bytes(body, status, "Content-Type: text/html",
                                                                     *fields)))
                        first = self.fetch(origin.url(), proxy=proxy)
                        self.assertEqual((first.status, first.body), (int(status[:3]), body))
                        self.assert_blocked(origin, proxy)

    def test_a_block_page_that_comes_after_the_head_of_its_429(self):
        proxy = self.enforcing()
        for named in ((), ("Retry-After: 2",)):
            with self.subTest(named):
                head, page = threading.Event(), b"<html><div id='px-captcha'></div></html>"
                lines = ["HTTP/1.1 429 Too Many Requests", "Content-Type: text/html",
                         "Content-Length: %d" % len(page), *named, "", ""]

                def script(visit):
                    while visit.read_request():
                        visit.send("\r\n".join(lines))
                        head.wait(10)
                        visit.send(page)

                origin = self.origin(script)
                client = self.client(proxy)
                client.send("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % origin.url())
                self.assertEqual(read_head(client).status, 429, "the head does not wait for the body")
                head.set()
                self.assertEqual(client.read_exact(len(page)), page)
                self.assert_blocked(origin, proxy)
                told = origin.authority + " is cooling down after an anti-bot answer"
                self.assertTrue(origin.wait(lambda: told in proxy.log()), proxy.log())

    def test_a_block_marker_in_what_is_no_text_means_nothing(self):
        proxy = self.enforcing()
        origin = self.origin(replying(response_bytes(b"Sign in to confirm you're not a bot", "200 OK",
                                                     "Content-Type: image/png")))
        self.assertEqual(self.statuses(origin, 3, proxy), [200] * 3)

    def test_answers_that_are_cut_short(self):
        proxy = self.enforcing()
        cut = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nthe first part"
        origin = self.origin(replying_once(cut))
        for _ in range(5):
            with self.assertRaises((Truncated, Ended)):
                self.fetch(origin.url(), proxy=proxy)
        self.assert_problem(self.fetch(origin.url(), proxy=proxy), 503, "breaker-open")
        self.assertEqual(len(origin.requests), 5)

    def test_a_burst_of_refusals_where_nothing_learns(self):
        """All are on their way before the first answer: one trip, and nothing after them."""
        proxy = self.enforcing(SHORT.replace('cooldown = ["1s", "2s"]', 'cooldown = ["5m"]', 1))
        together = threading.Barrier(20)

        def script(visit):
            while visit.read_request():
                together.wait(10)
                visit.send(TOO_MANY)

        origin = self.origin(script)
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda _: self.fetch(origin.url(), proxy=proxy).status, range(20)))
        self.assertEqual(answers, [429] * 20)
        refused = self.assert_problem(self.fetch(origin.url(), proxy=proxy), 503, "breaker-open")
        self.assertLessEqual(refused["retry_after_s"], 300, "the first rung")
        self.assertEqual(len(origin.requests), 20)

    def test_an_origin_that_is_not_there(self):
        proxy = self.enforcing()
        url = self.refused_url()
        statuses = [self.fetch(url, proxy=proxy) for _ in range(6)]
        self.assertEqual([r.status for r in statuses], [502] * 5 + [503])
        self.assertEqual(statuses[-1].get("Sluice-Reason"), "breaker-open")

    def test_our_own_dns_failure_convicts_nobody(self):
        proxy = self.enforcing()
        reasons = [self.fetch("http://no-such-host.invalid/", proxy=proxy).get("Sluice-Reason") for _ in range(8)]
        self.assertEqual(set(reasons), {"dns"})

    def test_one_host_is_not_another(self):
        proxy = self.enforcing()
        bad, good = self.origin(replying(retry_after(30))), self.origin()
        self.fetch(bad.url(), proxy=proxy)
        self.assertEqual(self.fetch(bad.url(), proxy=proxy).status, 503)
        self.assertEqual(self.fetch(good.url(), proxy=proxy).status, 200)

    def test_tunnels_obey(self):
        proxy = self.enforcing()
        port = self.refused_url().split(":")[2].strip("/")
        for _ in range(5):
            _, answer = self.tunnel("127.0.0.1:" + port, proxy=proxy)
            self.assertEqual(answer.status, 502)
        _, answer = self.tunnel("127.0.0.1:" + port, proxy=proxy)
        self.assertEqual((answer.status, answer.get("Sluice-Reason")), (503, "breaker-open"))


class Returns(BreakerCase):
    def test_one_probe_comes_first_and_a_success_opens_the_way(self):
        proxy = self.enforcing()
        gate = threading.Event()
        answers = iter([retry_after(1)])

        def script(visit):
            while visit.read_request():
                first = next(answers, None)
                if first is None and len(origin.requests) == 2:
                    gate.wait(5)
                visit.send(first or OK)

        origin = self.origin(script)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 429)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 503)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            due = origin.requests[0].at + 1.05
            self.assertTrue(origin.wait(lambda: time.monotonic() > due, 3))
            probe = pool.submit(self.fetch, origin.url(), proxy=proxy)
            self.assertTrue(origin.wait(lambda: len(origin.requests) == 2, 3), "the probe is a real request")
            others = [self.fetch(origin.url(), proxy=proxy).status for _ in range(3)]
            self.assertEqual(others, [503] * 3, "one probe at a time")
            waits_for_none = self.fetch(origin.url(), proxy=proxy)
            self.assert_problem(waits_for_none, 503, "breaker-open")
            gate.set()
            self.assertEqual(probe.result().status, 200)
        self.assertEqual(self.statuses(origin, 3, proxy), [200] * 3)

    def test_a_probe_that_streams_events_is_good_at_its_head(self):
        proxy = self.enforcing()
        gate = threading.Event()
        self.addCleanup(gate.set)
        answers = iter([retry_after(1), None])

        def script(visit):
            while visit.read_request():
                answer = next(answers, OK)
                if answer is None:
                    visit.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n")
                    gate.wait(10)
                    return
                visit.send(answer)

        origin = self.origin(script)
        self.fetch(origin.url(), proxy=proxy)
        due = origin.requests[0].at + 1.05
        self.assertTrue(origin.wait(lambda: time.monotonic() > due, 3))
        stream = self.client(proxy)
        stream.send("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % origin.url())
        self.assertEqual(read_head(stream).status, 200)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200, "while the events go on")

    def test_a_probe_whose_text_does_not_end_is_good_after_a_while(self):
        """Long before its lease ends, be it that the origin pauses or that it goes on and on."""
        proxy = self.enforcing(SHORT.replace('probe_timeout = "2s"', 'probe_timeout = "80s"'))
        over = threading.Event()
        self.addCleanup(over.set)
        for pauses in (True, False):
            with self.subTest(pauses=pauses):
                answers = iter([retry_after(1), None])

                def script(visit):
                    while visit.read_request():
                        answer = next(answers, OK)
                        if answer is not None:
                            visit.send(answer)
                            continue
                        visit.send("HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
                                   "Transfer-Encoding: chunked\r\n\r\n")
                        while visit.try_send(chunk(b"{}\n")) and not over.wait(60 if pauses else 0.1):
                            pass
                        return

                origin = self.origin(script)
                self.fetch(origin.url(), proxy=proxy)
                due = origin.requests[0].at + 1.05
                self.assertTrue(origin.wait(lambda: time.monotonic() > due, 3))
                stream = self.client(proxy)
                stream.send("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % origin.url())
                self.assertEqual(read_head(stream).status, 200)
                self.assertTrue(origin.wait(lambda: self.fetch(origin.url(), proxy=proxy).status == 200, 30))

    def test_a_failed_probe_climbs_the_ladder(self):
        proxy = self.enforcing()
        origin = self.origin(replying(TOO_MANY))
        self.statuses(origin, 3, proxy)
        first = int(self.fetch(origin.url(), proxy=proxy).get("Retry-After"))
        self.assertEqual(first, 1)
        self.assertTrue(origin.wait(lambda: self.fetch(origin.url(), proxy=proxy).status == 429, 3))
        self.assertEqual(int(self.fetch(origin.url(), proxy=proxy).get("Retry-After")), 2)

    def test_held_until_a_short_cooldown_ends(self):
        proxy = self.enforcing(SHORT.replace('max_wait = "0s"', 'max_wait = "5s"'))
        origin = self.origin(in_turn(retry_after(1), OK))
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 429)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: self.fetch(origin.url(), proxy=proxy).status, range(8)))
        self.assertEqual(answers, [200] * 8)
        self.assertGreaterEqual(origin.requests[1].at - origin.requests[0].at, 0.99)

    def test_retried_for_the_client(self):
        policy = SHORT.replace('max_wait = "0s"', 'max_wait = "5s"').replace("max = 0", "max = 2")
        proxy = self.enforcing(policy)
        origin = self.origin(in_turn(retry_after(1), OK))
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        self.assertEqual(len(origin.requests), 2)

    def test_a_post_is_never_sent_twice(self):
        policy = SHORT.replace('max_wait = "0s"', 'max_wait = "5s"').replace("max = 0", "max = 2")
        proxy = self.enforcing(policy)
        origin = self.origin(replying(retry_after(1)))
        self.assertEqual(self.fetch(origin.url(), "POST", body=b"order", proxy=proxy).status, 429)
        self.assertEqual(len(origin.requests), 1)

    def test_a_post_whose_client_vouches_for_it_is_sent_again_whole(self):
        policy = SHORT.replace('max_wait = "0s"', 'max_wait = "5s"').replace("max = 0", "max = 2")
        proxy = self.enforcing(policy)
        origin = self.origin(in_turn(retry_after(1), OK))
        answer = self.fetch(origin.url(), "POST", ["Idempotency-Key: 1"], b"order", proxy=proxy)
        self.assertEqual(answer.status, 200)
        self.assertEqual([r.body for r in origin.requests], [b"order", b"order"])

    def test_a_client_that_leaves_while_held_costs_nothing(self):
        proxy = self.enforcing(SHORT.replace('max_wait = "0s"', 'max_wait = "5s"'))
        origin = self.origin(in_turn(retry_after(2), OK))
        self.fetch(origin.url(), proxy=proxy)
        client = self.client(proxy)
        client.send("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % origin.url())
        client.close()
        self.assertEqual(self.fetch(origin.url("/after"), proxy=proxy).status, 200)
        self.assertEqual([r.target for r in origin.requests], ["/", "/after"])


class Policies(BreakerCase):
    def test_a_dropped_file_counts_within_a_second_and_keeps_what_is_known(self):
        proxy = self.enforcing()
        origin = self.origin(replying(retry_after(50)))
        self.fetch(origin.url(), proxy=proxy)
        proxy.write("policies/engine.toml", SHORT.replace('cooldown = ["1s", "2s"]', 'cooldown = ["3s"]', 1))
        self.assertTrue(origin.wait(lambda: "engine.toml is in force" in proxy.log(), 2), proxy.log())
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 503, "the cooldown stands")
        other = self.origin(replying(TOO_MANY))
        self.statuses(other, 3, proxy)
        self.assertEqual(self.fetch(other.url(), proxy=proxy).get("Retry-After"), "3", "the new number counts")

    def test_a_bad_file_is_refused_whole_and_the_last_good_one_stays(self):
        proxy = self.enforcing()
        proxy.write("policies/engine.toml", SHORT.replace("probe_timeout", "probe_timout"))
        origin = self.origin(replying(TOO_MANY))
        self.assertTrue(origin.wait(lambda: "probe_timout" in proxy.log(), 2), proxy.log())
        self.assertIn("engine.toml:8:1", proxy.log())
        self.assertEqual(self.statuses(origin, 4, proxy), [429, 429, 429, 503])

    def test_removed(self):
        proxy = self.enforcing()
        os.remove(os.path.join(proxy.directory, "policies/engine.toml"))
        origin = self.origin()
        self.assertTrue(origin.wait(lambda: "no longer in force" in proxy.log(), 2), proxy.log())

    def test_a_renamed_file_counts(self):
        proxy = self.enforcing()
        folder = os.path.join(proxy.directory, "policies")
        os.rename(os.path.join(folder, "engine.toml"), os.path.join(folder, "other.toml"))
        origin = self.origin(replying(retry_after(50)))
        self.assertTrue(origin.wait(lambda: "other.toml is in force" in proxy.log(), 2), proxy.log())
        self.fetch(origin.url(), proxy=proxy)
        refused = self.assert_problem(self.fetch(origin.url(), proxy=proxy), 503, "breaker-open")
        self.assertEqual(refused["policy"], "other")

    def test_a_file_that_somebody_writes_all_the_time_does_not_keep_others_out(self):
        proxy = self.enforcing()
        ended = threading.Event()

        def scribble():
            while not ended.wait(0.005):
                proxy.write("policies/notes.txt", "x")

        writer = threading.Thread(target=scribble)
        writer.start()
        try:
            proxy.write("policies/more.toml", 'hosts = ["more.test"]\n')
            self.assertTrue(self.origin().wait(lambda: "more.toml is in force" in proxy.log(), 5), proxy.log())
        finally:
            ended.set()
            writer.join()

    def test_another_directory_behind_the_link(self):
        proxy = self.enforcing()
        link = os.path.join(proxy.directory, "policies")
        for name in ("one", "two"):
            proxy.make_directory(name)
            proxy.write("%s/%s.toml" % (name, name), 'hosts = ["%s.test"]\n' % name)

        def in_force(name):
            self.assertTrue(self.origin().wait(lambda: name + ".toml is in force" in proxy.log(), 5), proxy.log())

        os.rename(link, link + ".old")
        os.symlink("one", link)
        in_force("one")
        os.symlink("two", link + ".new")
        os.replace(link + ".new", link)
        in_force("two")
        proxy.write("two/three.toml", 'hosts = ["three.test"]\n')
        in_force("three")

    def test_a_file_behind_a_link(self):
        proxy = self.enforcing()
        elsewhere = proxy.make_directory("elsewhere")

        def in_force(times):
            self.assertTrue(self.origin().wait(lambda: proxy.log().count("linked.toml is in force") == times, 10), proxy.log())

        proxy.write("elsewhere/real.toml", 'hosts = ["one.test"]\n')
        os.symlink(os.path.join(elsewhere, "real.toml"), os.path.join(proxy.directory, "policies", "linked.toml"))
        in_force(1)
        proxy.write("elsewhere/real.toml", 'hosts = ["two.test"]\n')
        in_force(2)
        proxy.write("elsewhere/real.new", 'hosts = ["three.test"]\n')
        os.replace(os.path.join(elsewhere, "real.new"), os.path.join(elsewhere, "real.toml"))
        in_force(3)

    def test_observe_sends_nothing_again(self):
        proxy = self.enforcing(SHORT.replace("max = 0", "max = 2").replace("[breaker]", 'mode = "observe"\n[breaker]', 1))
        origin = self.origin(replying(response_bytes(b"oops", "500 Internal Server Error")))
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 500)
        self.assertEqual(len(origin.requests), 1)

    def test_observe_decides_but_forwards(self):
        proxy = self.enforcing(SHORT.replace("[breaker]", 'mode = "observe"\n[breaker]', 1))
        origin = self.origin(replying(retry_after(30)))
        self.assertEqual(self.statuses(origin, 4, proxy), [429] * 4)
        self.assertIn("cooling down", proxy.log())

    def test_credentials_have_their_own_state_and_are_never_shown(self):
        proxy = self.enforcing(SHORT.replace("[breaker]", 'scope = "credential"\n[breaker]', 1))
        origin = self.origin(replying(retry_after(30)))
        one, two = ["Authorization: Bearer first-secret"], ["Authorization: Bearer second-secret"]
        self.fetch(origin.url(), fields=one, proxy=proxy)
        refused = self.fetch(origin.url(), fields=one, proxy=proxy)
        self.assertRegex(json.loads(refused.body)["key"], r"#[0-9a-f]{16}$")
        self.assertEqual(self.fetch(origin.url(), fields=two, proxy=proxy).status, 429)
        self.assertNotIn("secret", proxy.log() + refused.body.decode())


class Memory(BreakerCase):
    def restarted(self, proxy, kill):
        (proxy.kill if kill else proxy.stop)()
        return self.start(policy=SHORT, state=proxy.state)

    def test_a_cooldown_survives_a_restart_and_a_kill(self):
        for kill in (False, True):
            with self.subTest(kill=kill):
                proxy = self.enforcing()
                origin = self.origin(replying(retry_after(40)))
                self.fetch(origin.url(), proxy=proxy)
                again = self.restarted(proxy, kill)
                refused = self.fetch(origin.url(), proxy=again)
                self.assertEqual(refused.status, 503)
                self.assertLessEqual(int(refused.get("Retry-After")), 40)
                self.assertGreaterEqual(int(refused.get("Retry-After")), 30)
                self.assertEqual(len(origin.requests), 1)

    def test_two_processes_on_one_directory(self):
        """One opens, the other refuses at its next decision; one probe in the fleet."""
        first = self.enforcing()
        second = self.start(policy=SHORT, state=first.state)
        gate = threading.Event()
        self.addCleanup(gate.set)

        def script(visit):
            while visit.read_request():
                turn = len(origin.requests)
                if turn == 3:
                    gate.wait(5)
                visit.send(retry_after(1) if turn == 2 else OK)

        origin = self.origin(script)
        self.assertEqual(self.fetch(origin.url(), proxy=second).status, 200, "both know the key as closed")
        self.assertEqual(self.fetch(origin.url(), proxy=first).status, 429)
        self.assertEqual(self.fetch(origin.url(), proxy=second).status, 503)
        due = origin.requests[1].at + 1.05
        self.assertTrue(origin.wait(lambda: time.monotonic() > due, 3))
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            racing = [pool.submit(self.fetch, origin.url(), proxy=(first, second)[i % 2]) for i in range(8)]
            self.assertTrue(origin.wait(lambda: sum(r.done() for r in racing) == 7, 5), "all but the probe are refused")
            self.assertEqual(len(origin.requests), 3, "one probe for both")
            gate.set()
            self.assertEqual(sorted(r.result().status for r in racing), [200] + [503] * 7)

    def test_the_probe_of_a_dead_owner_is_given_to_another(self):
        first = self.enforcing()
        second = self.start(policy=SHORT, state=first.state)
        release = threading.Event()
        self.addCleanup(release.set)

        def script(visit):
            while visit.read_request():
                turn = len(origin.requests)
                if turn == 2:
                    release.wait(20)
                visit.send(retry_after(1) if turn == 1 else OK)

        origin = self.origin(script)
        self.fetch(origin.url(), proxy=first)
        due = origin.requests[0].at + 1.05
        self.assertTrue(origin.wait(lambda: time.monotonic() > due, 3))
        self.client(first).send("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % origin.url())
        self.assertTrue(origin.wait(lambda: len(origin.requests) == 2, 3), "the probe is on its way")
        first.kill()
        self.assertEqual(self.fetch(origin.url(), proxy=second).status, 503, "its lease still stands")
        self.assertTrue(origin.wait(lambda: self.fetch(origin.url(), proxy=second).status == 200, 6))


class Incidents(BreakerCase):
    def test_195_at_once_against_a_host_that_blocks_after_a_burst(self):
        """The incident of the banned office: only what was on its way reaches a host that has shut."""
        good, places = 40, 16
        page = gzip.compress(b"<html>" + b"x" * 2000 + b"Sign in to confirm you\xe2\x80\x99re not a bot</html>")
        block = response_bytes(page, "200 OK", "Content-Type: text/html", "Content-Encoding: gzip")
        for adapt in ("off", "learned"):
            with self.subTest(adapt=adapt):
                pace = 'adapt = "%s"\nmax_concurrency = %d' % (adapt, places)
                proxy = self.enforcing(SHORT.replace('adapt = "off"', pace).replace('"0s"', '"40s"')
                                       .replace('antibot_cooldown = ["30s"]', 'antibot_cooldown = ["1h"]'))
                origin = self.origin(in_turn(*[OK] * good, block))
                together = threading.Barrier(195)

                def validate(_):
                    client = self.client(proxy, timeout=60)
                    together.wait(60)
                    return self.fetch(origin.url(), client=client)

                with concurrent.futures.ThreadPoolExecutor(195) as pool:
                    answers = list(pool.map(validate, range(195)))
                blocked = [a for a in answers if a.body == page]
                refused = [a for a in answers if a.get("Sluice-Reason") == "breaker-open"]
                self.assertEqual(len([a for a in answers if a.body == b"ok"]), good)
                # The proxy has seen `good` answers at most when it sees the first block, and no more are without one.
                self.assertIn(len(blocked), range(1, places + 1))
                self.assertEqual(len(refused), 195 - good - len(blocked), "nobody is left waiting for an hour")
                self.assertEqual(len(origin.requests), good + len(blocked))
                self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 503)
                self.assertEqual(len(origin.requests), good + len(blocked))

    def test_two_percent_of_500s_do_not_open_it(self):
        proxy = self.enforcing()
        turn = iter(range(10**6))
        oops = response_bytes(b"oops", "500 Internal Server Error")
        origin = self.origin(lambda visit: [visit.send(oops if next(turn) * 7919 % 50 == 0 else OK)
                                            for _ in iter(visit.read_request, None)])
        client = self.client(proxy)
        statuses = [self.fetch(origin.url(), client=client).status for _ in range(2000)]
        self.assertEqual(statuses.count(503), 0)
        self.assertEqual(statuses.count(500), 40)
