"""Alerts to a real receiver over HTTPS, and to commands: delivered, refused, retried, not repeated."""

import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time

from harness.case import ProxyCase
from harness.message import read_response, request_bytes, response_bytes
from harness.origin import replying
from harness.proxy import binary, free_port
from harness.stream import connect
from harness.tls import TestAuthority, server_context

SOON = 30.0  # what is promised while the receiver can be reached
ENFORCE = 'hosts = ["*"]\n[hold]\nmax_wait = "0s"\n[retry]\nmax = 0\n'
TAKEN = response_bytes(b"ok")
FAILED = response_bytes(b"no", "500 Internal Server Error")
LIMITED = response_bytes(b"slow", "429 Too Many Requests", "Retry-After: 600")


class Receiver:
    """The body of every alert that came, and how it is answered just now."""

    def __init__(self, case, tls=None, answer=TAKEN):
        self.answer = answer  # None: hangs
        self.bodies = []  # of those that were answered with TAKEN
        self.tries = 0
        self.origin = ProxyCase.origin(case, self.serve, tls=tls)

    def serve(self, visit):
        while request := visit.read_request():
            self.tries += 1
            if self.answer is None:
                visit.wait_end(20)
                return
            if self.answer == TAKEN:
                self.bodies.append(json.loads(request.body))
            visit.send(self.answer)

    def url(self, host="127.0.0.1"):
        scheme = "https" if self.origin.tls else "http"
        return "%s://%s:%d/services/SECRET" % (scheme, host, self.origin.port)

    def wait(self, condition, timeout=SOON):
        return self.origin.wait(condition, timeout)

    def kinds(self):
        return [body["sluice"]["kind"] for body in self.bodies]


