"""What systemd does for a service, done by hand: a notify socket, a held listening socket, a watchdog."""

import os
import socket
import subprocess
import tempfile
import time

from harness.proxy import OBSERVE, Proxy


class NotifySocket:
    """Receives what sd_notify says."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="sluice-notify-")
        self.path = os.path.join(self.directory.name, "notify")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.path)

    def next(self, timeout=10.0):
        """The next message as {name: value}, or None."""
        self.sock.settimeout(timeout)
        try:
            text = self.sock.recv(65536).decode()
        except socket.timeout:
            return None
        return dict(line.split("=", 1) for line in text.split("\n") if line)

    def until(self, name, timeout=10.0):
        """The first message with that name; others are skipped."""
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            message = self.next(left)
            if message and name in message:
                return message
        return None

    def forget(self):
        """Throws away what has arrived."""
        while self.next(0.001):
            pass

    def close(self):
        self.sock.close()
        self.directory.cleanup()


class Service(Proxy):
    """A proxy as a service: `sockets` are passed to it, `environment` added to its own."""

    # LISTEN_PID must be the pid of the proxy itself: a shell finds it out and becomes the proxy.
    BECOME = ["/bin/sh", "-c", 'export LISTEN_PID=$$ WATCHDOG_PID=$$; exec "$0" "$@"']

    def __init__(self, *settings, sockets=(), environment=None, prefix=BECOME, **options):
        self.sockets, self.extra = sockets, environment or {}
        super().__init__(*settings, prefix=prefix, policy=OBSERVE, ready=False, **options)

    def popen(self, command, environment, log):
        if self.sockets:
            environment["LISTEN_FDS"] = str(len(self.sockets))
        environment.update(self.extra)
        wanted = [sock.fileno() for sock in self.sockets]

        def hand_over():
            # Out of the way first: one may sit where another has to go.
            moved = [os.dup2(fd, 100 + i) for i, fd in enumerate(wanted)]
            for i, fd in enumerate(moved):
                os.dup2(fd, 3 + i, inheritable=True)
                os.close(fd)

        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                close_fds=False, preexec_fn=hand_over)
