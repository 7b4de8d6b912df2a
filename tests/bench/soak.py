#!/usr/bin/python3
"""A soak: mixed traffic with aborts and resets, by default for 10 minutes.

Checks that RSS stays flat, that no error appears which the script did not cause, and that no descriptor is
lost. The load: GETs (keep-alive and not), uploads, bulk, pipelining, tunnels, requests to refused origins, clients that leave
at every point, garbage, slow heads."""

import argparse
import asyncio
import collections
import random
import sys
import time

from machine import ANY_PORT, OriginProcess, Proxy, add_binary_option, use_binary, want_descriptors

PAGE = 1024


class Trouble(Exception):
    """Something went wrong that the script did not cause."""


class Load:
    def __init__(self, proxy, origin, refused):
        self.proxy, self.origin, self.refused = proxy, origin, refused
        self.counts = collections.Counter()
        self.troubles = collections.defaultdict(list)  # kind -> what went wrong

    async def connect(self):
        reader, writer = await asyncio.open_connection(*self.proxy.address)
        return reader, writer

    def head(self, method="GET", path="/", *fields, authority=None):
        authority = authority or self.origin.authority
        lines = ["%s http://%s%s HTTP/1.1" % (method, authority, path), "Host: " + authority, *fields, "", ""]
        return "\r\n".join(lines).encode()

    async def read_response(self, reader, status=200):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        if not head.startswith("HTTP/1.1 %d " % status):
            raise Trouble("wanted %d, got %r" % (status, head[:300]))
        length = next(int(line.split(":")[1]) for line in head.lower().split("\r\n") if line.startswith("content-length:"))
        left = length
        while left:
            data = await reader.read(min(left, 65536))
            if not data:
                raise Trouble("%d of %d bytes missing" % (left, length))
            left -= len(data)
        return length

    async def keep_alive(self, reader, writer):
        for _ in range(random.randrange(1, 30)):
            writer.write(self.head())
            if await self.read_response(reader) != PAGE:
                raise Trouble("a page of another size")

    async def pipeline(self, reader, writer):
        sizes = [random.randrange(1, 3000) for _ in range(8)]
        writer.write(b"".join(self.head("GET", "/bytes/%d" % size) for size in sizes))
        if [await self.read_response(reader) for _ in sizes] != sizes:
            raise Trouble("answers out of order")

    async def upload(self, reader, writer):
        size = random.randrange(1, 2_000_000)
        writer.write(self.head("POST", "/", "Content-Length: %d" % size))
        for start in range(0, size, 65536):
            writer.write(b"u" * min(65536, size - start))
            await writer.drain()
        await self.read_response(reader)

    async def bulk(self, reader, writer):
        size = random.randrange(1, 8_000_000)
        writer.write(self.head("GET", "/bytes/%d" % size))
        if await self.read_response(reader) != size:
            raise Trouble("bulk of another size")

    async def tunnel(self, reader, writer):
        authority = self.origin.authority
        writer.write(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (authority, authority)).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise Trouble("CONNECT: %r" % head[:300])
        for _ in range(3):
            writer.write(b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % authority.encode())
            await self.read_response(reader)

    async def refusal(self, reader, writer):
        writer.write(self.head(authority=self.refused))
        await self.read_response(reader, 502)

    # From here on the client misbehaves; the proxy may answer or not, but must survive and forget.

    async def leave_early(self, reader, writer):
        whole = self.head("POST", "/", "Content-Length: 100000") + b"x" * 100_000
        writer.write(whole[:random.randrange(len(whole))])
        await writer.drain()
        return "leave"

    async def leave_during_bulk(self, reader, writer):
        writer.write(self.head("GET", "/bytes/50000000"))
        await reader.readexactly(random.randrange(1, 300_000))
        return "leave"

    async def leave_a_tunnel(self, reader, writer):
        await self.tunnel(reader, writer)
        writer.write(b"GET /bytes/50000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readexactly(random.randrange(1, 300_000))
        return "leave"

    async def garbage(self, reader, writer):
        writer.write(random.randbytes(random.randrange(1, 5000)))
        await writer.drain()
        return "leave"

    async def slow_head(self, reader, writer):
        for byte in self.head()[:20]:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.02)
        return "leave"

    async def one(self):
        kinds = [(self.keep_alive, 30), (self.pipeline, 10), (self.upload, 6), (self.bulk, 6), (self.tunnel, 10),
                 (self.refusal, 5), (self.leave_early, 10), (self.leave_during_bulk, 6), (self.leave_a_tunnel, 4),
                 (self.garbage, 8), (self.slow_head, 2)]
        kind = random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        self.counts[kind.__name__] += 1
        writer = None
        try:
            reader, writer = await self.connect()
            left = await asyncio.wait_for(kind(reader, writer), 60)
            if left and random.random() < 0.5:
                writer.transport.abort()  # with unread data this is an RST
        except (Trouble, OSError, EOFError, asyncio.TimeoutError, ValueError, StopIteration) as trouble:
            if kind not in (self.garbage, self.leave_early, self.slow_head):  # their errors are the script's own
                self.troubles[kind.__name__].append("%s: %r" % (kind.__name__, trouble))
        finally:
            if writer:
                writer.close()

    async def client(self, until):
        while time.monotonic() < until:
            await self.one()


