"""The emergency stop on a running proxy: every worker, every tunnel and stream, within a second."""

import os
import signal
import subprocess
import threading
import time

from harness.case import ProxyCase
from harness.message import read_response, request_bytes, response_bytes
from harness.proxy import binary

SECOND = 1.0


def sluice(proxy, *arguments):
    return subprocess.run([binary(), *arguments, "--state-dir", os.path.join(proxy.directory, "state")],
                          capture_output=True, text=True, timeout=20,
                          env={"HOME": proxy.directory, "XDG_CONFIG_HOME": proxy.directory})


def endless(visit):
    visit.read_request()
    visit.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        visit.send("5\r\nhello\r\n")
        time.sleep(0.02)


class Stop(ProxyCase):
    def state(self, proxy):
        return os.path.join(proxy.directory, "state", "EMERGENCY_STOP")

    def wait_refused(self, proxy, url, since):
        while True:
            response = self.fetch(url, proxy=proxy)
            if response.status == 503:
                return response
            self.assertLess(time.monotonic() - since, SECOND, "still forwarding")

    def test_stop_and_resume(self):
        proxy, origin = self.start(), self.origin()
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        told = sluice(proxy, "stop", "--reason", "runs wild")
        self.assertEqual((told.returncode, told.stderr), (0, ""), told)
        self.assertIn("sluice resume", told.stdout)
        response = self.wait_refused(proxy, origin.url(), time.monotonic())
        problem = self.assert_problem(response, 503, "emergency-stop")
        self.assertIn("runs wild", problem["detail"])
        self.assertEqual(problem["override"], "sluice resume")
        self.assertEqual(response.get("x-should-retry"), "false")
        self.assertTrue(response.has("Retry-After"))
        seen = len(origin.requests)
        for _ in range(20):  # on whichever worker they land
            self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 503)
        self.assertEqual(len(origin.requests), seen)
        self.assertEqual(sluice(proxy, "resume").returncode, 0)
        deadline = time.monotonic() + SECOND
        while self.fetch(origin.url(), proxy=proxy).status != 200:
            self.assertLess(time.monotonic(), deadline)

    def test_resume_without_a_stop(self):
        told = sluice(self.proxy, "resume")
        self.assertEqual((told.returncode, told.stdout), (0, "nothing was stopped\n"))

    def test_connect_is_refused_as_its_answer(self):
        proxy, origin = self.start(), self.origin()
        open(self.state(proxy), "w").close()
        self.wait_refused(proxy, origin.url(), time.monotonic())
        _, answer = self.tunnel(origin.authority, proxy=proxy)
        self.assert_problem(answer, 503, "emergency-stop")

    def test_it_cuts_tunnels_streams_and_waiting_requests(self):
        proxy = self.start('proxy.workers=4', 'log.access="-"')
        asked = threading.Event()

        def silent(visit):
            visit.read_request()
            asked.set()
            visit.wait_end(20)

        echo, stream, slow = self.origin(lambda visit: visit.wait_end(20)), self.origin(endless), self.origin(silent)
        tunnels = []
        for _ in range(8):
            client, answer = self.tunnel(echo.authority, proxy=proxy)
            self.assertEqual(answer.status, 200)
            tunnels.append(client)
        streaming, waiting, resting = self.client(proxy), self.client(proxy), self.client(proxy)
        streaming.send(request_bytes("GET", stream.url(), ["Host: " + stream.authority]))
        streaming.read_until(b"hello")
        waiting.send(request_bytes("GET", slow.url(), ["Host: " + slow.authority]))
        self.assertTrue(asked.wait(5))
        ok = self.origin()
        self.assertEqual(self.fetch(ok.url(), client=resting, proxy=proxy).status, 200)

        begun = time.monotonic()
        open(self.state(proxy), "w").close()
        for client in tunnels:
            self.assertIsNotNone(client.wait_end(SECOND))
        self.assertIsNotNone(streaming.wait_end(SECOND))
        self.assertLess(time.monotonic() - begun, SECOND + 0.5)
        self.assert_problem(read_response(waiting), 503, "emergency-stop")
        # A client that rested is told at its next request.
        self.assertEqual(self.fetch(ok.url(), client=resting, proxy=proxy).status, 503)

    def test_it_refuses_what_is_held_and_cuts_a_websocket(self):
        proxy = self.start(policy='hosts = ["*"]\n[pace]\nadapt = "off"\nmax_concurrency = 1\n')
        asked = threading.Event()

        def silent(visit):
            visit.read_request()
            asked.set()
            visit.wait_end(20)

        def chat(visit):
            visit.read_head()
            visit.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            while data := visit.read_some():
                visit.send(data)

        slow, echo = self.origin(silent), self.origin(chat)
        first, socket = self.client(proxy), self.client(proxy)
        first.send(request_bytes("GET", slow.url(), ["Host: " + slow.authority]))
        self.assertTrue(asked.wait(5))
        held = [self.client(proxy) for _ in range(20)]
        for client in held:
            client.send(request_bytes("GET", slow.url(), ["Host: " + slow.authority]))
        socket.send(request_bytes("GET", echo.url(), ["Host: " + echo.authority, "Connection: Upgrade",
                                                      "Upgrade: websocket"]))
        self.assertEqual(read_response(socket).status, 101)
        socket.send(b"frame")
        self.assertEqual(socket.read_exact(5), b"frame")

        open(self.state(proxy), "w").close()
        self.assertIsNotNone(socket.wait_end(SECOND))
        for client in [first, *held]:
            self.assert_problem(read_response(client), 503, "emergency-stop")
        self.assertEqual(len(slow.requests), 1)

    def test_it_cuts_hundreds_of_tunnels_at_once(self):
        proxy = self.start('proxy.workers=2')
        echo = self.origin(lambda visit: visit.wait_end(60), backlog=1024)
        tunnels = []
        for _ in range(500):
            client, answer = self.tunnel(echo.authority, proxy=proxy)
            self.assertEqual(answer.status, 200)
            tunnels.append(client)
        begun = time.monotonic()
        open(self.state(proxy), "w").close()
        for client in tunnels:
            self.assertIsNotNone(client.wait_end(max(0.01, begun + SECOND - time.monotonic())))

    def test_set_while_it_was_down(self):
        proxy, origin = self.start(), self.origin()
        self.assertIsNone(proxy.stop())
        told = sluice(proxy, "stop")
        self.assertEqual(told.returncode, 0)
        self.assertIn("no proxy is running there now", told.stderr)
        again = self.start(state=os.path.dirname(self.state(proxy)))
        self.assertEqual(self.fetch(origin.url(), proxy=again).status, 503)
        self.assertEqual(len(origin.requests), 0)

    def test_a_daemon_that_hangs_wakes_up_stopped(self):
        proxy, origin = self.start(), self.origin()
        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
        os.kill(proxy.pid, signal.SIGSTOP)
        try:
            self.assertEqual(sluice(proxy, "stop").returncode, 0)
        finally:
            os.kill(proxy.pid, signal.SIGCONT)
        self.wait_refused(proxy, origin.url(), time.monotonic())

    def test_within_a_second_under_full_load(self):
        proxy = self.start('proxy.workers=2')
        origin = self.origin()
        last, end = [0.0], threading.Event()

        def hammer():
            client = self.client(proxy)
            while not end.is_set():
                sent = time.monotonic()
                if self.fetch(origin.url(), client=client).status == 200:
                    last[0] = max(last[0], sent)

        threads = [threading.Thread(target=hammer) for _ in range(16)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        open(self.state(proxy), "w").close()
        begun = time.monotonic()
        time.sleep(2 * SECOND)
        end.set()
        for thread in threads:
            thread.join()
        self.assertGreater(last[0], 0.0)
        self.assertLess(last[0] - begun, SECOND)
        last_seen = max(request.at for request in origin.requests)
        self.assertLess(last_seen - begun, SECOND)
