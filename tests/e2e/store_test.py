"""A store that fails under a running proxy: what still works, what is refused, and what is said about it."""

import glob
import os
import resource
import shutil
import tempfile
import time

from breaker_test import SHORT, BreakerCase, retry_after
from harness.origin import OK, in_turn, replying
from harness.proxy import binary, sanitized

# A write beyond the limit that fill_disk() sets is an error, as on a full disk, not the end of the process.
PATIENT = ["/bin/sh", "-c", 'trap "" XFSZ; exec "$0" "$@"']


class FullDisk(BreakerCase):
    def proxy_with(self, mode):
        return self.start('store.on_failure="%s"' % mode, policy=SHORT, prefix=PATIENT)

    def fill_disk(self, proxy, full=True):
        """Only the first two pages of the store can be written: not one of its records."""
        size = 8192 if full else resource.RLIM_INFINITY
        resource.prlimit(proxy.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def wait_out(self, origin, seconds):
        due = origin.requests[-1].at + seconds
        self.assertTrue(origin.wait(lambda: time.monotonic() > due, seconds + 5))

    def test_block(self):
        """Shutting works in this process; a probe, which must be written down first, waits for the store."""
        proxy = self.proxy_with("block")
        origin = self.origin(in_turn(retry_after(1), OK))
        self.fill_disk(proxy)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 429, "what the origin said is not kept back")
        self.assert_problem(self.fetch(origin.url(), proxy=proxy), 503, "breaker-open")
        self.wait_out(origin, 1.1)
        problem = self.assert_problem(self.fetch(origin.url(), proxy=proxy), 503, "store-unavailable")
        self.assertIn("cannot be written: File too large", problem["detail"])
        self.assertEqual(problem["key"], origin.authority)
        self.assertEqual(problem["policy"], "engine")
        self.assertRegex(problem["until"], r"Z$")
        self.assertEqual(len(origin.requests), 1)
        self.assertIn("is not written down", proxy.log())
        self.fill_disk(proxy, full=False)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200, "the probe that was refused left its place")
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)

    def test_local(self):
        proxy = self.proxy_with("local")
        origin = self.origin(in_turn(retry_after(1), OK))
        self.fill_disk(proxy)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 429)
        self.assert_problem(self.fetch(origin.url(), proxy=proxy), 503, "breaker-open")
        self.wait_out(origin, 1.1)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200, "the probe goes without the store")
        self.assertIn("is not written down", proxy.log(), "loudly")

    def test_nothing_is_lost_once_there_is_room_again(self):
        proxy = self.proxy_with("block")
        origin = self.origin(replying(retry_after(50)))
        self.fill_disk(proxy)
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 429)
        self.fill_disk(proxy, full=False)
        self.assertIsNone(proxy.stop())
        again = self.start(policy=SHORT, state=proxy.state)
        self.assert_problem(self.fetch(origin.url(), proxy=again), 503, "breaker-open")
        self.assertEqual(len(origin.requests), 1)


