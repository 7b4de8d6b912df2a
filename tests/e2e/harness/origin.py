"""A scripted origin: a thread per connection runs the test's script, and every arrival is recorded."""

import socket
import threading
import time

from harness import message
from harness.stream import Ended, Stream

OK = message.response_bytes(b"ok")


class Visit(Stream):
    """One connection that the proxy made to the origin."""

    def __init__(self, sock, number, origin):
        super().__init__(sock)
        self.number = number  # 0 for the first connection
        self.origin = origin
        self.closed_at = None  # when the script was over

    def read_head(self):
        """The next request without its body, recorded; None when the proxy has closed."""
        try:
            request = message.read_head(self)
        except Ended as end:
            if end.got:
                raise
            return None
        request.visit = self.number
        request.at = time.monotonic()
        self.origin.requests.append(request)
        return request

    def read_body(self, request):
        if request.get("Expect", "").lower() == "100-continue":
            self.send("HTTP/1.1 100 Continue\r\n\r\n")
        message.read_request_body(self, request)

    def read_request(self):
        """The next request whole (100-continue granted); None when the proxy has closed."""
        request = self.read_head()
        if request:
            self.read_body(request)
        return request


def replying(*answers):
    """A script: answers each request of the connection in turn, the last answer for ever."""

    def script(visit):
        turn = 0
        while request := visit.read_request():
            answer = answers[min(turn, len(answers) - 1)]
            visit.send(answer(request) if callable(answer) else answer)
            turn += 1

    return script


def in_turn(*answers):
    """A script: answers the requests of all connections in turn, the last answer for ever."""
    left = list(answers)
    lock = threading.Lock()

    def script(visit):
        while visit.read_request():
            with lock:
                answer = left.pop(0) if len(left) > 1 else left[0]
            visit.send(answer)

    return script


def replying_once(data):
    """A script: one answer, then a close."""

    def script(visit):
        if visit.read_request():
            visit.send(data)

    return script


class Origin:
    def __init__(self, script=None, host="127.0.0.1", port=0, tls=None, backlog=512):
        self.script = script or replying(OK)
        self.host = host
        self.tls = tls  # an ssl.SSLContext, or None
        self.requests = []  # every request head that arrived, in order
        self.visits = []
        self.failures = []  # what scripts raised
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server((host, port), family=family, backlog=backlog)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def authority(self):
        return "%s:%d" % ("[%s]" % self.host if ":" in self.host else self.host, self.port)

    def url(self, path="/"):
        return "http%s://%s%s" % ("s" if self.tls else "", self.authority, path)

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            visit = Visit(sock, len(self.visits), self)
            self.visits.append(visit)
            threading.Thread(target=self.serve, args=(visit,), daemon=True).start()

    def serve(self, visit):
        try:
            if self.tls:
                visit.sock.settimeout(visit.timeout)
                visit.sock = self.tls.wrap_socket(visit.sock, server_side=True)
            self.script(visit)
        except (OSError, Ended, message.Truncated, ValueError) as problem:
            self.failures.append(problem)
        finally:
            visit.closed_at = time.monotonic()
            try:
                visit.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            visit.sock.close()

    def wait(self, condition, timeout=5.0):
        """Poll until condition() holds; its last value."""
        deadline = time.monotonic() + timeout
        while not (value := condition()) and time.monotonic() < deadline:
            time.sleep(0.005)
        return value

    def wait_visit(self, number=0, timeout=5.0):
        if not self.wait(lambda: len(self.visits) > number, timeout):
            raise TimeoutError("the origin was not contacted")
        return self.visits[number]

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept, which a close does not
        except OSError:
            pass
        self.listener.close()
        for visit in self.visits:
            try:
                visit.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def refusing_port():
    """A port of 127.0.0.1 where nobody listens, kept reserved: (socket to keep, port)."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    return sock, sock.getsockname()[1]


def silent_port():
    """A port whose accept queue is full, so that a connect hangs: (sockets to keep, port)."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    port = listener.getsockname()[1]
    kept = [listener]
    for _ in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.1", port))
        kept.append(filler)
    return kept, port
