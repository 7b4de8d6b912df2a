#!/usr/bin/python3
"""One worker against two: requests per second by wrk, and the CPU that each worker thread used.

On a machine where the load generator leaves no core free, the rate cannot double; then the CPU per request tells:
when nothing is shared on the path it is the same with two workers as with one."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile

from machine import ANY_PORT, OriginProcess, Proxy, add_binary_option, cpu_seconds, thread_cpu_seconds, use_binary


def measure(workers, seconds):
    """(requests per second, CPU-µs per request, CPU seconds by thread)."""
    origins = [OriginProcess() for _ in range(2)]
    proxy = Proxy(ANY_PORT, "proxy.workers=%d" % workers)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write('wrk.path = "http://%s/"\n' % origins[0].authority)
        script.flush()
        command = ["wrk", "-t1", "-c64", "-d%ds" % seconds, "-s", script.name, proxy.url]
        try:
            subprocess.run([*command[:3], "-d1s", *command[4:]], check=True, capture_output=True)
            before, threads = cpu_seconds(proxy.pid), thread_cpu_seconds(proxy.pid)
            report = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            used = cpu_seconds(proxy.pid) - before
            spread = {thread: now - threads.get(thread, 0) for thread, now in thread_cpu_seconds(proxy.pid).items()}
        finally:
            proxy.remove()
            for origin in origins:
                origin.stop()
    if "Non-2xx" in report or "Socket errors" in report:
        sys.exit("errors under load:\n" + report)
    total = int(re.search(r"(\d+) requests in", report)[1])
    return total / seconds, used / total * 1e6, sorted((s for s in spread.values() if s > 0.05), reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary_option(parser)
    parser.add_argument("--seconds", type=int, default=5)
    args = parser.parse_args()
    use_binary(args.sluice)
    if not shutil.which("wrk"):
        sys.exit("wrk is not installed (Debian package wrk)")
    rows = {workers: measure(workers, args.seconds) for workers in (1, 2)}
    for workers, (rate, cost, spread) in rows.items():
        busy = ", ".join("%.2f s" % seconds for seconds in spread)
        print("workers: %d  %8.0f requests/s  %6.1f CPU-µs per request  by thread: %s" % (workers, rate, cost, busy))
    print("workers: %.2f × the rate, %.2f × the CPU per request" % (rows[2][0] / rows[1][0], rows[2][1] / rows[1][1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
