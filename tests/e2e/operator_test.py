"""What operators rely on when it matters: numbers that move, orders that do what they say, trouble that is told."""

import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import threading
import time

from admin_test import AdminCase, eventually
from harness import message
from harness.origin import replying
from harness.proxy import Proxy, binary, free_port
from harness.stream import connect

REFUSING = message.response_bytes(b"slow down", "429 Too Many Requests", "Retry-After: 300")


class OperatorCase(AdminCase):
    """A proxy of its own for every test, with a policy per host of 127.0.0.x and *.test."""

    policies = {}

    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def run_proxy(self, *settings, state=None, policies=None):
        self.admin = ("127.0.0.1", free_port())
        self.proxy = Proxy('proxy.connect_ports=["*"]', 'proxy.drain="1s"', *settings, state=state, ready=False,
                           policy='hosts = ["*"]\n[hold]\nmax_wait = "0s"\n[pace]\nadapt = "off"\n[retry]\nmax = 0\n',
                           admin="%s:%d" % self.admin)
        self.own_proxies.append(self.proxy)
        self.addCleanup(self.proxy.kill)
        for name, text in (policies or {}).items():
            self.proxy.write("policies/%s.toml" % name, text)
        self.proxy.wait_ready()
        self.state = self.proxy.state
        self.token = eventually(lambda: self.token_there())

    def token_there(self):
        path = os.path.join(self.state, "admin.token")
        return os.path.exists(path) and open(path).read().strip()

    def tearDown(self):
        # What stands in the class is for the base's own proxy.
        self.proxy = None

    def metrics(self):
        """{name with its labels: value}"""
        text = self.ask("/metrics", token=False).body.decode()
        return {name: float(value) for name, value in re.findall(r"(?m)^(sluice_\S+(?: [^{}]*\})?) (\S+)$", text)}

    def moved(self, before, name, by=1):
        """It may be counted a moment after the client has its answer."""
        reached = eventually(lambda: self.metrics().get(name, 0) >= before.get(name, 0) + by, 5)
        now = self.metrics()
        self.assertTrue(reached, "%s: %s -> %s" % (name, before.get(name), now.get(name)))
        return now


