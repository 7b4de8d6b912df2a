"""The origin that real clients visit: a page, an upload, a stream, a redirect, a git repository."""

import hashlib
import os
import subprocess
import threading

from harness.message import chunk, response_bytes
from harness.origin import Origin


class Site(Origin):
    def __init__(self, tls=None, repositories=None):
        self.repositories = repositories  # a directory with bare git repositories, or None
        self.seen_first = threading.Event()  # set by the test when the client has the first bytes
        self.too_much = 0  # how many requests are answered with 429 first
        self.streamed = None  # whether the client had the first bytes before the last were sent
        super().__init__(self.serve_site, tls=tls)

    def serve_site(self, visit):
        while request := visit.read_request():
            path = request.target.partition("?")[0]
            if self.too_much > 0:
                self.too_much -= 1
                visit.send(response_bytes(b"slow down\n", "429 Too Many Requests", "Retry-After: 1"))
            elif path == "/hello":
                visit.send(response_bytes(b"hello\n", "200 OK", "Content-Type: text/plain"))
            elif path == "/upload":
                digest = hashlib.sha256(request.body).hexdigest()
                visit.send(response_bytes(digest.encode() + b"\n", "200 OK", "Content-Type: text/plain"))
            elif path == "/redirect":
                visit.send(response_bytes(b"", "302 Found", "Location: " + self.url("/hello")))
            elif path == "/stream":
                self.send_stream(visit)
            elif path.startswith("/git-moved/"):
                moved = request.target.replace("/git-moved/", "/git/", 1)
                visit.send(response_bytes(b"", "301 Moved Permanently", "Location: " + self.url(moved)))
            elif path.startswith("/git/") and self.repositories:
                visit.send(self.run_git(request))
            else:
                visit.send(response_bytes(b"no such page\n", "404 Not Found"))

    def send_stream(self, visit):
        """The last line leaves only when the test has seen the first one in the client's hands."""
        visit.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        visit.send(chunk(b"first\n"))
        self.streamed = self.seen_first.wait(10)
        visit.send(chunk(b"last\n") + b"0\r\n\r\n")

    def run_git(self, request):
        """git http-backend as a CGI program (RFC 3875)."""
        path, _, query = request.target.partition("?")
        environment = dict(
            os.environ, GIT_PROJECT_ROOT=self.repositories, GIT_HTTP_EXPORT_ALL="1", REMOTE_USER="tester",
            PATH_INFO=path[len("/git"):], QUERY_STRING=query, REQUEST_METHOD=request.method,
            CONTENT_TYPE=request.get("Content-Type", ""), CONTENT_LENGTH=str(len(request.body)),
            HTTP_CONTENT_ENCODING=request.get("Content-Encoding", ""), GIT_CONFIG_NOSYSTEM="1",
            GIT_PROTOCOL=request.get("Git-Protocol", ""))
        answer = subprocess.run(["git", "http-backend"], input=request.body, env=environment,
                                capture_output=True, check=True).stdout
        head, _, body = answer.partition(b"\r\n\r\n")
        fields = [line for line in head.decode("latin-1").split("\r\n") if line]
        status = next((line[8:] for line in fields if line.startswith("Status: ")), "200 OK")
        return response_bytes(body, status, *[line for line in fields if not line.startswith("Status: ")])
