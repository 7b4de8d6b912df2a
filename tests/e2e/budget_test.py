"""The budget: what costs is counted before it goes, given back when nothing went, and never exceeded."""

import concurrent.futures
import json
import os
import random
import subprocess
import threading
import time

from breaker_test import SHORT
from caps_test import named
from harness.message import Truncated, read_response, request_bytes, response_bytes
from harness.origin import OK, in_turn, replying
from harness.proxy import ANY_PORT, Proxy, binary, free_port
from harness.stream import Ended, connect
from startup_test import OwnProxies

# One request costs 0.10; of 1.00, 0.80 may be spent: eight requests.
PRICED = SHORT + "[cost]\nper_request = 0.1\n"
PATIENT = PRICED.replace('max_wait = "0s"', 'max_wait = "5s"')
DAILY = ("budget.daily=1.0",)


class BudgetCase(OwnProxies):
    def budgeted(self, policy=PRICED, settings=DAILY, **options):
        return self.start(*settings, policy=policy, **options)

    def ask(self, proxy, *arguments, code=0):
        """`sluice budget` on the proxy's state."""
        done = subprocess.run([binary(), "budget", "--state-dir", proxy.state, "--policies",
                               os.path.join(proxy.directory, "policies"), "--set", DAILY[0], *arguments],
                              capture_output=True, text=True, timeout=20,
                              env={"HOME": proxy.directory, "PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def report(self, proxy):
        return json.loads(self.ask(proxy, "--json"))

    def wait_report(self, proxy, requests):
        """The report once it lists that many requests of today: it is written about once a second."""
        deadline = time.monotonic() + 10
        while (report := self.report(proxy))["day"]["requests"] < requests and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(report["day"]["requests"], requests)
        return report

    def used_up(self, proxy, url, most=20):
        """The first refusal by the budget."""
        for _ in range(most):
            answer = self.fetch(url, proxy=proxy)
            if answer.status == 429:
                return answer
        self.fail("it never stopped")


class Budget(BudgetCase):
    def test_to_the_stop_mark_and_then_a_refusal_that_says_so(self):
        proxy, origin = self.budgeted(), self.origin()
        answers = [self.fetch(origin.url(), proxy=proxy) for _ in range(10)]
        self.assertEqual([a.status for a in answers], [200] * 8 + [429] * 2)
        self.assertEqual(len(origin.requests), 8)
        problem = self.assert_problem(answers[-1], 429, "budget")
        self.assertEqual(answers[-1].get("X-Should-Retry"), "false")
        self.assertIn("the daily budget of 1.00 USD is used up to its stop mark of 80 %", problem["detail"])
        self.assertNotIn("override", problem)
        midnight = 86400 - time.time() % 86400
        self.assertAlmostEqual(int(answers[-1].get("Retry-After")) % 86400, midnight % 86400, delta=5)
        self.assertTrue(problem["until"].endswith("T00:00:00Z"), problem)

    def test_what_costs_nothing_still_goes(self):
        policy = PRICED + 'paths = [{ path = "/free/*", cost = 0.0 }]\n'
        proxy, origin = self.budgeted(policy), self.origin()
        self.used_up(proxy, origin.url())
        self.assertEqual(self.fetch(origin.url("/free/x"), proxy=proxy).status, 200)
        self.assertEqual(self.fetch(origin.url("/dear"), proxy=proxy).status, 429)

    def test_it_comes_before_the_breaker(self):
        proxy, other = self.budgeted(), self.origin()
        origin = self.origin(replying(response_bytes(b"no", "429 Too Many Requests", "Retry-After: 60")))
        self.assertFalse(self.fetch(origin.url(), proxy=proxy).has("Sluice-Reason"), "the origin's own answer")
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).get("Sluice-Reason"), "breaker-open")
        self.used_up(proxy, other.url())
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).get("Sluice-Reason"), "budget")

    def test_nothing_was_sent_so_nothing_is_spent(self):
        proxy = self.budgeted(PRICED.replace("[breaker]", "[breaker]\nconsecutive = 1000", 1))
        url = self.refused_url()
        for _ in range(20):
            self.assertEqual(self.fetch(url, proxy=proxy).status, 502)
        origin = self.origin()
        answers = [self.fetch(origin.url(), proxy=proxy).status for _ in range(9)]
        self.assertEqual(answers, [200] * 8 + [429])

    def test_a_client_that_leaves_while_it_is_held_costs_nothing(self):
        policy = PRICED.replace('adapt = "off"', 'adapt = "off"\nmax_concurrency = 1', 1)
        proxy = self.budgeted(policy.replace('max_wait = "0s"', 'max_wait = "20s"'))
        go = threading.Event()

        def script(visit):
            while visit.read_request():
                go.wait(20)
                visit.send(OK)

        origin = self.origin(script)
        first = self.client(proxy)
        first.send(request_bytes("GET", origin.url(), ["Host: " + origin.authority]))
        origin.wait(lambda: origin.requests)
        for _ in range(20):
            client = self.client(proxy)
            client.send(request_bytes("GET", origin.url(), ["Host: " + origin.authority]))
            client.close()
        go.set()
        self.assertEqual(read_response(first).status, 200)
        answers = [self.fetch(origin.url(), proxy=proxy).status for _ in range(8)]
        self.assertEqual(answers, [200] * 7 + [429])

    def test_a_second_try_costs_again(self):
        proxy = self.budgeted(PATIENT.replace("max = 0", "max = 2"))
        sad = response_bytes(b"no", "503 Service Unavailable")
        origin = self.origin(lambda visit: [visit.send(sad) for _ in iter(visit.read_request, None)])
        answer = self.fetch(origin.url(), proxy=proxy)
        self.assertEqual((answer.status, len(origin.requests)), (503, 3))
        self.assertAlmostEqual(self.wait_report(proxy, 3)["day"]["spent"], 0.3)

    def test_no_second_try_goes_past_the_mark(self):
        proxy = self.budgeted(PATIENT.replace("max = 0", "max = 9").replace("[breaker]", "[breaker]\nconsecutive = 99", 1))
        origin = self.origin(in_turn(*[OK] * 6, response_bytes(b"no", "503 Service Unavailable")))
        for _ in range(6):
            self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        self.assertIn(self.fetch(origin.url(), proxy=proxy).status, (503, 429))
        self.assertEqual(len(origin.requests), 8)

    def test_the_answer_names_the_price(self):
        policy = PRICED + 'header = "x-cost"\n'
        proxy = self.budgeted(policy)
        cheap = self.origin(replying(response_bytes(b"ok", "200 OK", "X-Cost: 0.02")))
        answers = [self.fetch(cheap.url(), proxy=proxy).status for _ in range(40)]
        # Each must find 0.10, and then costs 0.02: the last one that does is the 36th.
        self.assertEqual(answers, [200] * 36 + [429] * 4)

    def test_a_price_that_only_the_answer_names(self):
        policy = SHORT + '[cost]\nheader = "x-cost"\n'
        proxy = self.budgeted(policy)
        origin = self.origin(replying(response_bytes(b"ok", "200 OK", "X-Cost: 0.25")))
        answers = [self.fetch(origin.url(), proxy=proxy).status for _ in range(6)]
        self.assertEqual(answers, [200, 200, 200, 429, 429, 429], "0.75 is spent, and the next would cost 0.25")
        self.assertAlmostEqual(self.wait_report(proxy, 3)["day"]["spent"], 0.75)

    def test_a_price_with_an_exponent_counts(self):
        policy = SHORT + '[cost]\nheader = "x-litellm-response-cost"\n'
        proxy = self.budgeted(policy, settings=("budget.daily=0.001",))
        origin = self.origin(replying(response_bytes(b"ok", "200 OK", "X-Litellm-Response-Cost: 5e-04")))
        answers = [self.fetch(origin.url(), proxy=proxy).status for _ in range(4)]
        self.assertEqual(answers, [200, 429, 429, 429])

    def test_a_price_that_cannot_be_read_counts_as_what_was_declared(self):
        proxy = self.budgeted(PRICED + 'header = "x-cost"\n')
        origin = self.origin(replying(response_bytes(b"ok", "200 OK", "X-Cost: 0.01 \xe2\x82\xac")))
        answers = [self.fetch(origin.url(), proxy=proxy).status for _ in range(10)]
        self.assertEqual(answers, [200] * 8 + [429] * 2)
        self.assertTrue(origin.wait(lambda: "in x-cost is not a price" in proxy.log()))
        self.assertEqual(proxy.log().count("is not a price"), 1, "once in a while")

    def test_a_crowd_whose_price_nobody_knows_yet(self):
        """64 first requests at once: one finds out what they cost, and all together stay within the mark."""
        proxy = self.budgeted(SHORT.replace('max_wait = "0s"', 'max_wait = "30s"') + '[cost]\nheader = "x-cost"\n')

        def slow(visit):
            while visit.read_request():
                time.sleep(0.1)  # all others ask while the first is on its way
                visit.send(response_bytes(b"ok", "200 OK", "X-Cost: 0.25"))

        origin = self.origin(slow)
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            answers = list(pool.map(lambda _: self.fetch(origin.url(), proxy=proxy), range(64)))
        self.assertEqual(sorted(a.status for a in answers), [200] * 3 + [429] * 61)
        self.assertEqual({a.get("Sluice-Reason") for a in answers if a.status == 429}, {"budget"})
        self.assertEqual(len(origin.requests), 3)
        proxy.kill()
        again = self.budgeted(SHORT + '[cost]\nheader = "x-cost"\n', state=proxy.state)
        self.assertEqual(self.fetch(origin.url(), proxy=again).get("Sluice-Reason"), "budget")

    def test_who_waits_for_a_price_in_vain_is_told_why(self):
        proxy = self.budgeted(SHORT + '[cost]\nheader = "x-cost"\n')
        go = threading.Event()
        self.addCleanup(go.set)

        def script(visit):
            while visit.read_request():
                go.wait(20)
                visit.send(OK)  # and no price

        origin = self.origin(script)
        first = self.client(proxy)
        first.send(request_bytes("GET", origin.url(), ["Host: " + origin.authority]))
        self.assertTrue(origin.wait(lambda: origin.requests))
        problem = self.assert_problem(self.fetch(origin.url(), proxy=proxy), 503, "hold-timeout")
        self.assertIn("no answer has named a price in x-cost yet", problem["detail"])
        go.set()
        self.assertEqual(read_response(first).status, 200)
        self.assertTrue(origin.wait(lambda: "has named no price in x-cost" in proxy.log()))
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200, "the next one finds out")

    def test_what_went_twice_costs_twice(self):
        """The origin takes a request on a connection that had rested, and closes without a word."""
        def script(visit):
            if visit.read_request():
                visit.send(OK)
                visit.read_request()

        proxy, origin = self.budgeted(), self.origin(script)
        client = self.client(proxy)
        for _ in range(2):
            self.assertEqual(self.fetch(origin.url(), client=client, proxy=proxy).status, 200)
        self.assertEqual(len(origin.requests), 3)
        self.assertAlmostEqual(self.wait_report(proxy, 3)["day"]["spent"], 0.3)

    def test_who_only_observes_counts_and_refuses_nobody(self):
        proxy, origin = self.budgeted('mode = "observe"\n' + PRICED), self.origin()
        said = "enforced, it would be refused: the daily budget"

        def goes_on():
            self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
            return said in proxy.log() and len(origin.requests) >= 12

        self.assertTrue(origin.wait(goes_on, 10), "it did not say what it would have done")
        count = len(origin.requests)
        self.assertAlmostEqual(self.wait_report(proxy, count)["day"]["spent"], 0.1 * count)

    def test_a_tunnel_costs_when_it_stands(self):
        proxy, origin = self.budgeted(), self.origin()
        for _ in range(8):
            _, answer = self.tunnel(origin.authority, proxy=proxy)
            self.assertEqual(answer.status, 200)
        _, answer = self.tunnel(origin.authority, proxy=proxy)
        self.assertEqual((answer.status, answer.get("Sluice-Reason")), (429, "budget"))

    def test_it_survives_a_kill(self):
        proxy, origin = self.budgeted(), self.origin()
        self.used_up(proxy, origin.url())
        proxy.kill()
        again = self.budgeted(state=proxy.state)
        self.assertEqual(self.fetch(origin.url(), proxy=again).get("Sluice-Reason"), "budget")
        self.assertEqual(len(origin.requests), 8)

    def test_a_stop_gives_back_what_was_reserved_ahead(self):
        proxy, origin = self.budgeted(), self.origin()
        for _ in range(3):
            self.fetch(origin.url(), proxy=proxy)
        self.assertIsNone(proxy.stop())
        day = self.report(proxy)["day"]
        self.assertAlmostEqual(day["used"], 0.3)
        self.assertAlmostEqual(day["reserved"], 0)

    def test_marks_are_events(self):
        proxy, origin = self.budgeted(), self.origin()
        self.used_up(proxy, origin.url())
        done = subprocess.run([binary(), "events", "--state-dir", proxy.state, "--json"], capture_output=True,
                              text=True, timeout=20, env={"HOME": proxy.directory, "PATH": os.environ["PATH"]})
        texts = [json.loads(line)["text"] for line in done.stdout.splitlines()]
        self.assertEqual(len([t for t in texts if "budget of 1.00 USD" in t]), 2, texts)