class Numbers(OperatorCase):
    def test_every_kind_of_number_moves(self):
        self.run_proxy(policies={"slow": 'hosts = ["127.0.0.2"]\n[pace]\nmin_delay = "300ms"\n'})
        good = self.origin()
        before = self.metrics()
        self.assertIn("sluice_refusals_total{reason=\"breaker-open\"}", before, "a series is there before it moves")
        self.assertEqual(before["sluice_overhead_seconds_count"], 0)

        self.fetch(good.url())
        now = self.moved(before, 'sluice_outcomes_total{outcome="success"}')
        self.moved(before, "sluice_overhead_seconds_count")
        self.assertGreater(self.metrics()["sluice_overhead_seconds_sum"], 0)
        self.assertLess(self.metrics()["sluice_overhead_seconds_sum"], 60, "the origin's time is not ours")

        origin = self.origin(replying(REFUSING))
        self.assertEqual(self.fetch(origin.url()).status, 429)
        self.moved(now, 'sluice_outcomes_total{outcome="rate_limited"}')
        self.moved(before, "sluice_overhead_seconds_count", 2)
        self.assertEqual(self.fetch(origin.url()).status, 503)
        self.moved(now, 'sluice_refusals_total{reason="breaker-open"}')

        self.assertEqual(self.fetch(self.refused_url()).status, 502)
        self.moved(now, 'sluice_refusals_total{reason="connect"}')
        self.moved(now, 'sluice_outcomes_total{outcome="network"}')
        self.assertEqual(self.fetch("http://no-such-host.invalid/").status, 502)
        self.moved(now, 'sluice_refusals_total{reason="dns"}')
        self.talk(b"GET http://a.test/ HTTP/1.1\r\n\r\n", self.proxy.address)
        self.moved(now, 'sluice_refusals_total{reason="bad-request"}')

        held = self.origin(host="127.0.0.2")
        for _ in range(2):
            self.assertEqual(self.fetch(held.url()).status, 200)
        now = self.moved(now, "sluice_hold_seconds_count")
        self.assertGreater(now["sluice_hold_seconds_sum"], 0.05)
        self.assertLess(now["sluice_overhead_seconds_sum"], 60)
        self.assertEqual(now['sluice_refusals_total{reason="other"}'], 0, "every reason has its word")

        status = self.read("/api/status")
        self.assertEqual(status["refusals"]["connect"], 1)
        self.assertNotIn("budget", status["refusals"], "what never happened is not listed")
        self.assertGreaterEqual(status["outcomes"]["refused"], 1)

    def test_a_refused_tunnel_and_a_stop_are_counted_too(self):
        self.run_proxy()
        before = self.metrics()
        self.order("/api/stop", reason="fire")
        origin = self.origin()
        self.assertTrue(eventually(lambda: self.fetch(origin.url()).status == 503))
        self.moved(before, 'sluice_refusals_total{reason="emergency-stop"}')
        self.order("/api/resume")

    def test_what_goes_on_is_told_at_once(self):
        """Not one question late: the very answer that lists the keys has their sum."""
        self.run_proxy()
        release = threading.Event()
        self.addCleanup(release.set)

        def answer(request):
            if "slow" in request.target:
                release.wait(60)
            return message.response_bytes(b"ok")

        origin, client = self.origin(replying(answer)), self.client()
        self.assertEqual(self.fetch(origin.url()).status, 200)
        self.assertTrue(eventually(lambda: self.read("/api/keys")["keys"], 5))
        client.send(message.request_bytes("GET", origin.url("/slow"), ["Host: " + origin.authority]))
        self.assertTrue(eventually(lambda: len(origin.requests) == 2))
        time.sleep(1.1)  # older than a copy of the keys lives
        self.assertEqual(self.read("/api/status")["in_flight"], 1)

    def test_a_new_host_that_does_not_answer_is_listed(self):
        """With whoever waits for it, for as long as that lasts."""
        self.run_proxy(policies={"one": 'hosts = ["127.0.0.1"]\n[pace]\nmax_concurrency = 1\n'})
        release = threading.Event()
        self.addCleanup(release.set)

        def answer(_):
            release.wait(60)
            return message.response_bytes(b"ok")

        origin = self.origin(replying(answer))
        for _ in range(3):
            self.client().send(message.request_bytes("GET", origin.url(), ["Host: " + origin.authority]))
        self.assertTrue(eventually(lambda: self.read("/api/keys")["keys"], 5))
        self.assertTrue(eventually(lambda: self.read("/api/status")["held"] == 2, 5))
        row = self.read("/api/keys")["keys"][0]
        self.assertEqual((row["key"], row["in_flight"], row["held"]), (origin.authority, 1, 2))

    def test_a_key_of_another_life_has_its_policy(self):
        self.run_proxy(policies={"mine": 'hosts = ["127.0.0.1"]\n'})
        origin = self.origin(replying(REFUSING))
        self.assertEqual(self.fetch(origin.url()).status, 429)
        state, old = self.state, self.proxy
        old.terminate()
        self.assertEqual(old.wait(10), 0)
        self.run_proxy(state=state, policies={"mine": 'hosts = ["127.0.0.1"]\n'})
        rows = {row["key"]: row for row in self.read("/api/keys?q=mine")["keys"]}
        self.assertIn(origin.authority, rows, "found by the name of its policy")
        self.assertIn('sluice_key_state{key="%s",policy="mine",state="open"}' % origin.authority, self.metrics())
        self.assertEqual(self.metrics()['sluice_outcomes_total{outcome="rate_limited"}'], 0, "of this process")


