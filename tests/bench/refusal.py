#!/usr/bin/python3
"""What a refusal costs beside a forwarded request: CPU-µs of the proxy per request, one after the other in one run.

Most of either is the kernel's: a refusal saves the two calls of the origin's side, but not the client's two."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile

from machine import ANY_PORT, OriginProcess, Proxy, add_binary_option, cpu_seconds, use_binary

ROUNDS = 3


def load(proxy, authority, seconds):
    """(requests, how many of them were no success, CPU-µs per request)."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write('wrk.path = "http://%s/"\n' % authority)
        script.flush()
        before = cpu_seconds(proxy.pid)
        report = subprocess.run(["wrk", "-t1", "-c32", "-d%ds" % seconds, "-s", script.name, proxy.url], check=True,
                                capture_output=True, text=True).stdout
        used = cpu_seconds(proxy.pid) - before
    if "Socket errors" in report:
        sys.exit("errors under load:\n" + report)
    total = int(re.search(r"(\d+) requests in", report)[1])
    others = re.search(r"Non-2xx or 3xx responses: (\d+)", report)
    return total, int(others[1]) if others else 0, used / total * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary_option(parser)
    parser.add_argument("--seconds", type=int, default=3)
    args = parser.parse_args()
    use_binary(args.sluice)
    if not shutil.which("wrk"):
        sys.exit("wrk is not installed (Debian package wrk)")
    origin, shut = OriginProcess(), OriginProcess()
    proxy = Proxy(ANY_PORT, "proxy.workers=1", policy='hosts = ["*"]\n[hold]\nmax_wait = "0s"\n[pace]\nadapt = "off"\n')
    costs = {"forwarded": [], "refused": []}
    try:
        subprocess.run([args.sluice, "open", shut.authority, "--for", "1h", "--state-dir", proxy.state], check=True,
                       capture_output=True)
        for _ in range(ROUNDS):
            for name, target in (("forwarded", origin), ("refused", shut)):
                total, others, cost = load(proxy, target.authority, args.seconds)
                if others != (total if name == "refused" else 0):
                    sys.exit("%d of %d requests that should be %s were not" % (total - others, total, name))
                costs[name].append(cost)
    finally:
        proxy.remove()
        origin.stop()
        shut.stop()
    forwarded, refused = min(costs["forwarded"]), min(costs["refused"])
    print("refusal: %.1f CPU-µs, a forwarded request %.1f: %.2f of it (the least of %d rounds)"
          % (refused, forwarded, refused / forwarded, ROUNDS))
    return 0 if refused < forwarded else 1


if __name__ == "__main__":
    sys.exit(main())
