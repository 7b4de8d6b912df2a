"""Limits of a policy and caps of a job: counted exactly, told truthfully."""

import base64
import concurrent.futures

from breaker_test import SHORT, BreakerCase

LIMITED = SHORT + '[limits]\nrequests = [{ count = 5, per = "1h" }]\n'


def named(job):
    return ["Proxy-Authorization: Basic " + base64.b64encode(job.encode() + b":").decode()]


class Limits(BreakerCase):
    def test_no_more_than_the_count_gets_through(self):
        proxy = self.enforcing(LIMITED.replace('max_wait = "0s"', 'max_wait = "2s"'))
        origin = self.origin()
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(lambda _: self.fetch(origin.url(), proxy=proxy), range(20)))
        self.assertEqual(sorted(a.status for a in answers), [200] * 5 + [429] * 15)
        self.assertEqual(len(origin.requests), 5)
        refused = next(a for a in answers if a.status == 429)
        problem = self.assert_problem(refused, 429, "limit")
        self.assertGreater(problem["retry_after_s"], 3000)

    def test_they_survive_a_kill(self):
        policy = LIMITED.replace('max_wait = "0s"', 'max_wait = "2s"')
        proxy = self.enforcing(policy)
        origin = self.origin()
        for _ in range(3):
            self.fetch(origin.url(), proxy=proxy)
        proxy.kill()
        again = self.start(policy=policy, state=proxy.state)
        for _ in range(6):
            self.fetch(origin.url(), proxy=again)
        self.assertLessEqual(len(origin.requests), 5)


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