class Crowd(OperatorCase):
    KEYS = 100_000
    STALL = 2.0  # seconds, or half of what a page over so many keys takes on this machine; a request takes a millisecond

    def test_many_keys_are_a_bounded_page_and_no_hindrance(self):
        """While one page of numbers is made, requests go on, and none of them waits for it."""
        state = tempfile.mkdtemp(prefix="sluice-crowd-")
        self.addCleanup(shutil.rmtree, state, ignore_errors=True)
        seed = os.path.join(os.path.dirname(binary()), "tests/seed_store")
        subprocess.run([seed, state, str(self.KEYS)], check=True, timeout=80)
        self.run_proxy(state=state)
        origin = self.origin(replying(message.response_bytes(b"ok")))
        done, slowest, statuses, ended = [0], [0.0], set(), threading.Event()

        def client():
            stream = self.client()
            while not ended.is_set():
                asked = time.monotonic()
                statuses.add(self.fetch(origin.url(), client=stream).status)
                slowest[0] = max(slowest[0], time.monotonic() - asked)
                done[0] += 1

        thread = threading.Thread(target=client)
        thread.start()
        try:
            self.assertTrue(eventually(lambda: done[0] > 0))
            during, longest = [], 0.0
            for _ in range(3):
                self.order("/api/keys/host-1.test/close")  # the copy of the keys is made anew
                before = done[0]
                asked = time.monotonic()
                page = self.ask("/metrics", token=False).body.decode()
                longest = max(longest, time.monotonic() - asked)
                during.append(done[0] - before)
        finally:
            ended.set()
            thread.join(30)
        self.assertGreater(min(during), 5, during)
        self.assertLess(slowest[0], max(self.STALL, longest / 2))
        self.assertEqual(statuses, {200})
        closed = int(re.search(r'(?m)^sluice_keys\{state="closed"\} (\d+)', page)[1])
        self.assertGreaterEqual(closed, self.KEYS)
        self.assertLess(page.count("\n"), 2500)
        self.assertLessEqual(len(set(re.findall(r'[{,]key="([^"]+)"', page))), 101)


class Orders(OperatorCase):
    def refused_order(self, path, **body):
        response = self.ask(path, "POST", body=json.dumps(body).encode())
        self.assertEqual(response.status, 400, response)
        return json.loads(response.body)["error"]

    def test_a_host_without_a_state_of_its_own(self):
        self.run_proxy(policies={"shared": 'hosts = ["127.0.0.1"]\nscope = "policy"\n'})
        origin = self.origin()
        error = self.refused_order("/api/keys/127.0.0.1/open", **{"for": "5m"})
        self.assertIn("policy/shared", error)
        self.assertEqual(self.fetch(origin.url()).status, 200)
        self.order("/api/keys/policy%2Fshared/open", **{"for": "5m"})
        self.assertEqual(self.fetch(origin.url()).status, 503)
        self.order("/api/keys/policy%2Fshared/close")
        self.assertEqual(self.fetch(origin.url()).status, 200)

    def test_a_name_is_read_as_commands_read_it(self):
        self.run_proxy('proxy.resolve={ "caps.test" = "127.0.0.1" }')
        origin = self.origin()
        url = "http://caps.test:%d/" % origin.port
        self.assertIn("caps.test:%d is shut" % origin.port, self.order("/api/keys/CAPS.test.:%d/open" % origin.port))
        self.assertEqual(self.fetch(url).status, 503)
        self.assertIn("caps.test:%d lets" % origin.port, self.order("/api/keys/Caps.Test:%d/close" % origin.port))
        self.assertEqual(self.fetch(url).status, 200)
        for bad in ("a%20b", "*.test", "policy%2F", "http:%2F%2Fx.test", "x.test%23", "%2F"):
            with self.subTest(bad):
                self.assertIn("is no key", self.refused_order("/api/keys/%s/open" % bad))
                self.assertIn("is no key", self.refused_order("/api/keys/%s/close" % bad))

    def test_a_bare_host_is_every_key_of_it_also_those_to_come(self):
        self.run_proxy()
        seen, unseen = self.origin(), self.origin()
        self.assertEqual(self.fetch(seen.url()).status, 200)
        self.assertIn("127.0.0.1", self.order("/api/keys/127.0.0.1/open", **{"for": "5m", "reason": "noise"}))
        for origin in (seen, unseen):
            refused = self.fetch(origin.url())
            self.assertEqual((refused.status, refused.get("Sluice-Reason")), (503, "breaker-open"))
            self.assertIn("noise", json.loads(refused.body)["detail"])
        _, tunnel = self.tunnel(unseen.authority)
        self.assertEqual(tunnel.status, 503)
        self.order("/api/keys/127.0.0.1/close")
        for origin in (seen, unseen):
            self.assertEqual(self.fetch(origin.url()).status, 200)

    def test_commands_say_and_do_the_same(self):
        self.run_proxy()
        origin = self.origin()
        command = lambda *words: subprocess.run([binary(), *words, "--state-dir", self.state], capture_output=True, text=True, timeout=30)
        self.assertEqual(command("open", "127.0.0.1", "--for", "5m").returncode, 0)
        self.assertIn("it would be refused", command("explain", origin.url()).stdout)
        self.assertEqual(self.fetch(origin.url()).status, 503)
        self.assertEqual(command("close", "127.0.0.1").returncode, 0)
        self.assertIn("it would be forwarded", command("explain", origin.url()).stdout)
        self.assertEqual(self.fetch(origin.url()).status, 200)

    def test_a_host_is_shut_for_credentials_nobody_has_seen(self):
        self.run_proxy(policies={"who": 'hosts = ["127.0.0.1"]\nscope = "credential"\n[retry]\nmax = 0\n'})
        origin = self.origin()
        ada, bob = ["Authorization: Bearer ada"], ["Authorization: Bearer bob"]
        self.assertEqual(self.fetch(origin.url(), fields=ada).status, 200)
        for key in (origin.authority, "127.0.0.1"):
            with self.subTest(key):
                self.order("/api/keys/%s/open" % key, **{"for": "5m"})
                for fields in (ada, bob, ()):
                    self.assertEqual(self.fetch(origin.url(), fields=fields).status, 503, fields)
                self.order("/api/keys/%s/close" % key)
                for fields in (ada, bob, ()):
                    self.assertEqual(self.fetch(origin.url(), fields=fields).status, 200, fields)

    def test_one_credential_of_a_host_is_shut_alone(self):
        self.run_proxy(policies={"who": 'hosts = ["127.0.0.1"]\nscope = "credential"\n[retry]\nmax = 0\n'})
        origin = self.origin(replying(
            lambda request: REFUSING if "ada" in request.get("Authorization") else message.response_bytes(b"ok")))
        ada, bob = ["Authorization: Bearer ada"], ["Authorization: Bearer bob"]
        self.assertEqual(self.fetch(origin.url(), fields=ada).status, 429)
        self.assertEqual(self.fetch(origin.url(), fields=ada).status, 503)
        self.assertEqual(self.fetch(origin.url(), fields=bob).status, 200)


