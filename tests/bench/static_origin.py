#!/usr/bin/python3
"""An origin on one event loop: keep-alive, 1 KiB for every GET, /bytes/N for more, uploads are counted.
Prints its port and runs until killed."""

import asyncio
import re

PAGE = b"x" * 1024
BLOCK = b"y" * 65536


class Connection(asyncio.Protocol):
    """Reads requests with Content-Length or none; that is what the load sends."""

    def __init__(self):
        self.buffer = b""
        self.skip = 0  # body bytes of an upload still to come
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport):
        self.transport = transport

    def pause_writing(self):
        self.writable.clear()

    def resume_writing(self):
        self.writable.set()

    def connection_lost(self, _error):
        self.writable.set()

    def data_received(self, data):
        if self.skip:
            used = min(self.skip, len(data))
            self.skip -= used
            data = data[used:]
            if self.skip:
                return
            self.answer(PAGE)
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head, self.buffer = self.buffer[:end], self.buffer[end + 4:]
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            if length:
                self.skip = int(length[1]) - len(self.buffer)
                self.buffer = b""
                if self.skip > 0:
                    return
                self.skip = 0
            bulk = re.match(rb"GET /bytes/(\d+) ", head)
            if bulk:
                asyncio.get_running_loop().create_task(self.send_bulk(int(bulk[1])))
            else:
                self.answer(PAGE)

    def answer(self, body):
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    async def send_bulk(self, size):
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        while size:
            await self.writable.wait()
            if self.transport.is_closing():
                return
            part = BLOCK[:size]
            self.transport.write(part)
            size -= len(part)


async def main():
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
