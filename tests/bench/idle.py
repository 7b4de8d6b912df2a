#!/usr/bin/python3
"""What an idle keep-alive client costs: 10,000 that have each made one request, in KiB of RSS each.

Fails above 6 KiB each, or on any error."""

import argparse
import socket
import sys

from machine import ANY_PORT, OriginProcess, Proxy, add_binary_option, use_binary, want_descriptors

LIMIT_KIB = 6.0


def ask(sock, request):
    """One request; True when the whole 1 KiB answer came."""
    sock.sendall(request)
    got = b""
    while b"\r\n\r\n" not in got or len(got) - got.index(b"\r\n\r\n") - 4 < 1024:
        data = sock.recv(4096)
        if not data:
            return False
        got += data
    return got.startswith(b"HTTP/1.1 200 ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary_option(parser)
    parser.add_argument("--connections", type=int, default=10_000)
    args = parser.parse_args()
    use_binary(args.sluice)
    want_descriptors(args.connections + 500)

    origin = OriginProcess()
    proxy = Proxy(ANY_PORT, "proxy.workers=1", 'proxy.timeouts.idle="10m"')
    request = b"GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % ((origin.authority.encode(),) * 2)
    errors, crowd = 0, []
    try:
        warm = [socket.create_connection(proxy.address, 10) for _ in range(64)]
        errors += sum(not ask(sock, request) for sock in warm)
        before = proxy.resident()
        for number in range(args.connections):
            # Several loopback addresses: one has too few ports for more than 28,000.
            sock = socket.create_connection(proxy.address, 10, ("127.0.0.%d" % (2 + number // 20_000), 0))
            errors += not ask(sock, request)
            crowd.append(sock)
        each = (proxy.resident() - before) / 1024 / len(crowd)
        errors += sum(not ask(sock, request) for sock in crowd)  # every one still works
    finally:
        proxy.remove()
        origin.stop()
    print("idle: %d connections, %.2f KiB each (limit %.0f), %d errors" % (len(crowd), each, LIMIT_KIB, errors))
    return 1 if errors or each > LIMIT_KIB else 0


if __name__ == "__main__":
    sys.exit(main())