class FailingDisk(BreakerCase):
    def proxy_on_a_disk(self):
        """(the proxy, a function that lets writes or syncs of its store fail with EIO, or none)"""
        if sanitized():
            self.skipTest("a sanitizer comes first, or not at all")
        switches = tempfile.mkdtemp(prefix="sluice-disk-")
        self.addCleanup(shutil.rmtree, switches, ignore_errors=True)
        library = os.path.join(os.path.dirname(os.path.abspath(binary())), "tests/libfailing_disk.so")
        proxy = self.start(policy=SHORT, prefix=["/usr/bin/env", "LD_PRELOAD=" + library, "FAILING_DISK=" + switches])

        def failing(what):
            for name in os.listdir(switches):
                os.remove(os.path.join(switches, name))
            if what:
                open(os.path.join(switches, what), "w").close()

        return proxy, failing

    def test_nothing_is_let_through_that_was_not_written(self):
        for what in ("write", "sync"):
            with self.subTest(what):
                proxy, failing = self.proxy_on_a_disk()
                origin = self.origin(in_turn(retry_after(1), OK, retry_after(50)))
                failing(what)
                self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 429, "what was said is not kept back")
                self.assert_problem(self.fetch(origin.url(), proxy=proxy), 503, "breaker-open")
                due = origin.requests[0].at + 1.1
                self.assertTrue(origin.wait(lambda: time.monotonic() > due, 3))
                problem = self.assert_problem(self.fetch(origin.url(), proxy=proxy), 503, "store-unavailable")
                self.assertIn("Input/output error", problem["detail"])
                self.assertEqual(len(origin.requests), 1)
                failing(None)
                self.assertTrue(origin.wait(lambda: self.fetch(origin.url(), proxy=proxy).status == 200, 10))
                self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 429)
                proxy.kill()
                again = self.start(policy=SHORT, state=proxy.state)
                self.assert_problem(self.fetch(origin.url(), proxy=again), 503, "breaker-open")
                self.assertEqual(len(origin.requests), 3)
                self.assertNotIn("damaged", again.log())


class Damaged(BreakerCase):
    def test_one_record(self):
        """It is refused by name, and the command in the refusal mends it."""
        proxy = self.enforcing()
        origin = self.origin(replying(retry_after(50)))
        self.fetch(origin.url(), proxy=proxy)
        self.assertIsNone(proxy.stop())
        for path in glob.glob(os.path.join(proxy.state, "data.mdb")):
            with open(path, "r+b") as file:
                data = file.read()
                key = b"host/" + origin.authority.encode() + b"H"
                self.assertIn(key, data)
                file.seek(0)
                file.write(data.replace(key, key[:-1] + b"?"))
        again = self.start(policy=SHORT, state=proxy.state)
        problem = self.assert_problem(self.fetch(origin.url(), proxy=again), 503, "store-unavailable")
        self.assertIn("is damaged", problem["detail"])
        self.assertEqual(problem["override"], "sluice close " + origin.authority)
        self.assertEqual(self.fetch(self.origin().url(), proxy=again).status, 200, "others are not touched")
        self.assertEqual(len(origin.requests), 1)

    # What a disk may make of a file, and whether anything of a store is left in it.
    WAYS = {"cut in half": lambda data: data[:len(data) // 2],
            "cut within its first page": lambda data: data[:1000],
            "empty of its heads": lambda data: bytes(8192) + data[8192:],
            "full of something else": lambda data: b"\xa5" * len(data)}

    def test_the_whole_file(self):
        """The proxy starts without it, says so, and leaves it for whoever wants to look."""
        for way, damage in self.WAYS.items():
            with self.subTest(way):
                proxy = self.enforcing()
                origin = self.origin(replying(retry_after(50)))
                self.fetch(origin.url(), proxy=proxy)
                self.assertIsNone(proxy.stop())
                path = os.path.join(proxy.state, "data.mdb")
                with open(path, "r+b") as file:
                    damaged = damage(file.read())
                    file.seek(0)
                    file.truncate()
                    file.write(damaged)
                again = self.start(policy=SHORT, state=proxy.state)
                self.assertTrue(origin.wait(lambda: "was damaged: it was set aside as" in again.log()), again.log())
                [aside] = glob.glob(path + ".damaged-*")
                with open(aside, "rb") as file:
                    self.assertEqual(file.read(), damaged, "it is left as it was found")
                self.assertEqual(self.fetch(origin.url(), proxy=again).status, 429, "what was in it is not known any more")
                self.assert_problem(self.fetch(origin.url(), proxy=again), 503, "breaker-open")
                again.kill()
                third = self.start(policy=SHORT, state=proxy.state)
                self.assert_problem(self.fetch(origin.url(), proxy=third), 503, "breaker-open")
                self.assertEqual(len(origin.requests), 2, "the new one remembers")
                self.assertNotIn("damaged", third.log())