async def soak(load, seconds, clients, sample):
    until = time.monotonic() + seconds
    tasks = [asyncio.create_task(load.client(until)) for _ in range(clients)]
    while time.monotonic() < until:
        sample()
        await asyncio.sleep(min(seconds / 40, 5))
    for task in tasks:
        await asyncio.wait_for(task, 90)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary_option(parser)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    use_binary(args.sluice)
    want_descriptors(4096)
    random.seed(args.seed)

    from harness.origin import refusing_port
    keep, port = refusing_port()
    origin = OriginProcess()
    proxy = Proxy(ANY_PORT, 'proxy.timeouts.idle="2s"', 'proxy.timeouts.head="2s"', 'log.level="warn"')
    load = Load(proxy, origin, "127.0.0.1:%d" % port)
    samples = []
    try:
        asyncio.run(soak(load, min(15, args.seconds / 4), args.clients, lambda: None))  # fills pools and caches
        wait_for(lambda: proxy.sockets() <= 8, 20)
        sockets_before, others_before = proxy.sockets(), proxy.descriptors() - proxy.sockets()
        asyncio.run(soak(load, args.seconds, args.clients, lambda: samples.append(proxy.resident())))
        wait_for(lambda: proxy.sockets() <= sockets_before, 20)
        others = proxy.descriptors() - proxy.sockets() - others_before
        lost = proxy.sockets() - sockets_before + max(0, others - PIPE_ENDS)
        alive = proxy.process.poll() is None
        log = proxy.log()
        trouble = proxy.stop()
    finally:
        proxy.remove()
        origin.stop()
        keep.close()
    return report(load, samples, lost, sockets_before, alive, trouble, log)


PIPE_ENDS = 2 * 32 * 2  # workers, pipes that each may keep in stock, ends


def wait_for(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)


def report(load, samples, lost, sockets, alive, trouble, log):
    """Print what was seen; the exit status."""
    quarter = max(1, len(samples) // 4)
    first, last = sorted(samples[:quarter])[quarter // 2], sorted(samples[-quarter:])[quarter // 2]
    growth = (last - first) / 1024
    allowed = max(2048, first / 1024 * 0.1)  # KiB: noise of the allocator
    problems = ["%d × %s" % (len(examples), examples[0]) for examples in load.troubles.values()]
    if growth > allowed:
        problems.append("RSS grew by %.0f KiB" % growth)
    if lost > 0:
        problems.append("%d descriptors lost" % lost)
    if not alive:
        problems.append("the proxy died")
    if trouble:
        problems.append(trouble)
    print("soak: " + ", ".join("%d %s" % (count, name) for name, count in sorted(load.counts.items())))
    print("soak: RSS %.1f MiB in the first quarter, %.1f MiB in the last (median); %d sockets at rest, %d lost"
          % (first / 1048576, last / 1048576, sockets, max(lost, 0)))
    for problem in problems:
        print("soak: " + problem)
    if problems and log.strip():
        print("--- the proxy's log ---\n" + log[-3000:])
    print("soak: %s" % ("%d problems" % len(problems) if problems else "ok"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
