"""Unusual use on a running proxy: told, slowed, shut, shown everywhere, and over by itself."""

import json
import os
import subprocess
import time

from harness import message
from harness.origin import replying
from harness.proxy import binary, free_port
from harness.stream import connect
from startup_test import OwnProxies

PRICE = 0.01
POLICY = """
hosts = ["*"]
[breaker]
consecutive = 1000
[pace]
adapt = "off"
[hold]
max_wait = "0s"
[retry]
max = 0
[cost]
per_request = %g
""" % PRICE
LOOP = 2165


def eventually(what, seconds=20):
    deadline = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


class AnomalyCase(OwnProxies):
    def enforcing(self, *settings, **options):
        return self.start(*settings, policy=POLICY, **options)

    def sluice(self, proxy, name, *arguments):
        done = subprocess.run([binary(), name, *arguments, "--state-dir", proxy.state,
                               "--policies", os.path.join(proxy.directory, "policies")],
                              capture_output=True, text=True, timeout=30,
                              env={"HOME": proxy.directory, "XDG_CONFIG_HOME": proxy.directory})
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout

    def told(self, proxy, least=0):
        """The sentences of all anomaly events, once there are so many: they are written behind the requests."""
        eventually(lambda: len(self.sentences(proxy)) >= least)
        return self.sentences(proxy)

    def sentences(self, proxy):
        lines = self.sluice(proxy, "events", "--json").splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [event["text"] for event in events if event["kind"] == "anomaly"]

    def statuses(self, proxy, urls, fields=()):
        client = self.client(proxy)
        return [self.fetch(url, fields=fields, client=client).status for url in urls]


class Loops(AnomalyCase):
    def test_a_loop_on_one_url_is_shut_out(self):
        admin = ("127.0.0.1", free_port())
        proxy = self.enforcing('anomaly.action="open"', "budget.daily=10.0", admin="%s:%d" % admin)
        origin = self.origin()
        url, key = origin.url("/v1/events?token=s3cret"), origin.authority
        statuses = self.statuses(proxy, [url] * LOOP)
        self.assertEqual(statuses[:4], [200] * 4, "nothing is unusual yet")
        self.assertEqual(set(statuses[4:]), {503})
        self.assertEqual(len(origin.requests), 4)
        report = eventually(lambda: self.spent(proxy, 4))
        self.assertEqual((report["day"]["limit"], report["day"]["spent"]), (10.0, 4 * PRICE), "less than $1 of $10")

        problem = self.assert_problem(self.fetch(origin.url("/else"), proxy=proxy), 503, "breaker-open")
        self.assertIn("one URL over and over, 4 times in 5 min: GET /v1/events?…", problem["detail"])
        self.assertEqual(problem["override"], "sluice close " + key)
        [said] = self.told(proxy, 1)
        self.assertTrue(said.startswith(key + " is asked for one URL over and over"), said)
        self.assertIn("sluice close " + key, said)
        self.assertNotIn("s3cret", said + proxy.log())

        status = eventually(lambda: [line for line in self.sluice(proxy, "status").splitlines()
                                     if line.startswith("anomaly since ")])
        self.assertIn(said, status[0])
        [anomaly] = json.loads(self.sluice(proxy, "status", "--json"))["anomalies"]
        self.assertEqual((anomaly["kind"], anomaly["key"], anomaly["action"]), ("thrash", key, "open"))
        self.assertIn(said, self.sluice(proxy, "explain", url))

        [shown] = json.loads(self.admin(proxy, admin, "/api/anomalies"))["anomalies"]
        self.assertEqual((shown["kind"], shown["key"], shown["sentence"], shown["ended"]), ("thrash", key, said, None))
        metrics = self.admin(proxy, admin, "/metrics").splitlines()
        self.assertIn('sluice_anomalies_total{kind="thrash"} 1', metrics)
        self.assertIn("sluice_anomalies_active 1", metrics)

    def spent(self, proxy, requests):
        """The cost report of today, once it lists so many requests."""
        report = json.loads(self.sluice(proxy, "budget", "--json", "--set", "budget.daily=10.0"))
        return report if report["day"]["requests"] >= requests else None

    def admin(self, proxy, address, path):
        with open(os.path.join(proxy.state, "admin.token")) as file:
            token = file.read().strip()
        stream = connect(address)
        self.addCleanup(stream.close)
        stream.send(message.request_bytes("GET", path, ["Host: %s:%d" % address, "Authorization: Bearer " + token]))
        response = message.read_response(stream)
        self.assertEqual(response.status, 200)
        return response.body.decode()

    def test_it_is_shut_after_a_crash_too(self):
        proxy, origin = self.enforcing('anomaly.action="open"'), self.origin()
        self.assertEqual(self.statuses(proxy, [origin.url()] * 5)[-1], 503)
        proxy.process.kill()
        proxy.wait()
        again = self.enforcing(state=proxy.state)
        self.assertEqual(self.statuses(again, [origin.url("/%d" % i) for i in range(3)]), [503] * 3)
        self.assertEqual(len(origin.requests), 4)

    def test_an_operator_closes_it(self):
        proxy, origin = self.enforcing('anomaly.action="open"'), self.origin()
        self.assertEqual(self.statuses(proxy, [origin.url()] * 5)[-1], 503)
        self.sluice(proxy, "close", origin.authority)
        self.assertEqual(self.statuses(proxy, [origin.url()] * 50), [200] * 50)
        self.assertIn("an operator has closed it", self.told(proxy, 2)[-1])

    def test_told_only_unless_more_is_asked_for(self):
        proxy, origin = self.enforcing(), self.origin()
        self.assertEqual(self.statuses(proxy, [origin.url()] * 100), [200] * 100)
        [said] = self.told(proxy, 1)
        self.assertIn("sluice open " + origin.authority, said)

    def test_it_ends_by_itself(self):
        proxy = self.enforcing('anomaly.end_after="1s"')
        origin = self.origin()
        self.statuses(proxy, [origin.url()] * 6)
        ended = eventually(lambda: self.told(proxy)[1:])
        self.assertRegex(ended[0], "thrash is over after .* and 3 requests that showed it")
        self.assertTrue(eventually(lambda: not json.loads(self.sluice(proxy, "status", "--json"))["anomalies"]))

    def test_half_the_pace(self):
        proxy = self.enforcing('anomaly.thrash.action="throttle"')
        origin = self.origin()
        statuses = self.statuses(proxy, [origin.url()] * 20)
        self.assertEqual(statuses[:5], [200] * 5)
        self.assertEqual(set(statuses[5:]), {503})
        refused = self.fetch(origin.url(), proxy=proxy)
        problem = self.assert_problem(refused, 503, "hold-timeout")
        self.assertIn("half its pace for an anomaly", problem["detail"])
        self.assertLessEqual(int(refused.get("Retry-After")), 12)


    def test_what_is_slowed_and_goes_on_is_shut(self):
        proxy, origin = self.enforcing('anomaly.thrash.action="throttle"', 'anomaly.escalate_after="1s"'), self.origin()
        client, url = self.client(proxy), origin.url()
        self.assertTrue(eventually(lambda: self.fetch(url, client=client).get("Sluice-Reason") == "breaker-open"))
        first, then = self.told(proxy, 2)[:2]
        self.assertIn("is asked for one URL over and over", first)
        self.assertIn("sluice close " + origin.authority, then)

    def test_a_burst_against_what_is_usual(self):
        rows = [("more than ten a minute where nothing is usual yet", '"0s"', 1), ("too young for habits", '"1d"', 0)]
        for name, learn, count in rows:
            with self.subTest(name):
                proxy, origin = self.enforcing("anomaly.burst.learn=" + learn), self.origin()
                self.statuses(proxy, [origin.url("/%d" % i) for i in range(100)])
                told = [said for said in self.told(proxy, count) if "burst" in said or "a minute" in said]
                self.assertEqual(len(told), count, told)