class Reports(BudgetCase):
    def test_by_policy_host_and_job_across_processes_and_restarts(self):
        proxy, origin = self.budgeted(settings=("budget.daily=100.0",)), self.origin()
        beside = self.budgeted(settings=("budget.daily=100.0",), state=proxy.state)
        for count, through, job in ((3, proxy, "nightly"), (2, beside, "nightly"), (1, proxy, "other")):
            for _ in range(count):
                self.assertEqual(self.fetch(origin.url(), fields=named(job), proxy=through).status, 200)
        self.assertIsNone(beside.stop())
        self.wait_report(proxy, 6)
        proxy.kill()
        report = self.report(proxy)
        spent = {(line["kind"], line["name"]): line for line in report["lines"]}
        self.assertEqual(spent["job", "nightly"]["today"], {"spent": 0.5, "requests": 5})
        self.assertEqual(spent["job", "other"]["month"], {"spent": 0.1, "requests": 1})
        self.assertEqual(spent["host", "127.0.0.1"]["today"]["requests"], 6)
        self.assertEqual(spent["policy", "engine"]["today"]["requests"], 6)
        self.assertEqual(report["currency"], "USD")
        self.assertGreaterEqual(report["day"]["used"], 0.6)

    def test_as_text(self):
        proxy, origin = self.budgeted(), self.origin()
        self.assertIn("Nothing has cost anything yet", self.ask(proxy))
        self.used_up(proxy, origin.url())
        self.wait_report(proxy, 8)
        text = self.ask(proxy)
        self.assertRegex(text, r"^daily +0\.80 of 1\.00 USD spent; stopped, begins anew in ")
        self.assertRegex(text, r"(?m)^monthly +0\.80 USD spent, no limit$")
        self.assertRegex(text, r"(?m)^BY +NAME +TODAY +REQUESTS +MONTH +REQUESTS$")
        self.assertRegex(text, r"(?m)^host +127\.0\.0\.1 +0\.80 +8 +0\.80 +8$")
        today = self.ask(proxy, "--today")
        self.assertNotIn("MONTH", today)
        self.assertNotIn("monthly", today)

    def test_without_a_state_directory(self):
        done = subprocess.run([binary(), "budget", "--state-dir", "/nonexistent/sluice"], capture_output=True, text=True,
                              timeout=20, env={"HOME": "/nonexistent", "PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, 3)
        self.assertIn("there is no state directory", done.stderr)

    def test_the_admin_side_shows_it(self):
        port = free_port()
        proxy, origin = self.budgeted(admin="127.0.0.1:%d" % port), self.origin()
        for _ in range(3):
            self.fetch(origin.url(), fields=named("nightly"), proxy=proxy)
        self.wait_report(proxy, 3)
        admin = connect(("127.0.0.1", port))
        self.addCleanup(admin.close)
        with open(os.path.join(proxy.state, "admin.token")) as file:
            key = "Authorization: Bearer " + file.read().strip()

        def get(path):
            admin.send(request_bytes("GET", path, ["Host: 127.0.0.1:%d" % port, key]))
            return read_response(admin).body.decode()

        budget = json.loads(get("/api/budget"))
        self.assertEqual([p["name"] for p in budget["periods"]], ["daily"])
        self.assertAlmostEqual(budget["periods"][0]["spent"], 0.3)
        self.assertAlmostEqual(budget["periods"][0]["limit"], 1.0)
        self.assertIn({"kind": "job", "name": "nightly", "spent": 0.3, "requests": 3}, budget["lines"])
        self.assertRegex(get("/metrics"), r'(?m)^sluice_budget_spent\{period="daily",currency="USD"\} 0\.3$')
        job = next(j for j in json.loads(get("/api/status"))["jobs"] if j["name"] == "nightly")
        self.assertEqual((job["requests"], job["spent"], job["failed"]), (3, 0.3, False))

    def test_status_shows_jobs(self):
        proxy, origin = self.budgeted(), self.origin()
        for _ in range(3):
            self.fetch(origin.url(), fields=named("nightly"), proxy=proxy)
        self.assertIsNone(proxy.stop())
        command = [binary(), "status", "--state-dir", proxy.state]

        def run(*more):
            return subprocess.run([*command, *more], capture_output=True, text=True, timeout=20,
                                  env={"HOME": proxy.directory, "PATH": os.environ["PATH"]}).stdout

        self.assertRegex(run(), r"(?m)^nightly +ok +3 +0 +0 +\d+ +(-|\d+ ms) +0 +0\.30 USD +\d.* ago$")
        job, = json.loads(run("--json"))["jobs"]
        self.assertEqual((job["name"], job["requests"], job["spent"]), ("nightly", 3, 0.3))
        self.assertIsNone(json.loads(run("--json"))["budget"], "none is set here")
        budget = json.loads(run("--json", "--set", DAILY[0]))["budget"]
        self.assertEqual((budget["currency"], budget["daily"]["limit"], budget["daily"]["used"]), ("USD", 1.0, 0.3))


# One request costs 0.01; of 10.00, 8.00 may be spent: 800 requests, in blocks of 0.04.
CENT = PRICED.replace("0.1", "0.01").replace('max_wait = "0s"', 'max_wait = "30s"')
MOST, BLOCK, CLIENTS, KILLS = 800, 4, 64, 6


class Race(BudgetCase):
    weight = 4

    def client(self, number, stop):
        """One request after the other, each with a name of its own, until the budget says no."""
        asked = 0
        while not stop.is_set():
            try:
                stream = connect(self.proxies[number % 2].address, timeout=20)
                try:
                    while not stop.is_set():
                        asked += 1
                        path = "/%d/%d" % (number, asked)
                        self.unanswered.add(path)
                        stream.send(request_bytes("GET", self.shop.url(path), ["Host: " + self.shop.authority]))
                        answer = read_response(stream)
                        self.unanswered.discard(path)
                        if answer.get("Sluice-Reason") == "budget":
                            return True
                finally:
                    stream.close()
            except (OSError, Ended, Truncated, ValueError):
                time.sleep(0.01)  # killed: the next one is on its way
        return False

    def begin(self, state=None):
        proxy = Proxy(ANY_PORT, "budget.daily=10.0", policy=self.policy, state=state)
        self.own_proxies.append(proxy)
        self.addCleanup(proxy.kill)
        return proxy

    def test_64_clients_two_processes_and_kill_9(self):
        self.race(CENT)

    def test_when_only_answers_name_the_price(self):
        self.race(CENT.replace("per_request = 0.01", 'header = "x-cost"'))

    def race(self, policy):
        chance = random.Random(6)
        self.policy = policy

        def slow(visit):
            while visit.read_request():
                time.sleep(0.15)  # so that the budget outlasts a few crashes
                visit.send(response_bytes(b"ok", "200 OK", "X-Cost: 0.01"))

        self.shop = self.origin(slow)
        self.unanswered = set()
        first = self.begin()
        self.proxies = [first, self.begin(first.state)]
        stop = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            clients = [pool.submit(self.client, number, stop) for number in range(CLIENTS)]
            kills = 0
            while kills < KILLS and len(self.shop.requests) < MOST * 3 // 4:
                target = len(self.shop.requests) + chance.randrange(20, 90)
                self.shop.wait(lambda: len(self.shop.requests) >= target, 5)
                victim = chance.randrange(2)
                self.proxies[victim].kill()
                self.proxies[victim] = self.begin(first.state)
                kills += 1
            concurrent.futures.wait(clients, 60)
            stop.set()
        self.assertTrue(all(c.result() for c in clients), "not every client heard that the budget is used up")
        arrived = len(self.shop.requests)
        self.assertGreaterEqual(kills, 3)
        self.assertLessEqual(arrived, MOST, "more than the budget allows")
        # A crash wastes a block at most; what was paid for and died on its way to the origin is no waste of ours.
        lost = self.unanswered - {request.target for request in self.shop.requests}
        self.assertGreaterEqual(arrived, MOST - kills * BLOCK - len(lost), "%d crashes, %d lost" % (kills, len(lost)))
        self.assertLessEqual(self.report(first)["day"]["used"], 8.0)
