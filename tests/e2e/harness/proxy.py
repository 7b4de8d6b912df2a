"""A proxy process of one's own: its port, state directory, log, memory and end."""

import mmap
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

# Origins here misbehave on purpose: the engine is under test, not the limits.
OBSERVE = 'hosts = ["*"]\nmode = "observe"\n[pace]\nadapt = "off"\n[retry]\nmax = 0\n'
ANY_PORT = 'proxy.connect_ports=["*"]'


def binary():
    return os.environ["SLUICE"]


def sanitized():
    """Whether the binary is an ASan or TSan build: its memory says nothing then."""
    with open(binary(), "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(b"__asan_init") >= 0 or text.find(b"__tsan_init") >= 0


def free_port():
    """A port nobody has, below the range from which the kernel hands out port 0."""
    while True:
        port = random.randrange(10240, 32000)
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Proxy:
    """Started on construction; ready when that returns, unless ready=False."""

    def __init__(self, *settings, config=None, listen=None, prefix=(), policy=OBSERVE, ready=True,
                 admin="off", arguments=(), state=None):
        self.directory = tempfile.mkdtemp(prefix="sluice-e2e-")
        self.port = free_port()
        self.address = ("127.0.0.1", self.port)
        self.log_path = os.path.join(self.directory, "log")
        self.state = state or os.path.join(self.directory, "state")
        command = [*prefix, binary(), "run", "--listen", listen or "127.0.0.1:%d" % self.port,
                   "--admin", admin, "--state-dir", state or self.make_directory("state")]
        command += ["--policies", self.make_directory("policies")]
        if policy:
            self.write("policies/engine.toml", policy)
        if config is not None:
            command += ["--config", self.write("sluice.toml", config)]
        for setting in settings:
            command += ["--set", setting]
        # Neither the user's configuration nor their proxy may leak into a test.
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("SLUICE") and not name.lower().endswith("_proxy")}
        environment.update(HOME=self.directory, XDG_CONFIG_HOME=self.directory)
        with open(self.log_path, "wb") as log:
            self.process = self.popen([*command, *arguments], environment, log)
        if ready:
            try:
                self.wait_ready()
            except RuntimeError:
                self.remove()
                raise

    def popen(self, command, environment, log):
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def make_directory(self, name):
        path = os.path.join(self.directory, name)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o600)
        return path

    @property
    def pid(self):
        return self.process.pid

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def wait_ready(self, timeout=15.0):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError("the proxy ended with %d: %s" % (self.process.returncode, self.log()))
            try:
                socket.create_connection(self.address, 1).close()
                return
            except OSError:
                time.sleep(0.01)
        self.kill()
        raise RuntimeError("the proxy was not ready in %g s: %s" % (timeout, self.log()))

    def log(self, since=0):
        with open(self.log_path, "rb") as file:
            file.seek(since)
            return file.read().decode("utf-8", "replace")

    def log_size(self):
        return os.path.getsize(self.log_path)

    def resident(self):
        """RSS in bytes."""
        with open("/proc/%d/status" % self.pid) as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS")

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def sockets(self):
        """How many of the open descriptors are sockets."""
        count = 0
        for name in os.listdir("/proc/%d/fd" % self.pid):
            try:
                count += os.readlink("/proc/%d/fd/%s" % (self.pid, name)).startswith("socket:")
            except OSError:
                pass
        return count

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout=15.0):
        """The exit status; raises when the proxy does not end."""
        return self.process.wait(timeout)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        """A drain: the sentence that says what was wrong with it, or None."""
        try:
            self.terminate()
            status = self.wait(10)
            if status != 0:
                return "the proxy ended with %d" % status
            if "Sanitizer" in self.log() or "runtime error:" in self.log():
                return "a sanitizer complained"
            return None
        except subprocess.TimeoutExpired:
            return "the proxy did not end within 10 s of SIGTERM"
        finally:
            self.kill()

    def remove(self):
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
