"""status, explain, open, close and events: on a store without a daemon, with one, and with one that hangs."""

import base64
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import time

from harness.case import ProxyCase
from harness.message import read_response, request_bytes, response_bytes
from harness.origin import OK, in_turn, replying
from harness.proxy import binary, free_port
from harness.stream import connect

ENFORCE = 'hosts = ["*"]\n[hold]\nmax_wait = "0s"\n[retry]\nmax = 0\n'
CLOCK = r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d UTC"


class CommandCase(ProxyCase):
    """Commands in a directory of their own; no proxy unless a test starts one."""

    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        super().setUp()
        self.home = tempfile.mkdtemp(prefix="sluice-cli-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.state = os.path.join(self.home, "state")
        self.policies = os.path.join(self.home, "policies")
        os.makedirs(self.policies)

    def use(self, proxy):
        self.state = os.path.join(proxy.directory, "state")
        self.policies = os.path.join(proxy.directory, "policies")

    def command(self, name, *arguments):
        return [binary(), name, *arguments, "--state-dir", self.state, "--policies", self.policies]

    def environment(self, **more):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith("SLUICE") and name not in ("NO_COLOR", "COLUMNS", "SUDO_USER")}
        return dict(clean, HOME=self.home, XDG_CONFIG_HOME=self.home, TERM="xterm", USER="ada", **more)

    def sluice(self, name, *arguments, code=0):
        """Standard output and error of a command that must end with this code."""
        done = subprocess.run(self.command(name, *arguments), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60, env=self.environment())
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def out(self, name, *arguments, code=0):
        out, problems = self.sluice(name, *arguments, code=code)
        self.assertEqual(problems, "")
        return out

    def policy(self, name, text):
        with open(os.path.join(self.policies, name + ".toml"), "w") as file:
            file.write(text)

    def on_terminal(self, columns, name, *arguments, **environment):
        """What a command writes to a terminal of that width."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(self.command(name, *arguments), stdin=subprocess.DEVNULL, stdout=slave,
                                   env=self.environment(**environment))
        os.close(slave)
        out = b""
        try:
            while chunk := os.read(master, 65536):
                out += chunk
        except OSError:
            pass  # EIO: the other end is closed
        os.close(master)
        self.assertEqual(process.wait(30), 0)
        return out.decode().replace("\r\n", "\n")


class WithoutDaemon(CommandCase):
    def test_no_state_directory(self):
        for name, *arguments in (["status"], ["events"], ["explain", "http://a.test/"], ["close", "a.test"],
                                 ["status", "--watch"], ["events", "--follow"]):
            with self.subTest(name):
                out, said = self.sluice(name, *arguments, code=3)
                self.assertEqual(out, "")
                self.assertEqual(said, "sluice: there is no state directory %s: `sluice run` makes it, "
                                       "--state-dir names another one\n" % self.state)
                self.assertFalse(os.path.exists(self.state))

    def test_an_empty_store(self):
        os.makedirs(self.state)
        self.assertEqual(self.out("status"),
                         "nothing is known about any host yet: start `sluice run`, and point a client at it with "
                         "HTTP_PROXY=http://127.0.0.1:7878\n")
        self.assertEqual(self.out("status", "a.test", code=1),
                         "nothing is known about a.test: it lets requests through\n")
        self.assertEqual(self.out("events"), "nothing has happened\n")
        self.assertEqual(self.out("events", "--json"), "")
        self.assertEqual(json.loads(self.out("status", "--json"))["keys"], [])
        self.assertEqual(self.sluice("close", "a.test", code=1)[1], "sluice: nothing is known about a.test\n")
        self.assertEqual(os.listdir(self.state), [], "who only looks makes no files")

    def test_open_makes_the_state_directory(self):
        out = self.out("open", "API.example.com.", "--for", "10m", "--reason", "ask Ada")
        self.assertRegex(out, r"^api\.example\.com is cooling down after an operator shut it \(ask Ada\): 10 min left, "
                              "until %s\n$" % CLOCK)
        lines = self.out("status").splitlines()
        self.assertEqual(lines[0].split(), ["KEY", "STATE", "LEFT", "REASON", "LEVEL", "DELAY", "IN", "FLIGHT", "HELD",
                                            "ANSWERED", "FAILED", "REFUSED", "TRIPS"])
        self.assertRegex(lines[1], r"^api\.example\.com  open   (10 min|9 min \d+ s)  an operator shut it \(ask Ada\)"
                                   r"      0      -          -     -         0       0        0      1$")
        self.assertEqual(len(lines), 2)

    def test_close_clears_it(self):
        self.out("open", "a.test", "--for", "2h")
        self.assertEqual(self.out("close", "a.test"), "a.test lets requests through\n")
        row = self.out("status", "a.test").splitlines()[1].split()
        self.assertEqual(row[:4], ["a.test", "closed", "-", "-"])

    def test_an_open_that_ended_waits_for_a_probe(self):
        self.out("open", "a.test", "--for", "1ms")
        time.sleep(0.01)
        self.assertEqual(self.out("status", "a.test").splitlines()[1].split()[:3], ["a.test", "half-open", "-"])

    def test_a_bare_host_is_every_key_of_it(self):
        for key in ("a.test", "a.test:8080", "a.test#1f2e3d4c5b6a7988", "a.tests", "b.test"):
            self.out("open", key, "--for", "1h")
        shown = [line.split()[0] for line in self.out("status", "a.test").splitlines()[1:4]]
        self.assertEqual(sorted(shown), ["a.test", "a.test#1f2e3d4c5b6a7988", "a.test:8080"])
        self.assertEqual(len(self.out("close", "a.test").splitlines()), 3)
        states = {key["key"]: key["state"] for key in json.loads(self.out("status", "--json"))["keys"]}
        self.assertEqual(states, {"a.test": "closed", "a.test:8080": "closed", "a.test#1f2e3d4c5b6a7988": "closed",
                                  "a.tests": "open", "b.test": "open"})
        self.assertEqual(len(self.out("open", "a.test", "--for", "1h").splitlines()), 3)

    def test_shut_ones_come_first(self):
        for key in ("a.test", "b.test", "c.test"):
            self.out("open", key, "--for", "1h")
        self.out("close", "a.test")
        self.assertEqual([line.split()[0] for line in self.out("status").splitlines()[1:]],
                         ["b.test", "c.test", "a.test"])

    def test_json(self):
        self.out("open", "a.test", "--for", "1h", "--reason", "x")
        status = json.loads(self.out("status", "--json"))
        key, = status["keys"]
        self.assertRegex(status["at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertRegex(key["until"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertTrue(3500 < key["left_s"] <= 3600, key)
        for name, value in {"key": "a.test", "state": "open", "cause": "operator", "level": 0, "delay_s": 0.0,
                            "reason": "an operator shut it (x)", "closed_at": None, "status": 0}.items():
            self.assertEqual(key[name], value, name)
        self.assertEqual(key["counts"]["trips"], 1)

    def test_events(self):
        self.out("open", "a.test", "--for", "10m", "--reason", "x")
        self.out("open", "b.test", "--for", "2h")
        self.out("close", "a.test")
        lines = self.out("events").splitlines()
        for line, words in zip(lines, ("a.test was shut for 10 min by ada: x", "b.test was shut for 2 h by ada",
                                       "a.test was cleared by ada"), strict=True):
            self.assertRegex(line, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  operator    %s$" % re.escape(words))
        self.assertEqual(len(self.out("events", "--key", "a.test").splitlines()), 2)
        self.assertEqual(len(self.out("events", "--since", "1h").splitlines()), 3)
        time.sleep(1.1)
        self.assertEqual(self.out("events", "--since", "1ms"), "nothing has happened\n")
        events = [json.loads(line) for line in self.out("events", "--json").splitlines()]
        self.assertEqual([event["sequence"] for event in events], [1, 2, 3])
        self.assertEqual((events[1]["kind"], events[1]["key"]), ("operator", "b.test"))

    def test_follow(self):
        self.out("open", "a.test", "--for", "1h")
        process = subprocess.Popen(self.command("events", "--follow", "--json"), stdout=subprocess.PIPE, text=True,
                                   env=self.environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(json.loads(process.stdout.readline())["sequence"], 1)
        self.out("open", "b.test", "--for", "1h")
        self.assertEqual(json.loads(process.stdout.readline())["key"], "b.test")
        self.out("close", "b.test")
        self.assertEqual(json.loads(process.stdout.readline())["text"], "b.test was cleared by ada")

    def test_watch(self):
        os.makedirs(self.state)
        process = subprocess.Popen(self.command("status", "--watch", "--json"), stdout=subprocess.PIPE, text=True,
                                   env=self.environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(json.loads(process.stdout.readline())["keys"], [])
        self.out("open", "a.test", "--for", "1h")
        for line in process.stdout:
            if json.loads(line)["keys"]:
                break
        self.assertEqual(json.loads(line)["keys"][0]["key"], "a.test")

    def test_wrong_words(self):
        rows = [(["open", "a.test", "--for", "ten"], '--for: "ten" is not a duration: write a number and ms, s, m, h '
                                                    'or d, such as "90s"'),
                (["open", "a.test", "--for", "0s"], "--for must be longer than nothing"),
                (["open", "*.test", "--for", "1h"], '"*.test" is no key: write a host, host:port or policy/NAME, as '
                                                    '`sluice status` shows them'),
                (["events", "--since", "1"], '--since: "1" is not a duration: write a number and ms, s, m, h or d, '
                                             'such as "90s"'),
                (["explain", "ftp://a.test/"], '"ftp://a.test/": the target is no http URL')]
        for arguments, words in rows:
            with self.subTest(arguments):
                self.assertEqual(self.sluice(*arguments, code=2)[1], "sluice: %s\n" % words)
        for arguments in (["open", "a.test"], ["open"], ["close"], ["explain"], ["status", "--nonsense"]):
            with self.subTest(arguments):
                self.sluice(*arguments, code=2)

    def test_a_bad_configuration(self):
        with open(os.path.join(self.home, "bad.toml"), "w") as file:
            file.write("[proxy]\nworkerz = 2\n")
        out, said = self.sluice("status", "--config", os.path.join(self.home, "bad.toml"), code=2)
        self.assertEqual(out, "")
        self.assertIn("bad.toml:2:1: ", said)

    def test_refused_policies_are_named(self):
        os.makedirs(self.state)
        self.policy("bad", 'hosts = ["a.test"]\nscop = "host"\n')
        self.assertRegex(self.out("status"), r"\n\nrefused policy %s/bad\.toml:2:1: .*scop" % re.escape(self.policies))
        self.assertEqual(json.loads(self.out("status", "--json"))["refused_policies"][0]["file"],
                         self.policies + "/bad.toml")

    def test_a_damaged_store_is_set_aside_and_said(self):
        os.makedirs(self.state)
        with open(self.state + "/data.mdb", "w") as file:
            file.write("this is no store")
        _, said = self.sluice("status")
        aside = re.fullmatch(r"sluice: the store %s/data\.mdb was damaged: it was set aside as (%s/data\.mdb\.damaged-\S+)"
                             r" and what it remembered is not in force\n" % ((re.escape(self.state),) * 2), said)
        self.assertTrue(aside, said)
        with open(aside[1]) as file:
            self.assertEqual(file.read(), "this is no store")
        self.assertIn("  store       the store ", self.out("events"))

    def test_a_terminal(self):
        self.out("open", "api.with.a.rather.long.name.example.com", "--for", "1h",
                 "--reason", "a reason that goes on and on \x1b[2J and on")
        wide = self.on_terminal(200, "status")
        self.assertIn("\x1b[31mopen\x1b[0m", wide)
        self.assertIn("on ?[2J and on", wide)
        for columns in (40, 60, 80, 100):
            with self.subTest(columns):
                plain = re.sub(r"\x1b\[\d*m", "", self.on_terminal(columns, "status"))
                lines = plain.splitlines()
                self.assertLessEqual(max(len(line) for line in lines), columns, plain)
                self.assertIn("…", lines[1])
                self.assertIn("open", lines[1])
        self.assertNotIn("\x1b", self.on_terminal(80, "status", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.out("status"))

    def test_the_emergency_stop_is_shown(self):
        self.out("open", "a.test", "--for", "1h")
        _, warning = self.sluice("stop", "--reason", "fire")
        self.assertIn("no proxy is running there now", warning)
        self.assertTrue(self.out("status").startswith(
            "emergency stop: nothing is forwarded until `sluice resume` (fire)\n\nKEY "))
        self.assertTrue(self.out("explain", "http://b.test/", code=1).endswith(
            "\nnow      it would be refused: 503 emergency-stop, nothing is forwarded until `sluice resume` (fire)\n"))
        self.assertTrue(json.loads(self.out("status", "--json"))["stop"])
        self.out("resume")
        self.assertTrue(self.out("status").startswith("KEY "))

    def test_help_has_examples(self):
        for name in ("status", "explain", "open", "close", "events"):
            done = subprocess.run([binary(), name, "--help"], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 0)
            self.assertIn("Examples:\n  sluice %s" % name, done.stdout)


class Explain(CommandCase):
    def setUp(self):
        super().setUp()
        os.makedirs(self.state)

    def test_no_policy(self):
        self.assertEqual(self.out("explain", "http://a.test/x", "--method", "POST"),
                         "request  POST http://a.test/x\n"
                         "policy   default (no policy names this host)\n"
                         "role     none\n"
                         "key      a.test\n"
                         "state    a.test lets requests through\n"
                         "now      it would be forwarded\n")

    def test_policy_role_and_refusal(self):
        self.policy("example", 'hosts = ["*.example.com"]\n[roles.download]\npaths = ["*.pdf"]\nhold.max_wait = "1s"\n')
        self.out("open", "api.example.com:8080", "--for", "10m", "--reason", "x")
        out = self.out("explain", "http://api.example.com:8080/a.pdf", "--job", "nightly", code=1)
        self.assertRegex(out, "^request  GET http://api.example.com:8080/a.pdf of job nightly\n"
                              r"policy   example \(%s/example.toml\)" "\n"
                              "role     download\n"
                              "key      api.example.com:8080\n"
                              r"state    api.example.com:8080 is cooling down after an operator shut it \(x\): "
                              r"(10 min|9 min \d+ s) left, until %s" "\n"
                              "retry    refused by the origin, it would be sent again up to 2 times\n"
                              r"now      it would be refused: 503 breaker-open, Retry-After: (600|59\d)" "\n$"
                         % (re.escape(self.policies), CLOCK))
        answer = json.loads(self.out("explain", "http://api.example.com:8080/a.pdf", "--json", code=1))
        self.assertEqual((answer["policy"], answer["role"], answer["decision"], answer["key"]["key"]),
                         ("example", "download", "refuse", "api.example.com:8080"))

    def test_hold_probe_and_observe(self):
        self.policy("watch", 'hosts = ["watched.test"]\nmode = "observe"\n')
        self.out("open", "a.test", "--for", "10s")
        self.assertRegex(self.out("explain", "http://a.test/"),
                         r"\nnow      it would be held for up to (\d\.?\d?|10) s, then asked about again\n$")
        self.out("open", "a.test", "--for", "1ms")
        time.sleep(0.01)
        self.assertTrue(self.out("explain", "a.test").endswith(
            "\nnow      it would be forwarded as the probe that decides whether others may follow\n"))
        self.assertTrue(self.out("explain", "a.test").endswith("others may follow\n"), "asking took no probe")
        self.out("open", "watched.test", "--for", "1h")
        self.assertRegex(self.out("explain", "http://watched.test/"),
                         r"now      it would be forwarded, because the policy only observes; enforced, "
                         r"it would be refused: 503 breaker-open, Retry-After: \d+\n$")

    def test_what_access_says_comes_first(self):
        self.assertTrue(self.out("explain", "https://a.test:22/", code=1).endswith(
            "\nnow      it would be refused: 403 port-denied, CONNECT to port 22 is not in proxy.connect_ports\n"))
        denied = self.out("explain", "http://x.corp.test/", "--set", 'access.deny=["*.corp.test"]', code=1)
        self.assertIn("\nnow      it would be refused: 403 destination-denied, ", denied)

    def test_https_is_a_tunnel_unless_it_is_intercepted(self):
        self.policy("seen", 'hosts = ["seen.test"]\nintercept = true\n[roles.slow]\npaths = ["/slow"]\n')
        self.policy("unseen", 'hosts = ["unseen.test"]\n[roles.slow]\npaths = ["/slow"]\n')
        seen = json.loads(self.out("explain", "https://seen.test/slow", "--json"))
        self.assertEqual((seen["tunnel"], seen["role"], seen["key"]["key"]), (False, "slow", "seen.test"))
        self.policy("closed", 'hosts = ["closed.test"]\nintercept = false\n')
        self.assertTrue(json.loads(self.out("explain", "https://closed.test/", "--json"))["tunnel"])
        unseen = json.loads(self.out("explain", "https://unseen.test:8443/slow", "--json"))
        self.assertEqual((unseen["tunnel"], unseen["role"], unseen["key"]["key"]), (True, None, "unseen.test:8443"))
        self.assertIn("\ntunnel   HTTPS is not looked into: the rules apply to CONNECT, path and answers are not seen\n",
                      self.out("explain", "https://unseen.test/slow"))

    def test_scopes(self):
        self.policy("shared", 'hosts = ["shared.test"]\nscope = "policy"\n')
        self.policy("each", 'hosts = ["each.test"]\nscope = "credential"\n')
        self.assertIn("\nkey      policy/shared\n", self.out("explain", "http://shared.test/"))
        self.assertEqual(self.sluice("open", "shared.test", "--for", "1h", code=2)[1],
                         "sluice: shared.test has no state of its own, it is under one with all hosts of its policy: "
                         "sluice open policy/shared --for 1h\n")
        self.out("open", "policy/shared", "--for", "1h")
        self.assertIn("it would be refused", self.out("explain", "http://shared.test/", code=1))
        self.out("open", "each.test#1f2e3d4c5b6a7988", "--for", "1h")
        out = self.out("explain", "http://each.test/")
        self.assertIn("\nstate    each.test lets requests through\n"
                      "         each.test#1f2e3d4c5b6a7988 is cooling down ", out)


class WithDaemon(CommandCase):
    """Each test starts its own proxy."""

    def daemon(self):
        proxy = self.start(policy=ENFORCE)
        self.use(proxy)
        return proxy

    def test_open_and_close_reach_a_running_daemon_at_its_next_decision(self):
        proxy, origin = self.daemon(), self.origin()
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        key = origin.authority
        for _ in range(3):
            self.out("open", key, "--for", "10m", "--reason", "maintenance")
            refusal = self.fetch(origin.url(), proxy=proxy)
            problem = self.assert_problem(refusal, 503, "breaker-open")
            self.assertIn("an operator shut it (maintenance)", problem["detail"])
            self.out("close", key)
            self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)

    def test_neither_is_undone_by_what_the_daemon_had_still_to_write(self):
        """A refusal is counted, and the count written every few seconds."""
        refusal = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 600\r\nContent-Length: 9\r\n\r\nslow down"
        proxy, origin = self.daemon(), self.origin(in_turn(refusal, OK))
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 429)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 503)
        self.out("close", origin.authority)

        def written():
            counts = json.loads(self.out("status", "--json"))["keys"][0]["counts"]
            return counts["refused"] == 1

        self.assertTrue(origin.wait(written, 15))
        self.assertEqual(self.out("status", origin.authority).splitlines()[1].split()[1], "closed")
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)

    def test_limits_that_are_used_up_are_explained(self):
        proxy, origin = self.start(policy=ENFORCE + '[pace]\nadapt = "off"\n[limits]\nrequests = [{ count = 1, per = "1h" }]\n'), self.origin()
        self.use(proxy)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        refused = self.fetch(origin.url(), proxy=proxy)
        self.assert_problem(refused, 429, "limit")
        told = self.out("explain", origin.url(), code=1)
        self.assertRegex(told, r"now      it would be refused: 429 limit, .* Retry-After: 3[56]\d\d\n$")

    def test_who_is_on_the_way_is_explained(self):
        release = threading.Event()
        self.addCleanup(release.set)

        def slow(visit):
            visit.read_request()
            release.wait(60)

        policy = ENFORCE.replace('"0s"', '"30s"\nmax_queue = 1') + '[pace]\nmax_concurrency = 1\nmin_delay = "20ms"\n'
        proxy = self.start(policy=policy, admin="127.0.0.1:%d" % free_port())
        self.use(proxy)
        origin = self.origin(slow)
        self.assertTrue(self.out("explain", origin.url()).endswith(
            "it would be forwarded, at least 20 ms after the one before it\n"))
        for sentence, code in (("it would be held for up to 30 s, because pace.max_concurrency = 1 is used up (0 waiting)\n", 0),
                               ("it would be refused: 503 queue-full, 1 wait already\n", 1)):
            self.client(proxy).send("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % origin.url())
            deadline = time.monotonic() + 10
            while True:
                done = subprocess.run(self.command("explain", origin.url()), capture_output=True, text=True, timeout=20,
                                      env=self.environment())
                if done.stdout.endswith(sentence) or time.monotonic() > deadline:
                    break
            self.assertEqual((done.returncode, done.stdout.splitlines(True)[-1][9:]), (code, sentence))

    def test_the_caps_of_a_job_are_explained(self):
        proxy, origin = self.start("jobs.max_requests=2", policy=ENFORCE), self.origin()
        self.use(proxy)
        explain = lambda *job, code=0: self.out("explain", origin.url(), "--set", "jobs.max_requests=2", *job, code=code)
        fields = ["Proxy-Authorization: Basic " + base64.b64encode(b"nightly:").decode()]
        self.assertIn("it would be forwarded", explain("--job", "nightly"))
        for status in (200, 200, 429):
            self.assertEqual(self.fetch(origin.url(), fields=fields, proxy=proxy).status, status)
        self.assertIsNone(proxy.stop())
        told = explain("--job", "nightly", code=1)
        self.assertRegex(told, r"now      it would be refused: 429 job-limit, job nightly has sent the 2 ")
        self.assertIn("it would be forwarded", explain("--job", "other"))
        self.assertIn("it would be forwarded", explain())

    def test_a_budget_that_is_used_up_is_explained_and_shown(self):
        policy = ENFORCE + "[cost]\nper_request = 0.4\n"
        proxy, origin = self.start("budget.daily=1.0", policy=policy), self.origin()
        self.use(proxy)
        budget = ["--set", "budget.daily=1.0"]
        self.assertIn("it would be forwarded", self.out("explain", origin.url(), *budget))
        for status in (200, 200, 429):
            self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, status)
        self.assertIsNone(proxy.stop())
        told = self.out("explain", origin.url(), *budget, code=1)
        self.assertRegex(told, r"now      it would be refused: 429 budget, the daily budget of 1.00 USD is used up .*Retry-After: \d+\n$")
        self.assertIn("it would be forwarded", self.out("explain", origin.url()))
        self.assertIn("\nbudget daily 0.80 of 1.00 USD (stopped)\n", self.out("status", *budget))
        self.assertNotIn("budget", self.out("status"))

    def test_a_pause_of_the_pace_is_explained(self):
        proxy = self.start(policy=ENFORCE)
        self.use(proxy)
        origin = self.origin(replying(response_bytes(b"ok", "200 OK", "X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 0",
                                                     "X-RateLimit-Reset: 300")))
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        self.assert_problem(self.fetch(origin.url(), proxy=proxy), 503, "hold-timeout")
        told = self.out("explain", origin.url(), code=1)
        self.assertRegex(told, r"now      it would be refused: 503 hold-timeout, .* Retry-After: (300|2\d\d)\n$")
        proxy.write("policies/engine.toml", ENFORCE.replace('"0s"', '"10m"'))
        self.assertRegex(self.out("explain", origin.url()), r"it would be held for up to (5 min|4 min \d+ s), by the pace")

    def test_what_is_on_its_way_is_shown(self):
        ended = threading.Event()
        self.addCleanup(ended.set)
        proxy = self.start(policy=ENFORCE.replace('"0s"', '"60s"') + "[pace]\nmax_concurrency = 1\n",
                           admin="127.0.0.1:%d" % free_port())
        self.use(proxy)

        def answer_once(visit):
            while visit.read_request():
                if len(origin.requests) > 1:
                    ended.wait(60)
                visit.send(OK)

        origin = self.origin(answer_once)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        for _ in range(3):
            self.client(proxy).send("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % origin.url())
        shown = lambda: [(key["in_flight"], key["held"]) for key in json.loads(self.out("status", "--json"))["keys"]]
        self.assertTrue(origin.wait(lambda: shown() == [(1, 2)], 20), shown())
        self.assertEqual(self.out("status").splitlines()[1].split()[6:8], ["1", "2"])
        os.kill(proxy.pid, signal.SIGSTOP)
        try:
            self.assertEqual(shown(), [(None, None)], "nobody answers, and nobody waits for long")
            self.assertEqual(self.out("status").splitlines()[1].split()[6:8], ["-", "-"])
        finally:
            os.kill(proxy.pid, signal.SIGCONT)

    def test_an_open_is_not_lost_under_load(self):
        proxy, origin = self.daemon(), self.origin()
        key = origin.authority
        ended = threading.Event()

        def load():
            client = self.client(proxy)
            while not ended.is_set():
                self.fetch(origin.url(), client=client)

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(10):
                self.out("open", key, "--for", "10m")
                self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 503)
                self.out("close", key)
                self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
            self.out("open", key, "--for", "10m")
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        proxy.stop()
        self.assertEqual(self.out("status", key).splitlines()[1].split()[1], "open", "after the daemon's last write")

    def test_a_trip_is_seen_while_the_daemon_runs_and_after_it_was_killed(self):
        refusal = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 300\r\nContent-Length: 9\r\n\r\nslow down"
        proxy, origin = self.daemon(), self.origin(replying(refusal))
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 429)
        key = origin.authority

        def check():
            out = self.out("status", key)
            self.assertRegex(out.splitlines()[1], r"^%s +open +(5 min|4 min \d+ s) +429 Too Many Requests +1 "
                             % re.escape(key))
            self.assertRegex(out, r"\n%s is cooling down after 429 Too Many Requests: (5 min|4 min \d+ s) left, until "
                             % re.escape(key))
            self.out("explain", origin.url(), code=1)
            self.assertIn("is cooling down after 429 Too Many Requests", self.out("events", "--key", key))

        check()
        proxy.kill()
        check()

    def test_a_daemon_that_hangs(self):
        proxy, origin = self.daemon(), self.origin()
        self.fetch(origin.url(), proxy=proxy)
        key = origin.authority
        os.kill(proxy.pid, signal.SIGSTOP)
        try:
            self.out("open", key, "--for", "10m")
            self.assertEqual(self.out("status", key).splitlines()[1].split()[1], "open")
            self.assertIn("was shut for 10 min", self.out("events", "--key", key))
            self.out("explain", origin.url(), code=1)
            self.out("close", key)
            self.out("open", key, "--for", "10m")
        finally:
            os.kill(proxy.pid, signal.SIGCONT)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 503)

    def test_a_daemon_that_hangs_in_the_middle_of_a_write(self):
        """It keeps everybody else from writing: each command ends all the same, and what has no need to write works."""
        admin = ("127.0.0.1", free_port())
        proxy = self.start(policy=ENFORCE, admin="%s:%d" % admin)
        self.use(proxy)
        self.out("open", "x.test", "--for", "10m")
        with open(os.path.join(self.state, "admin.token")) as file:
            order = request_bytes("POST", "/api/keys/y.test/open", ["Host: %s:%d" % admin, "Content-Length: 0",
                                                                    "Authorization: Bearer " + file.read().strip()])
        ended = threading.Event()

        def write_all_the_time():
            stream = connect(admin, timeout=120)
            while not ended.is_set():
                stream.send(order)
                read_response(stream)
            stream.close()

        writers = [threading.Thread(target=write_all_the_time) for _ in range(3)]
        for writer in writers:
            writer.start()
        try:
            self.assertTrue(self.origin().wait(lambda: "y.test" in self.out("status"), 20))
            os.kill(proxy.pid, signal.SIGSTOP)
            self.assertIn("x.test", self.out("status"))
            self.out("explain", "http://x.test/", code=1)
            done = subprocess.run(self.command("close", "x.test"), capture_output=True, text=True, timeout=60,
                                  env=self.environment())
            self.assertIn(done.returncode, (0, 3), done.stderr)
            if done.returncode == 3:
                self.assertIn("another process is in the middle of a write", done.stderr)
            for name in ("stop", "resume"):
                self.sluice(name)
        finally:
            os.kill(proxy.pid, signal.SIGCONT)
            ended.set()
            for writer in writers:
                writer.join()