class Trouble(OperatorCase):
    def limit(self, what, value):
        """Sets a soft limit of the running proxy; gives the old one."""
        soft, hard = resource.prlimit(self.proxy.pid, what)
        resource.prlimit(self.proxy.pid, what, (value, hard))
        return soft

    def test_without_descriptors_the_admin_side_rests(self):
        self.run_proxy()
        self.ask("/healthz")
        taken = {int(name) for name in os.listdir("/proc/%d/fd" % self.proxy.pid)}
        before = self.limit(resource.RLIMIT_NOFILE, min(set(range(len(taken) + 1)) - taken))  # not one is free
        waiting = connect(self.admin)
        self.addCleanup(waiting.close)
        waiting.send(message.request_bytes("GET", "/healthz", ["Host: %s:%d" % self.admin]))
        ticks = self.processor_time()
        time.sleep(1)  # what is measured is how much work a second of waiting is
        spent = self.processor_time() - ticks
        self.limit(resource.RLIMIT_NOFILE, before)
        self.assertLess(spent, 0.1, "it asks again and again")
        self.assertEqual(message.read_response(waiting).status, 200, "it goes on when there are some")

    def processor_time(self):
        fields = open("/proc/%d/stat" % self.proxy.pid).read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def broken_store(self, *settings):
        self.run_proxy(*settings)
        self.assertEqual(self.ask("/readyz", token=False).status, 200)
        before = self.limit(resource.RLIMIT_FSIZE, 0)  # no file may grow: as a full disk
        origin = self.origin(replying(REFUSING))
        self.fetch(origin.url())
        self.assertTrue(eventually(lambda: self.metrics()["sluice_store_up"] == 0))
        self.assertGreater(self.metrics()["sluice_store_failures_total"], 0)
        return before

    def test_not_ready_without_its_store(self):
        before = self.broken_store()
        answer = self.ask("/readyz", token=False)
        self.assertEqual(answer.status, 503)
        self.assertIn(b"store cannot be written", answer.body)
        self.assertEqual(self.ask("/healthz", token=False).status, 200, "it need not be restarted")
        self.assertFalse(self.read("/api/status")["ready"])
        self.limit(resource.RLIMIT_FSIZE, before)
        self.assertTrue(eventually(lambda: self.ask("/readyz", token=False).status == 200), "it is again")

    def test_ready_when_it_goes_on_in_memory(self):
        self.broken_store('store.on_failure="local"')
        self.assertEqual(self.ask("/readyz", token=False).status, 200)
