"""As a service of systemd: readiness, reload, watchdog, sockets that outlive a restart, the journal."""

import ctypes
import os
import re
import socket
import threading
import time

from harness.message import read_response, request_bytes, response_bytes
from harness.origin import replying
from harness.proxy import ANY_PORT
from harness.service_manager import NotifySocket, Service
from harness.stream import connect
from startup_test import OwnProxies


class ServiceCase(OwnProxies):
    def notify_socket(self):
        notify = NotifySocket()
        self.addCleanup(notify.close)
        return notify

    def service(self, *settings, notify=None, environment=None, **options):
        environment = dict(environment or {})
        if notify:
            environment["NOTIFY_SOCKET"] = notify.path
        service = Service(ANY_PORT, 'proxy.drain="5s"', *settings, environment=environment, **options)
        self.own_proxies.append(service)
        self.addCleanup(service.kill)
        return service

    def held_socket(self, address=("127.0.0.1", 0)):
        """A listening socket as sluice.socket holds it."""
        held = socket.create_server(address, backlog=512)
        self.addCleanup(held.close)
        return held


class Notify(ServiceCase):
    def test_ready_when_it_is(self):
        notify = self.notify_socket()
        proxy = self.service(notify=notify)
        message = notify.until("READY")
        self.assertEqual(message["READY"], "1")
        self.assertIn("127.0.0.1:%d" % proxy.port, message["STATUS"])
        connect(proxy.address).close()  # at once: no waiting for it

    def test_never_ready_when_it_cannot_start(self):
        notify = self.notify_socket()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            proxy = self.service(notify=notify, listen="127.0.0.1:%d" % taken.getsockname()[1])
            self.assertEqual(proxy.wait(10), 2)
        self.assertIsNone(notify.next(0.1))

    def test_a_reload_is_told_and_survived(self):
        notify = self.notify_socket()
        proxy = self.service(notify=notify)
        self.assertTrue(notify.until("READY"))
        client, origin = self.client(proxy), self.origin()
        self.assertEqual(self.fetch(origin.url(), client=client).status, 200)
        for _ in range(3):
            before = time.monotonic_ns() // 1000
            os.kill(proxy.pid, 1)  # SIGHUP
            message = notify.until("RELOADING")
            self.assertTrue(before <= int(message["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000)
            self.assertEqual(notify.next()["READY"], "1")
        self.assertEqual(self.fetch(origin.url(), client=client).status, 200, "the connection was not touched")

    def test_a_reload_puts_changed_policies_in_force(self):
        notify = self.notify_socket()
        proxy = self.service(notify=notify)
        self.assertTrue(notify.until("READY"))
        # A hard link written to elsewhere: inotify has nothing to say about this directory.
        outside = os.path.join(proxy.directory, "outside.toml")
        os.link(os.path.join(proxy.directory, "policies/engine.toml"), outside)
        with open(outside, "w") as file:
            file.write('hosts = ["*", "more.test"]\n')
        os.kill(proxy.pid, 1)
        self.assertTrue(notify.until("RELOADING"))
        self.assertTrue(self.origin().wait(lambda: proxy.log().count("engine.toml is in force") > 0, 5), proxy.log())

    def test_a_hangup_is_survived_from_the_first_moment(self):
        proxy = self.service()
        while proxy.process.poll() is None and "ready" not in proxy.log():
            if b"sluice" in open("/proc/%d/cmdline" % proxy.pid, "rb").read().split(b"\0")[0]:
                if "SigBlk" in (status := open("/proc/%d/status" % proxy.pid).read()):
                    if int(re.search(r"SigBlk:\s*(\w+)", status)[1], 16) & 1:
                        os.kill(proxy.pid, 1)
            time.sleep(0.001)
        self.assertIsNone(proxy.process.poll(), proxy.log())
        os.kill(proxy.pid, 1)
        self.assertEqual(self.fetch(self.origin().url(), proxy=proxy).status, 200)

    def test_stopping_asks_for_the_time_it_needs(self):
        notify = self.notify_socket()
        proxy = self.service(notify=notify)
        self.assertTrue(notify.until("READY"))
        proxy.terminate()
        message = notify.until("STOPPING")
        self.assertEqual(message["STOPPING"], "1")
        self.assertGreaterEqual(int(message["EXTEND_TIMEOUT_USEC"]), 5_000_000)
        self.assertEqual(proxy.wait(5), 0)


class Watchdog(ServiceCase):
    PERIOD = {"WATCHDOG_USEC": "600000"}

    def worker_threads(self, proxy):
        """The threads that have an event loop: they wait in epoll_wait or epoll_pwait (x86-64, arm64)."""
        numbers = {"x86_64": ("232", "281"), "aarch64": ("22",)}.get(os.uname().machine, ())
        found = []
        for thread in os.listdir("/proc/%d/task" % proxy.pid):
            with open("/proc/%d/task/%s/syscall" % (proxy.pid, thread)) as file:
                if file.read().split()[0] in numbers:
                    found.append(int(thread))
        return found

    def test_pings_while_it_works(self):
        notify = self.notify_socket()
        proxy = self.service(notify=notify, environment=self.PERIOD)
        for _ in range(4):
            self.assertTrue(notify.until("WATCHDOG", 5), proxy.log())

    def test_none_when_nobody_watches(self):
        notify = self.notify_socket()
        self.service(notify=notify)
        self.assertTrue(notify.until("READY"))
        self.assertIsNone(notify.until("WATCHDOG", 0.5))

    def test_none_while_one_worker_hangs(self):
        notify = self.notify_socket()
        proxy = self.service("proxy.workers=2", notify=notify, environment=self.PERIOD)
        self.assertTrue(notify.until("WATCHDOG"))
        try:
            workers = self.origin().wait(lambda: len(found := self.worker_threads(proxy)) >= 2 and found)
        except OSError as problem:
            self.skipTest("the kernel does not say where a thread waits: %s" % problem)
        if not workers:
            self.skipTest("the workers cannot be told from other threads here")
        with halted(workers[0]) as possible:
            if not possible:
                self.skipTest("nobody may trace here")
            time.sleep(0.5)  # what was asked before is answered by now
            notify.forget()
            self.assertIsNone(notify.until("WATCHDOG", 1.5), "a worker hangs and nobody noticed")
        self.assertTrue(notify.until("WATCHDOG"), "it turns again")

    def test_pings_while_it_drains(self):
        notify = self.notify_socket()
        release = threading.Event()
        self.addCleanup(release.set)

        def script(visit):
            visit.read_request()
            release.wait(20)
            visit.send(response_bytes(b"late"))

        proxy = self.service(notify=notify, environment=self.PERIOD)
        self.assertTrue(notify.until("READY"))
        origin, client = self.origin(script), self.client(proxy)
        client.send(request_bytes("GET", origin.url(), ["Host: " + origin.authority]))
        self.assertTrue(origin.wait(lambda: origin.requests))
        proxy.terminate()
        self.assertTrue(notify.until("STOPPING"))
        self.assertTrue(notify.until("WATCHDOG", 3))
        release.set()
        self.assertEqual(read_response(client).body, b"late")


class halted:
    """One thread of another process stands still: ptrace, without stopping the others."""

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17

    def __init__(self, thread):
        self.thread = thread
        self.libc = ctypes.CDLL(None, use_errno=True)

    def ptrace(self, request):
        return self.libc.ptrace(ctypes.c_long(request), ctypes.c_long(self.thread), None, None) == 0

    def __enter__(self):
        self.possible = self.ptrace(self.SEIZE) and self.ptrace(self.INTERRUPT)
        if self.possible:
            os.waitpid(self.thread, 0x40000000)  # __WALL
        return self.possible

    def __exit__(self, *_):
        if self.possible:
            self.ptrace(self.DETACH)


class Sockets(ServiceCase):
    def test_serves_on_what_it_was_given(self):
        for workers in (1, 2, 4):
            with self.subTest(workers):
                held = [self.held_socket(), self.held_socket(("127.0.0.2", 0))]
                notify = self.notify_socket()
                proxy = self.service("proxy.workers=%d" % workers, sockets=held, notify=notify)
                status = notify.until("READY")["STATUS"]
                origin = self.origin()
                for sock in held:
                    proxy.address = sock.getsockname()
                    self.assertIn("%s:%d" % proxy.address, status)
                    for _ in range(8):
                        self.assertEqual(self.fetch(origin.url(), proxy=proxy).status, 200)
                self.assertIn("proxy.listen", proxy.log(), "it says that proxy.listen is not in force")
                with self.assertRaises(OSError):
                    connect(("127.0.0.1", proxy.port), 1)

    def test_every_worker_takes_clients(self):
        """Each event loop watches a descriptor of the one socket."""
        held, notify = self.held_socket(), self.notify_socket()
        proxy = self.service("proxy.workers=3", sockets=[held], notify=notify)
        self.assertTrue(notify.until("READY"))
        name = os.readlink("/proc/self/fd/%d" % held.fileno())
        links = {fd: os.readlink("/proc/%d/fd/%s" % (proxy.pid, fd)) for fd in os.listdir("/proc/%d/fd" % proxy.pid)}
        loops = 0
        for fd in (fd for fd, link in links.items() if link == "anon_inode:[eventpoll]"):
            with open("/proc/%d/fdinfo/%s" % (proxy.pid, fd)) as file:
                watched = re.findall(r"^tfd:\s*(\d+)", file.read(), re.MULTILINE)
            loops += any(links[other] == name for other in watched)
        self.assertEqual(loops, 3)

    def test_its_own_socket_is_refused_as_a_destination(self):
        held, notify = self.held_socket(), self.notify_socket()
        proxy = self.service(sockets=[held], notify=notify)
        self.assertTrue(notify.until("READY"))
        proxy.address = held.getsockname()
        self.assertEqual(self.fetch("http://127.0.0.1:%d/" % proxy.address[1], proxy=proxy).status, 508)

    def test_a_restart_refuses_no_connection(self):
        """New clients all the time, while the service is restarted three times."""
        held = self.held_socket()
        origin = self.origin(replying(response_bytes(b"ok")))
        problems, served, stop = [], [0], threading.Event()

        def client():
            while not stop.is_set():
                try:
                    stream = connect(held.getsockname(), 20)
                    stream.send(request_bytes("GET", origin.url(), ["Host: " + origin.authority, "Connection: close"]))
                    if read_response(stream).body != b"ok":
                        problems.append("another answer")
                    stream.close()
                    served[0] += 1
                except Exception as problem:  # any of them is a client that was let down
                    problems.append(repr(problem))

        notify = self.notify_socket()
        proxy = self.service("proxy.workers=2", sockets=[held], notify=notify)
        self.assertTrue(notify.until("READY"))
        threads = [threading.Thread(target=client) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(3):
                before = served[0]
                self.assertTrue(origin.wait(lambda: served[0] > before + 20), problems)
                proxy.terminate()
                self.assertEqual(proxy.wait(10), 0)
                time.sleep(0.1)  # nobody is there
                proxy = self.service("proxy.workers=2", sockets=[held], notify=notify)
                self.assertTrue(notify.until("READY"))
            before = served[0]
            self.assertTrue(origin.wait(lambda: served[0] > before + 20), problems)
        finally:
            stop.set()
            for thread in threads:
                thread.join(30)
        self.assertEqual(problems, [])

    def test_a_client_that_came_just_before_the_end_is_served(self):
        held, notify = self.held_socket(), self.notify_socket()
        proxy = self.service(sockets=[held], notify=notify)
        self.assertTrue(notify.until("READY"))
        proxy.address = held.getsockname()
        origin, client = self.origin(), self.client(proxy)
        self.fetch(origin.url(), proxy=proxy)  # the other one is accepted by now as well
        proxy.terminate()
        self.assertTrue(notify.until("STOPPING"))
        time.sleep(0.2)  # it is said a moment before it is done
        response = self.fetch(origin.url(), client=client)
        self.assertEqual((response.status, response.get("Connection", "").lower()), (200, "close"))
        self.assertEqual(proxy.wait(5), 0)

    def test_a_silent_client_does_not_delay_the_end_for_long(self):
        proxy = self.start('proxy.drain="30s"')
        client = self.client(proxy)
        self.fetch(self.origin().url(), proxy=proxy)
        proxy.terminate()
        self.assertEqual(proxy.wait(8), 0)
        self.assertIsNotNone(client.wait_end(1))

    def test_an_open_proxy_is_refused_here_too(self):
        proxy = self.service(sockets=[self.held_socket(("0.0.0.0", 0))])
        self.assertEqual(proxy.wait(10), 2)
        self.assertIn("access.clients", proxy.log())

    def test_what_is_no_listening_tcp_socket_is_refused(self):
        datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagram.bind(("127.0.0.1", 0))
        unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        unix.bind("")
        unix.listen()
        deaf = socket.socket()
        deaf.bind(("127.0.0.1", 0))
        for sock in (datagram, unix, deaf):
            with self.subTest(sock), sock:
                proxy = self.service(sockets=[sock])
                self.assertEqual(proxy.wait(10), 2)
                self.assertIn("not a listening TCP socket", proxy.log())


class Journal(ServiceCase):
    """The proxy writes to a file; $JOURNAL_STREAM says that this is the journal."""

    def talkative(self, *settings, journal=True):
        stream = "$(stat -L -c %d:%i /dev/stderr)" if journal else "8:1"
        become = ["/bin/sh", "-c", 'export JOURNAL_STREAM=%s; exec "$0" "$@"' % stream]
        return self.service('log.level="debug"', *settings, prefix=become)

    def lines(self, proxy):
        """What it logged until it was stopped."""
        proxy.wait_ready()
        proxy.terminate()
        self.assertEqual(proxy.wait(10), 0)
        lines = [line for line in proxy.log().splitlines() if "ready: proxy" not in line]
        self.assertTrue(lines)
        return lines

    def test_priorities_instead_of_times(self):
        lines = self.lines(self.talkative())
        for line in lines:
            self.assertRegex(line, r"^<[2-7]>\S")
            self.assertNotRegex(line, r"\d\d:\d\d:\d\d")
        self.assertIn("<6>stopping", "\n".join(lines))

    def test_json_with_priorities(self):
        for line in self.lines(self.talkative('log.format="json"')):
            self.assertRegex(line, r'^<[2-7]>\{"time":')

    def test_another_stream_than_the_journal(self):
        for line in self.lines(self.talkative(journal=False)):
            self.assertRegex(line, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
