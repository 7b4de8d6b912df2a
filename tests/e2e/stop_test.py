"""The emergency stop on a running proxy: every worker, every tunnel and stream, within a second."""

import os
import resource
import selectors
import signal
import socket
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

    def test_nobody_waits_for_whoever_is_stopped_in_the_middle_of_a_write(self):
        proxy, origin = self.start(), self.origin()
        helper = os.path.join(os.path.dirname(binary()), "tests/hold_store")
        holder = subprocess.Popen([helper, os.path.dirname(self.state(proxy))], stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        self.assertEqual(holder.stdout.readline(), "held\n")
        for command, status in (("stop", 503), ("resume", 200)):
            begun = time.monotonic()
            told = sluice(proxy, command)
            self.assertEqual(told.returncode, 0, told)
            self.assertIn("no event was recorded: another process is in the middle of a write", told.stderr)
            self.assertLess(time.monotonic() - begun, 10)
            self.assertTrue(origin.wait(lambda: self.fetch(origin.url(), proxy=proxy).status == status))


PIECE = b"2000\r\n%s\r\n" % (b"x" * 8192)


class Holder:
    """An origin for thousands at once, in one thread: takes tunnels and says nothing, feeds downloads as fast as it can."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.listener.setblocking(False)
        self.authority = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.held, self.fed, self.ended = [], [], False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        poll = selectors.DefaultSelector()
        poll.register(self.listener, selectors.EVENT_READ)
        while not self.ended:
            for key, _ in poll.select(0.01):
                if key.fileobj is self.listener:
                    self.take(poll)
                else:
                    poll.unregister(key.fileobj)
                    self.answer(key.fileobj)
            for download in self.fed:
                try:
                    download.send(PIECE)
                except OSError:
                    pass  # full, or cut
        for sock in (self.listener, *self.held):
            sock.close()

    def take(self, poll):
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        self.held.append(sock)
        poll.register(sock, selectors.EVENT_READ)

    def answer(self, sock):
        """Only what is no tunnel sends anything at first."""
        try:
            if sock.recv(65536):
                sock.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                self.fed.append(sock)
        except OSError:
            pass

    def close(self):
        self.ended = True
        self.thread.join(20)


class Crowd(ProxyCase):
    weight = 4
    settings = ("proxy.workers=4",)
    TUNNELS, DOWNLOADS, HAMMERS, AT_ONCE = 2000, 100, 8, 100

    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 3 * (self.TUNNELS + self.DOWNLOADS) + 500  # here and in the proxy: it takes the limit over
        if hard != resource.RLIM_INFINITY and hard < wanted:
            self.skipTest("no more than %d descriptors are allowed here" % hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def crowd(self, count, request):
        """So many connections that have had an answer."""
        out = []
        while len(out) < count:
            batch = [self.client(timeout=60) for _ in range(min(self.AT_ONCE, count - len(out)))]
            for client in batch:
                client.send(request)
            for client in batch:
                self.assertIn(b" 200 ", client.read_until(b"\r\n\r\n"))
            out += batch
        return out

    def test_thousands_of_tunnels_and_streams_under_full_load(self):
        """A second after the stop the proxy is frozen: what it has done by then is looked at in peace."""
        holder, origin = Holder(), self.origin()
        self.addCleanup(holder.close)
        connect_there = request_bytes("CONNECT", holder.authority, ["Host: " + holder.authority])
        download = request_bytes("GET", "http://%s/" % holder.authority, ["Host: " + holder.authority])
        tunnels, downloads = self.crowd(self.TUNNELS, connect_there), self.crowd(self.DOWNLOADS, download)
        last, served, end = [0.0], [0], threading.Event()

        def drain():
            poll = selectors.DefaultSelector()
            for client in downloads:
                client.sock.setblocking(False)
                poll.register(client.sock, selectors.EVENT_READ)
            while not end.is_set() and poll.get_map():
                for key, _ in poll.select(0.05):
                    try:
                        if not key.fileobj.recv(1 << 16):
                            poll.unregister(key.fileobj)
                    except BlockingIOError:
                        pass
                    except OSError:
                        poll.unregister(key.fileobj)

        def hammer():
            client = self.client(timeout=60)
            while not end.is_set():
                sent = time.monotonic()
                if self.fetch(origin.url(), client=client).status == 200:
                    served[0] += 1
                    last[0] = max(last[0], sent)

        threads = [threading.Thread(target=hammer) for _ in range(self.HAMMERS)] + [threading.Thread(target=drain)]
        for thread in threads:
            thread.start()
        self.assertTrue(origin.wait(lambda: served[0] > 100, 60))
        begun = time.monotonic()
        open(os.path.join(self.proxy.state, "EMERGENCY_STOP"), "w").close()
        time.sleep(SECOND)  # what is promised
        os.kill(self.proxy.pid, signal.SIGSTOP)
        try:
            cut = [sum(is_cut(client) for client in clients) for clients in (tunnels, downloads)]
        finally:
            os.kill(self.proxy.pid, signal.SIGCONT)
            end.set()
            for thread in threads:
                thread.join(60)
        self.assertEqual(cut, [self.TUNNELS, self.DOWNLOADS])
        self.assertLess(last[0] - begun, SECOND, "a request went out later")
        seen = len(origin.requests)
        for client in [self.client() for _ in range(40)]:  # of whichever worker
            self.assert_problem(self.fetch(origin.url(), client=client), 503, "emergency-stop")
        self.assertEqual(len(origin.requests), seen)


def is_cut(client):
    """After what is still on its way there is an end."""
    client.sock.settimeout(5)
    try:
        while client.sock.recv(1 << 20):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass  # reset
    return True