class AlertCase(ProxyCase):
    """Each test starts its own proxy."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="sluice-alerts-")
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        cls.authority = TestAuthority(cls.directory)
        cls.good = server_context(cls.authority.certificate("good", "DNS:localhost,IP:127.0.0.1"))
        cls.wrong = server_context(cls.authority.certificate("wrong", "DNS:elsewhere.test"))

    @classmethod
    def tearDownClass(cls):
        pass

    def receiver(self, **options):
        options.setdefault("tls", self.good)
        return Receiver(self, **options)

    def run_with(self, receiver, *settings, **options):
        options.setdefault("policy", ENFORCE)
        settings = ('alerts.webhook="%s"' % receiver.url(), 'alerts.extra_ca="%s"' % self.authority.path,
                    'alerts.timeout="1s"', *settings)
        return self.start(*settings, **options)

    def trip(self, proxy):
        """Makes one key open; its name."""
        origin = self.origin(replying(LIMITED))
        self.assertIn(self.fetch(origin.url(), proxy=proxy).status, (429, 503))
        return origin.authority

    def stop_file(self, proxy):
        return os.path.join(proxy.state, "EMERGENCY_STOP")

    def events(self, proxy):
        told = subprocess.run([binary(), "events", "--json", "--state-dir", proxy.state], capture_output=True,
                              text=True, timeout=20, env={"HOME": proxy.directory, "XDG_CONFIG_HOME": proxy.directory})
        return told.stdout

    def wait_log(self, proxy, words, timeout=SOON):
        deadline = time.monotonic() + timeout
        while words not in proxy.log():
            self.assertLess(time.monotonic(), deadline, "not logged: %s\n%s" % (words, proxy.log()[-3000:]))
            time.sleep(0.05)


class Webhook(AlertCase):
    def test_a_trip_is_told_within_30_seconds_and_once(self):
        receiver = self.receiver()
        proxy = self.run_with(receiver)
        key = self.trip(proxy)
        self.assertTrue(receiver.wait(lambda: receiver.bodies), proxy.log())
        body = receiver.bodies[0]
        self.assertIn(key, body["text"])
        self.assertTrue(body["text"].startswith("sluice on "), body)
        self.assertEqual((body["sluice"]["kind"], body["sluice"]["key"]), ("breaker-open", key))
        self.assertIn("429 Too Many Requests", body["sluice"]["sentence"])
        self.assertEqual(body["sluice"]["count"], 1)
        self.assertRegex(body["sluice"]["at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        request = receiver.origin.requests[0]
        self.assertEqual((request.start, request.get("Content-Type")),
                         ("POST /services/SECRET HTTP/1.1", "application/json"))
        # Several other alerts later there is still no second one.
        for make in (lambda path: open(path, "w").close(), os.unlink):
            make(self.stop_file(proxy))
            time.sleep(0.4)
        self.assertTrue(receiver.wait(lambda: {"stop", "resume"} <= set(receiver.kinds())), receiver.kinds())
        self.assertEqual(receiver.kinds().count("breaker-open"), 1)
        self.assertNotIn("SECRET", proxy.log())

    def test_a_receiver_that_fails_is_asked_again_and_loses_nothing(self):
        receiver = self.receiver(answer=FAILED)
        proxy = self.run_with(receiver)
        key = self.trip(proxy)
        self.assertTrue(receiver.wait(lambda: receiver.tries >= 2))
        self.wait_log(proxy, "answered 500 Internal Server Error")
        receiver.answer = TAKEN
        self.assertTrue(receiver.wait(lambda: receiver.bodies))
        self.assertEqual([body["sluice"]["key"] for body in receiver.bodies], [key])
        self.assertNotIn("SECRET", proxy.log())

    def test_a_receiver_that_hangs_holds_up_no_request(self):
        receiver = self.receiver(answer=None)
        proxy = self.run_with(receiver, 'alerts.timeout="10s"')
        ok = self.origin()
        key = self.trip(proxy)
        self.assertTrue(receiver.wait(lambda: receiver.tries >= 1))
        client = self.client(proxy)
        slowest = 0.0
        for _ in range(50):
            begun = time.monotonic()
            self.assertEqual(self.fetch(ok.url(), client=client, proxy=proxy).status, 200)
            slowest = max(slowest, time.monotonic() - begun)
        self.assertEqual(receiver.bodies, [])
        self.assertLess(slowest, 9.0, "as long as the receiver hangs")
        receiver.answer = TAKEN
        self.assertTrue(receiver.wait(lambda: receiver.bodies), proxy.log())
        self.assertEqual(receiver.bodies[0]["sluice"]["key"], key)

    def test_a_proxy_whose_receiver_hangs_ends_at_once(self):
        receiver = self.receiver(answer=None)
        proxy = self.run_with(receiver, 'alerts.timeout="12s"')
        self.trip(proxy)
        self.assertTrue(receiver.wait(lambda: receiver.tries >= 1))
        self.assertIsNone(proxy.stop())

    def test_a_certificate_for_another_name_is_refused(self):
        receiver = self.receiver(tls=self.wrong)
        proxy = self.run_with(receiver)
        self.trip(proxy)
        self.wait_log(proxy, "did not take")
        self.assertRegex(proxy.log(), "(?i)certificate|subject")
        self.assertEqual(receiver.tries, 0)

    def test_a_certificate_of_an_unknown_authority_is_refused(self):
        receiver = self.receiver()
        proxy = self.start('alerts.webhook="%s"' % receiver.url(), policy=ENFORCE)
        self.trip(proxy)
        self.wait_log(proxy, "did not take")
        self.assertRegex(proxy.log(), "(?i)certificate")
        self.assertEqual(receiver.tries, 0)

    def test_no_proxy_of_the_environment_is_used(self):
        receiver = self.receiver()
        other = self.origin(replying(response_bytes(b"", "502 Bad Gateway")))
        names = ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
        prefix = ["env", *("%s=http://%s" % (name, other.authority) for name in names)]
        proxy = self.run_with(receiver, prefix=prefix)
        self.trip(proxy)
        self.assertTrue(receiver.wait(lambda: receiver.bodies), proxy.log())
        self.assertEqual(other.visits, [])

    def test_a_redirect_is_not_followed(self):
        elsewhere = self.origin()
        receiver = self.receiver(answer=response_bytes(b"", "302 Found", "Location: " + elsewhere.url()))
        proxy = self.run_with(receiver)
        self.trip(proxy)
        self.wait_log(proxy, "answered 302 Found")
        self.assertEqual(elsewhere.visits, [])

    def test_retry_after_of_the_receiver_is_respected(self):
        busy = response_bytes(b"", "429 Too Many Requests", "Retry-After: 5")
        receiver = self.receiver(answer=busy)
        proxy = self.run_with(receiver)
        self.trip(proxy)
        self.assertTrue(receiver.wait(lambda: receiver.tries == 1))
        first = time.monotonic()
        receiver.answer = TAKEN
        self.assertTrue(receiver.wait(lambda: receiver.bodies))
        self.assertGreater(time.monotonic() - first, 4.5)

    def test_what_nobody_takes_is_dropped_loudly(self):
        receiver = self.receiver(answer=FAILED)
        proxy = self.run_with(receiver, 'alerts.repeat="1s"', 'alerts.give_up="3s"')
        key = self.trip(proxy)
        self.wait_log(proxy, "alert NOT delivered by webhook")
        self.assertIn(key, self.events(proxy))
        self.assertIn("NOT delivered", self.events(proxy))

    def test_what_can_never_be_taken_does_not_block_the_next(self):
        receiver = self.receiver(answer=response_bytes(b"invalid_payload", "400 Bad Request"))
        proxy = self.run_with(receiver)
        self.trip(proxy)
        self.wait_log(proxy, "alert NOT delivered by webhook")
        self.assertIn("invalid_payload", proxy.log())
        receiver.answer = TAKEN
        key = self.trip(proxy)
        self.assertTrue(receiver.wait(lambda: receiver.bodies))
        self.assertEqual(receiver.bodies[0]["sluice"]["key"], key)

    def test_only_the_kinds_that_are_wanted(self):
        receiver = self.receiver()
        proxy = self.run_with(receiver, 'alerts.kinds=["stop"]')
        self.trip(proxy)
        open(self.stop_file(proxy), "w").close()
        self.assertTrue(receiver.wait(lambda: receiver.bodies))
        self.assertEqual(receiver.kinds(), ["stop"])

    def test_a_key_that_stays_shut(self):
        receiver = self.receiver()
        proxy = self.run_with(receiver, 'alerts.slow_open="2s"', 'alerts.kinds=["slow-open"]')
        key = self.trip(proxy)
        self.assertTrue(receiver.wait(lambda: receiver.bodies), proxy.log())
        self.assertEqual((receiver.bodies[0]["sluice"]["kind"], receiver.bodies[0]["sluice"]["key"]), ("slow-open", key))
        self.assertIn("shut for", receiver.bodies[0]["text"])


class Kinds(AlertCase):
    """Everything that is told, each received over HTTPS."""

    def received(self, receiver, kind, proxy, count=1):
        """What came of that kind, alone or among several."""
        def found():
            out = []
            for body in list(receiver.bodies):
                fields = body["sluice"]
                out += [alert for alert in fields.get("alerts", [fields]) if alert["kind"] == kind]
            return out if len(out) >= count else None

        alerts = receiver.wait(found)
        self.assertTrue(alerts, "no %s among %s\n%s" % (kind, receiver.bodies, proxy.log()))
        return alerts

    def test_the_marks_of_the_budget(self):
        receiver, origin = self.receiver(), self.origin()
        proxy = self.run_with(receiver, "budget.daily=1.0", policy=ENFORCE + "[cost]\nper_request = 0.1\n")
        answers = [self.fetch(origin.url("/%d" % i), proxy=proxy).status for i in range(10)]
        self.assertEqual(answers, [200] * 8 + [429] * 2)
        half, stop = self.received(receiver, "budget", proxy, 2)
        self.assertRegex(half["sentence"], r"^the daily budget of 1\.00 USD is used to \d\d %$")
        self.assertEqual(stop["sentence"], "the daily budget of 1.00 USD is used up to its stop mark of 80 %")

    def test_an_anomaly(self):
        receiver, origin = self.receiver(), self.origin()
        proxy = self.run_with(receiver)
        for _ in range(5):
            self.assertEqual(self.fetch(origin.url("/again"), proxy=proxy).status, 200)
        alert, = self.received(receiver, "anomaly", proxy)
        self.assertEqual(alert["key"], origin.authority)
        self.assertIn("is asked for one URL over and over", alert["sentence"])

    def test_an_unattended_night_run(self):
        receiver, origin = self.receiver(), self.origin()
        hour = time.gmtime().tm_hour
        proxy = self.run_with(receiver, 'anomaly.off_hours.hours=["%02d:00-%02d:00"]' % ((hour + 2) % 24, (hour + 3) % 24))
        for number in range(30):
            self.assertEqual(self.fetch(origin.url("/%d" % number), proxy=proxy).status, 200)
        alert, = self.received(receiver, "anomaly", proxy)
        self.assertIn("see whether somebody watches this run", alert["sentence"])

    def test_the_emergency_stop_and_its_end(self):
        receiver = self.receiver()
        proxy = self.run_with(receiver)
        subprocess.run([binary(), "stop", "--reason", "runs wild", "--state-dir", proxy.state], check=True, timeout=20,
                       capture_output=True, env={"HOME": proxy.directory, "XDG_CONFIG_HOME": proxy.directory})
        alert, = self.received(receiver, "stop", proxy)
        self.assertIn("runs wild", alert["sentence"])
        os.unlink(self.stop_file(proxy))
        self.received(receiver, "resume", proxy)

    def test_a_flood_is_told_in_few_messages_and_all_of_it(self):
        receiver, count = self.receiver(), 40
        proxy = self.run_with(receiver, 'alerts.max_per_hour=3')
        keys = {self.trip(proxy) for _ in range(count)}

        def number():
            return sum(body["sluice"]["count"] for body in receiver.bodies)

        self.assertTrue(receiver.wait(lambda: len(receiver.bodies) >= 3), receiver.bodies)
        self.assertLessEqual(len(receiver.bodies), 4, "one more may have been earned by now")
        told = {alert["key"] for alert in self.received(receiver, "breaker-open", proxy)}
        self.assertLessEqual(told, keys)
        self.assertLessEqual(number(), count)

    def test_a_store_that_fails_what_happens_meanwhile_and_that_it_works_again(self):
        for on_failure in ("block", "local"):
            with self.subTest(on_failure):
                self.store_fails(on_failure)

    def store_fails(self, on_failure):
        receiver = self.receiver()
        proxy = self.run_with(receiver, 'store.on_failure="%s"' % on_failure)
        soft, hard = resource.prlimit(proxy.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(proxy.pid, resource.RLIMIT_FSIZE, (0, hard))  # no file may grow: as a full disk
        key = self.trip(proxy)
        self.received(receiver, "store", proxy)
        trip, = self.received(receiver, "breaker-open", proxy)
        self.assertEqual(trip["key"], key)
        self.assertIn("429 Too Many Requests", trip["sentence"])
        resource.prlimit(proxy.pid, resource.RLIMIT_FSIZE, (soft, hard))
        again, = self.received(receiver, "store-recovered", proxy)
        self.assertIn("the store works again, after ", again["sentence"])
        self.assertEqual(len(self.received(receiver, "breaker-open", proxy)), 1)

    def test_a_damaged_store_once(self):
        receiver = self.receiver()
        first = self.run_with(receiver)
        self.assertIsNone(first.stop())
        with open(os.path.join(first.state, "data.mdb"), "r+b") as file:
            file.write(b"\0" * 16384)
        proxy = self.run_with(receiver, state=first.state)
        alert, = self.received(receiver, "store", proxy)
        self.assertRegex(alert["sentence"], "^the store .* was damaged: it was set aside as ")
        self.assertEqual(alert["count"], 1)
        self.assertEqual(self.events(proxy).count("was damaged"), 1)

    def test_one_on_demand_and_the_numbers_about_all(self):
        receiver, port = self.receiver(), free_port()
        proxy = self.run_with(receiver, 'alerts.repeat="1s"', 'alerts.give_up="3s"', admin="127.0.0.1:%d" % port)

        def ask(method, path):
            with open(os.path.join(proxy.state, "admin.token")) as file:
                key = "Authorization: Bearer " + file.read().strip()
            stream = connect(("127.0.0.1", port))
            self.addCleanup(stream.close)
            stream.send(request_bytes(method, path, ["Host: 127.0.0.1:%d" % port, key]))
            return read_response(stream)

        def number(name):
            return int(re.search(r"(?m)^%s (\d+)$" % name, ask("GET", "/metrics").body.decode())[1])

        done = ask("POST", "/api/alerts/test")
        self.assertEqual((done.status, json.loads(done.body)), (200, {"done": "a test alert is on its way"}))
        alert, = self.received(receiver, "test", proxy)
        self.assertEqual(alert["sentence"], "a test alert, asked for by an operator")
        self.assertTrue(receiver.wait(lambda: number("sluice_alerts_sent_total") == 1))
        self.assertEqual(number("sluice_alert_failures_total"), 0)
        receiver.answer = FAILED
        self.trip(proxy)
        self.assertTrue(receiver.wait(lambda: number("sluice_alerts_waiting") == 1))
        self.assertTrue(receiver.wait(lambda: number("sluice_alert_failures_total") >= 1))
        self.assertTrue(receiver.wait(lambda: number("sluice_alerts_dropped_total") == 1))
        self.assertTrue(receiver.wait(lambda: number("sluice_alerts_waiting") == 0))
        self.assertEqual(number("sluice_alerts_sent_total"), 1)

    def test_nobody_to_tell_on_demand(self):
        port = free_port()
        proxy = self.start(policy=ENFORCE, admin="127.0.0.1:%d" % port)
        done = subprocess.run(["curl", "-sS", "--noproxy", "*", "-X", "POST", "--unix-socket",
                               os.path.join(proxy.state, "admin.sock"), "http://localhost/api/alerts/test"],
                              capture_output=True, text=True, timeout=20)
        self.assertIn("neither alerts.webhook nor alerts.command is set", done.stdout, done.stderr)


class Restarts(AlertCase):
    def test_kill_9_and_restart_neither_repeats_nor_loses(self):
        receiver = self.receiver()
        proxy = self.run_with(receiver)
        first = self.trip(proxy)
        self.assertTrue(receiver.wait(lambda: receiver.bodies))
        receiver.answer = FAILED
        tries = receiver.tries
        second = self.trip(proxy)
        self.assertTrue(receiver.wait(lambda: receiver.tries > tries))
        proxy.kill()
        receiver.answer = TAKEN
        again = self.run_with(receiver, state=proxy.state)
        third = self.trip(again)
        self.assertTrue(receiver.wait(lambda: len(receiver.bodies) >= 3, 2 * SOON), again.log())
        self.assertIsNone(again.stop())
        self.assertEqual(sorted(body["sluice"]["key"] for body in receiver.bodies), sorted([first, second, third]))

    def test_one_of_two_processes_on_a_store_tells(self):
        receiver = self.receiver()
        one = self.run_with(receiver)
        other = self.run_with(receiver, state=one.state)
        keys = [self.trip(one), self.trip(other), self.trip(one)]
        self.assertTrue(receiver.wait(lambda: len(receiver.bodies) >= 3), one.log() + other.log())
        self.assertIsNone(one.stop())
        # Whoever is left takes over.
        keys.append(self.trip(other))
        self.assertTrue(receiver.wait(lambda: len(receiver.bodies) >= 4), other.log())
        self.assertIsNone(other.stop())
        self.assertEqual(sorted(body["sluice"]["key"] for body in receiver.bodies), sorted(keys))


class Command(AlertCase):
    def run_command(self, text, *settings, **options):
        """A proxy whose alerts run a script with `text`."""
        script = os.path.join(tempfile.mkdtemp(dir=self.directory), "tell")
        with open(script, "w") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(script, 0o700)
        options.setdefault("policy", ENFORCE)
        return self.start('alerts.command="%s"' % script, 'alerts.timeout="2s"', *settings, **options), script

    def wait_file(self, path, timeout=SOON):
        deadline = time.monotonic() + timeout
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), deadline, path)
            time.sleep(0.02)
        with open(path) as file:
            return file.read()

    def test_it_gets_the_alert_and_nothing_else(self):
        secret = {"SECRET_TOKEN": "x", "https_proxy": "http://127.0.0.1:1"}
        proxy, script = self.run_command(
            'd=$(dirname "$0"); cat >$d/stdin; env >$d/environment; ls -l /proc/$$/fd >$d/fds; mv $d/stdin $d/done\n',
            prefix=["env", *("%s=%s" % item for item in secret.items())])
        key = self.trip(proxy)
        directory = os.path.dirname(script)
        body = json.loads(self.wait_file(os.path.join(directory, "done")))
        self.assertEqual((body["sluice"]["kind"], body["sluice"]["key"]), ("breaker-open", key))
        environment = dict(line.partition("=")[::2] for line in
                           self.wait_file(os.path.join(directory, "environment")).splitlines())
        self.assertEqual(environment["SLUICE_ALERT_KEY"], key)
        self.assertEqual(environment["SLUICE_ALERT_KIND"], "breaker-open")
        self.assertEqual(environment["SLUICE_ALERT_COUNT"], "1")
        self.assertIn(key, environment["SLUICE_ALERT_TEXT"])
        self.assertFalse(set(secret) & set(environment))
        fds = self.wait_file(os.path.join(directory, "fds"))
        self.assertNotIn("socket:", fds)
        self.assertNotIn("data.mdb", fds)

    def test_one_that_fails_is_run_again(self):
        proxy, script = self.run_command(
            'd=$(dirname "$0"); if [ -e $d/first ]; then touch $d/done; else touch $d/first; echo broken; exit 3; fi\n')
        self.trip(proxy)
        self.wait_file(os.path.join(os.path.dirname(script), "done"))
        self.assertIn("it ended with 3 (broken", proxy.log())

    def test_one_that_hangs_is_killed_with_its_children_and_holds_up_nobody(self):
        proxy, script = self.run_command('d=$(dirname "$0"); sleep 300 & echo $! >$d/child; sleep 300\n')
        ok = self.origin()
        self.trip(proxy)
        child = os.path.join(os.path.dirname(script), "child")
        deadline = time.monotonic() + SOON
        while not self.wait_file(child).strip():
            self.assertLess(time.monotonic(), deadline)
        pid = int(self.wait_file(child))
        self.assertEqual(self.fetch(ok.url(), proxy=proxy).status, 200)
        self.wait_log(proxy, "it was killed after 2 s")
        while os.path.exists("/proc/%d" % pid) and "Z" not in open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()[0]:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_a_webhook_that_hangs_does_not_keep_the_command_waiting(self):
        receiver = self.receiver(answer=None)
        proxy, script = self.run_command('touch $(dirname "$0")/done\n', 'alerts.webhook="%s"' % receiver.url(),
                                         'alerts.extra_ca="%s"' % self.authority.path)
        self.trip(proxy)
        self.wait_file(os.path.join(os.path.dirname(script), "done"))


class Settings(AlertCase):
    def check(self, *settings):
        arguments = [part for setting in settings for part in ("--set", setting)]
        return subprocess.run([binary(), "check", *arguments], capture_output=True, text=True, timeout=20,
                              env={"HOME": self.directory, "XDG_CONFIG_HOME": self.directory})

    def test_mistakes_are_named_and_the_secret_is_not(self):
        rows = (
            ('alerts.webhook="http://hooks.slack.com/services/SECRET"', "must begin with https://"),
            ('alerts.webhook="hooks.slack.com/services/SECRET"', "alerts.webhook: "),
            ('alerts.kinds=["opened"]', '"opened" is not one of "breaker-open"'),
            ('alerts.give_up="1m"', "alerts.give_up must be longer than repeat"),
            ('alerts.timeout="13s"', "alerts.timeout must not be longer than 12s"),
        )
        for setting, words in rows:
            with self.subTest(setting):
                told = self.check(setting)
                self.assertEqual(told.returncode, 2, told)
                self.assertIn(words, told.stdout)
                self.assertNotIn("SECRET", told.stdout + told.stderr)
        self.assertEqual(self.check('alerts.webhook="http://127.0.0.1:8065/hooks/x"').returncode, 0)

    def test_an_authority_that_cannot_be_read_ends_the_start(self):
        with self.assertRaisesRegex(RuntimeError, "alerts.extra_ca /nowhere.pem cannot be used"):
            self.start('alerts.webhook="https://a.test/"', 'alerts.extra_ca="/nowhere.pem"')
