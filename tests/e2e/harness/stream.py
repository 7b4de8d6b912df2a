"""One end of a TCP connection: exact bytes out, buffered reads with a deadline in."""

import select
import socket
import struct
import time


class Ended(Exception):
    """The peer ended before what was asked for had arrived."""

    def __init__(self, how, got):
        super().__init__("the peer ended (%s) after %r" % (how, bytes(got[:200])))
        self.how = how
        self.got = bytes(got)


class Stream:
    def __init__(self, sock, timeout=10.0):
        self.sock = sock
        self.timeout = timeout  # seconds that one read or write may take
        self.buffer = bytearray()
        self.end = None  # None while open, then "eof" or "reset"

    def send(self, data):
        self.sock.settimeout(self.timeout)
        self.sock.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def try_send(self, data):
        """False when the peer has gone."""
        try:
            self.send(data)
            return True
        except OSError:
            return False

    def fill(self, timeout=None):
        """Read once; False at the end of the stream. Raises TimeoutError."""
        if self.end:
            return False
        try:
            self.sock.settimeout(self.timeout if timeout is None else max(timeout, 0.001))
            data = self.sock.recv(1 << 18)
        except TimeoutError:
            raise
        except OSError:
            self.end = "reset"
            return False
        if not data:
            self.end = "eof"
            return False
        self.buffer += data
        return True

    def take(self, count):
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    def read_until(self, mark, limit=1 << 20):
        """The bytes up to and including mark."""
        seen = 0
        while True:
            found = self.buffer.find(mark, seen)
            if found >= 0:
                return self.take(found + len(mark))
            if len(self.buffer) > limit:
                raise ValueError("no %r within %d bytes" % (mark, limit))
            seen = max(0, len(self.buffer) - len(mark) + 1)
            if not self.fill():
                raise Ended(self.end, self.buffer)

    def read_exact(self, count):
        while len(self.buffer) < count:
            if not self.fill():
                raise Ended(self.end, self.buffer)
        return self.take(count)

    def read_some(self):
        """At least one byte, or b"" at the end."""
        if not self.buffer:
            self.fill()
        return self.take(len(self.buffer))

    def read_to_end(self):
        while self.fill():
            pass
        return self.take(len(self.buffer))

    def feed_digest(self, digest, count):
        """Hash the next count bytes without keeping them."""
        while count:
            data = self.take(min(count, len(self.buffer)))
            digest.update(data)
            count -= len(data)
            if count and not self.fill():
                raise Ended(self.end, b"")

    def quiet_for(self, seconds):
        """True when nothing, not even an end, arrives for that long."""
        return not self.buffer and not select.select([self.sock], [], [], seconds)[0]

    def wait_end(self, timeout):
        """How the peer ended, or None when it had not in time; what still came stays in buffer."""
        deadline = time.monotonic() + timeout
        try:
            while not self.end:
                self.fill(deadline - time.monotonic())
        except TimeoutError:
            return None
        return self.end

    def finish_sending(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.sock.close()

    def reset(self):
        """End with a TCP RST instead of a FIN."""
        try:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        self.sock.close()


def connect(address, timeout=10.0, receive_buffer=None, source=None):
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            sock.bind((source, 0))
        sock.settimeout(timeout)
        sock.connect(address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        sock.close()
        raise
    return Stream(sock, timeout)