class Honest(AnomalyCase):
    def test_what_is_no_anomaly(self):
        rows = [("different URLs", lambda origin: ([origin.url("/%d" % i) for i in range(200)], ())),
                ("conditional requests", lambda origin: ([origin.url()] * 20, ['If-None-Match: "x"'])),
                ("three times the same", lambda origin: ([origin.url()] * 3, ()))]
        for name, asked in rows:
            with self.subTest(name):
                proxy, origin = self.enforcing('anomaly.action="open"'), self.origin()
                urls, fields = asked(origin)
                self.assertEqual(set(self.statuses(proxy, urls, fields)), {200})
                self.assertEqual(self.told(proxy), [])

    def test_what_the_proxy_sends_again_is_no_loop(self):
        again = POLICY.replace("max = 0", "max = 2").replace('max_wait = "0s"', 'max_wait = "5s"')
        proxy = self.start('anomaly.action="open"', policy=again)
        origin = self.origin(replying(message.response_bytes(b"", "503 Service Unavailable")))
        self.statuses(proxy, [origin.url()] * 3)
        self.assertGreater(len(origin.requests), 3)
        self.assertEqual(self.told(proxy), [])

    def test_switched_off(self):
        proxy, origin = self.enforcing("anomaly.enabled=false"), self.origin()
        self.statuses(proxy, [origin.url()] * 20)
        self.assertEqual(self.told(proxy), [])


class Errors(AnomalyCase):
    def test_more_than_half_of_the_last_ten(self):
        proxy = self.enforcing()
        status = {True: "500 Internal Server Error", False: "200 OK"}
        origin = self.origin(replying(lambda asked: message.response_bytes(b"", status["/bad" in asked.target])))
        self.statuses(proxy, [origin.url("/%s%d" % ("bad" if i % 5 else "good", i)) for i in range(20)])
        [said] = self.told(proxy, 1)
        self.assertRegex(said, r" fails: \d+ of the last 10 answers were errors; ")


class Hours(AnomalyCase):
    def hours_around(self, first, last):
        hour = time.gmtime().tm_hour
        return 'anomaly.off_hours.hours=["%02d:00-%02d:00"]' % ((hour + first) % 24, (hour + last) % 24)

    def test_an_unattended_night_run(self):
        proxy, origin = self.enforcing(self.hours_around(2, 3)), self.origin()
        self.assertEqual(self.statuses(proxy, [origin.url("/%d" % i) for i in range(30)]), [200] * 30)
        [said] = self.told(proxy, 1)
        self.assertRegex(said, r" is used outside of \d\d:00-\d\d:00 UTC; see whether somebody watches this run")

    def test_within_the_hours(self):
        proxy, origin = self.enforcing(self.hours_around(-2, 3)), self.origin()
        self.statuses(proxy, [origin.url("/%d" % i) for i in range(30)])
        self.assertEqual(self.told(proxy), [])


class Settings(AnomalyCase):
    def test_mistakes_are_told(self):
        rows = [('anomaly.action="shout"', '"throttle"'),
                ('anomaly.off_hours.hours=["8-20"]', '"08:00-20:00"'),
                ('anomaly.off_hours.days=["monday"]', "mon, tue"),
                ('anomaly.off_hours.zone="Nowhere/City"', "is no time zone"),
                ("anomaly.thrash.abov=3", "did you mean")]
        for setting, word in rows:
            with self.subTest(setting):
                _, said = self.refusal(setting)
                self.assertIn(word, said)
