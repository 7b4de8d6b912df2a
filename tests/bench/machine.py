"""What the benches share: the proxy as a process under measurement, and a cheap origin beside it."""

import os
import resource
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../e2e"))
sys.dont_write_bytecode = True

from harness.proxy import ANY_PORT, Proxy  # noqa: E402


def use_binary(path):
    os.environ["SLUICE"] = os.path.abspath(path)
    if not os.access(os.environ["SLUICE"], os.X_OK):
        sys.exit("%s is not there: build it first (make), or give --sluice PATH" % path)


def add_binary_option(parser):
    parser.add_argument("--sluice", default=os.path.join(HERE, "../../build/sluice"), metavar="PATH")


def want_descriptors(count):
    """Raise our own limit (children inherit it), or say that it cannot be done."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        if hard < count and os.geteuid() != 0:
            sys.exit("needs %d descriptors, the limit is %d (ulimit -n)" % (count, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(hard, count)))


def cpu_seconds(pid):
    """User and system time of all threads."""
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def thread_cpu_seconds(pid):
    """{thread id: seconds} of one process."""
    times = {}
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, thread)) as file:
            fields = file.read().rpartition(")")[2].split()
        times[thread] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return times


class OriginProcess:
    """static_origin.py in a process of its own, so that its work is not counted as ours."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "static_origin.py")],
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.authority = "127.0.0.1:%d" % self.port

    def stop(self):
        self.process.terminate()
        self.process.wait()


__all__ = ["ANY_PORT", "Proxy", "OriginProcess", "add_binary_option", "cpu_seconds", "thread_cpu_seconds",
           "use_binary", "want_descriptors"]
