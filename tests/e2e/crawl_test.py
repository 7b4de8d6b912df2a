"""Policies with crawl_delay: robots.txt is read once, by the same rules as everything, and its pace is kept."""

import concurrent.futures
import tempfile

from harness.message import response_bytes
from harness.origin import OK, in_turn
from harness.tls import make_certificate, server_context
from startup_test import OwnProxies

POLICY = """
hosts = ["*"]
[pace]
adapt = "off"
crawl_delay = true
min_delay = "%s"
[hold]
max_wait = "10s"
"""
ROBOTS = b"User-agent: slowbot\nCrawl-delay: 0.6\n\nUser-agent: *\nCrawl-delay: 0.3\nDisallow: /private\n"


def site(robots, page=OK):
    """A script: `robots` for /robots.txt, `page` for everything else."""

    def script(visit):
        while request := visit.read_request():
            answer = robots if request.target == "/robots.txt" else page
            visit.send(answer(request) if callable(answer) else answer)

    return script


def robots_answer(body=ROBOTS, status="200 OK", *fields):
    return response_bytes(body, status, "Content-Type: text/plain", *fields)


class CrawlDelay(OwnProxies):
    def crawl(self, robots, count=3, min_delay="0s", fields=(), workers=2):
        """`count` pages at once: (statuses, the origin)."""
        proxy = self.start("proxy.workers=%d" % workers, policy=POLICY % min_delay)
        origin = self.origin(site(robots))
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            replies = pool.map(
                lambda i: self.fetch(origin.url("/page%d" % i), fields=fields, proxy=proxy), range(count))
            return [reply.status for reply in replies], origin

    def gaps(self, origin):
        pages = [request.at for request in origin.requests if request.target != "/robots.txt"]
        return [after - before for before, after in zip(pages, pages[1:])]

    def asked_for_robots(self, origin):
        return [request for request in origin.requests if request.target == "/robots.txt"]

    def test_once_and_first_and_its_pace_is_kept(self):
        statuses, origin = self.crawl(robots_answer(), count=4)
        self.assertEqual(statuses, [200] * 4)
        self.assertEqual(origin.requests[0].target, "/robots.txt")
        robots = self.asked_for_robots(origin)
        self.assertEqual(len(robots), 1, "once, whatever the number of clients and workers")
        self.assertRegex(robots[0].get("User-Agent"), r"^sluice/\d")
        self.assertTrue(robots[0].has("Via"), "it took the way of every request")
        for gap in self.gaps(origin):
            self.assertGreater(gap, 0.2)

    def test_a_client_with_a_group_of_its_own(self):
        _, origin = self.crawl(robots_answer(), count=2, fields=["User-Agent: Slowbot/2.0 (+https://bot.test)"])
        self.assertGreater(self.gaps(origin)[0], 0.45)

    def test_the_larger_of_the_two(self):
        _, origin = self.crawl(robots_answer(), count=2, min_delay="700ms")
        self.assertGreater(self.gaps(origin)[0], 0.55)

    def test_where_there_is_none_the_policy_counts(self):
        for robots in (robots_answer(b"no such page", "404 Not Found"), robots_answer(b"down", "503 Service Unavailable"),
                       robots_answer(b"<!doctype html><title>hello</title>"), robots_answer(b"\xff\x00" * 400000)):
            with self.subTest(robots[:20]):
                statuses, origin = self.crawl(robots, count=2)
                self.assertEqual(statuses, [200, 200])
                self.assertLess(self.gaps(origin)[0], 0.2)

    def test_redirects_are_followed_within_the_host(self):
        def robots_by_way_of(target):
            return lambda request: robots_answer(b"", "301 Moved Permanently", "Location: " + target)

        proxy = self.start(policy=POLICY % "0s")

        def script(visit):
            while request := visit.read_request():
                if request.target == "/robots.txt":
                    visit.send(robots_by_way_of("/elsewhere.txt")(request))
                elif request.target == "/elsewhere.txt":
                    visit.send(robots_answer())
                else:
                    visit.send(OK)

        origin = self.origin(script)
        for _ in range(2):
            self.assertEqual(self.fetch(origin.url("/page"), proxy=proxy).status, 200)
        self.assertEqual([request.target for request in origin.requests[:2]], ["/robots.txt", "/elsewhere.txt"])
        self.assertGreater(origin.requests[-1].at - origin.requests[-2].at, 0.2)

    def test_endless_redirects_end(self):
        robots = robots_answer(b"", "302 Found", "Location: /robots.txt")
        statuses, origin = self.crawl(robots, count=1)
        self.assertEqual(statuses, [200])
        self.assertEqual(len(self.asked_for_robots(origin)), 6)

    def test_a_client_may_read_it_itself(self):
        proxy = self.start(policy=POLICY % "0s")
        origin = self.origin(site(robots_answer()))
        self.assertEqual(self.fetch(origin.url("/robots.txt"), proxy=proxy).body, ROBOTS)
        self.assertEqual(len(origin.requests), 1, "nothing is asked before it")

    def test_a_robots_txt_that_does_not_come_holds_nobody_for_ever(self):
        proxy = self.start('proxy.timeouts.first_byte="1s"', policy=POLICY % "0s" + "[retry]\nmax = 0\n")
        origin = self.silent_about_robots()
        self.assertEqual(self.fetch(origin.url("/page"), proxy=proxy).status, 200)
        self.assertEqual(len(self.asked_for_robots(origin)), 1)

    def silent_about_robots(self):
        def silent(visit):
            while request := visit.read_request():
                if request.target != "/robots.txt":
                    visit.send(OK)

        return self.origin(silent)

    def test_it_is_waited_for_no_longer_than_a_request_may(self):
        proxy = self.start(policy=(POLICY % "0s").replace('max_wait = "10s"', 'max_wait = "2s"'))
        origin = self.silent_about_robots()
        self.assertEqual(self.fetch(origin.url("/page"), proxy=proxy).status, 200)  # the client waits 10 s

    def test_a_policy_that_observes_does_not_wait_for_it(self):
        proxy = self.start(policy='mode = "observe"\n' + POLICY % "0s")
        origin = self.silent_about_robots()
        self.assertEqual(self.fetch(origin.url("/page"), proxy=proxy).status, 200)
        self.assertEqual([request.target for request in origin.requests], ["/page"])

    def test_a_breaker_holds_it_back_as_well(self):
        proxy = self.start(policy=(POLICY % "0s").replace('max_wait = "10s"', 'max_wait = "0s"') + "[retry]\nmax = 0\n")
        origin = self.origin(in_turn(response_bytes(b"slow down", "429 Too Many Requests", "Retry-After: 60"), OK))
        self.assert_problem(self.fetch(origin.url("/page"), proxy=proxy), 503, "breaker-open")
        self.assertEqual([request.target for request in origin.requests], ["/robots.txt"])

    def test_behind_upgrade_it_is_read_over_tls(self):
        certificate = make_certificate(self.enterContext(tempfile.TemporaryDirectory(prefix="sluice-crawl-")))
        origin = self.origin(site(robots_answer()), tls=server_context(certificate))
        proxy = self.start('tls.extra_ca="%s"' % certificate, policy="upgrade = true\n" + POLICY % "0s")
        url = "http://localhost:%d/page" % origin.port
        for _ in range(2):
            self.assertEqual(self.fetch(url, proxy=proxy).status, 200)
        self.assertEqual(origin.requests[0].target, "/robots.txt")
        self.assertGreater(self.gaps(origin)[0], 0.2)
