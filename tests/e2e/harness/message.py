"""HTTP/1.1 messages as the tests read them: strict about framing, so that a sloppy proxy shows."""

from harness.stream import Ended


class Truncated(Exception):
    """The message was cut: no clean end. Carries what had arrived."""

    def __init__(self, message, how):
        super().__init__("cut (%s) after %d body bytes: %s" % (how, len(message.body), message.start))
        self.message = message
        self.how = how


class Message:
    def __init__(self, head):
        self.head = head
        lines = head.decode("latin-1").split("\r\n")
        self.start = lines[0]
        self.fields = parse_fields(lines[1:])
        self.body = b""
        self.trailers = []

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name, default=None):
        values = self.all(name)
        return values[0] if values else default

    def has(self, name):
        return bool(self.all(name))

    @property
    def method(self):
        return self.start.split(" ")[0]

    @property
    def target(self):
        return self.start.split(" ")[1]

    @property
    def status(self):
        return int(self.start.split(" ")[1])

    def __repr__(self):
        return "%s %r %r" % (self.start, self.fields, self.body[:300])


def parse_fields(lines):
    fields = []
    for line in lines:
        if not line:
            continue
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise ValueError("not a field line: %r" % line)
        fields.append((name, value.strip(" \t")))
    return fields


def read_head(stream):
    return Message(stream.read_until(b"\r\n\r\n"))


def read_request(stream):
    request = read_head(stream)
    read_request_body(stream, request)
    return request


def read_request_body(stream, request):
    if request.has("Transfer-Encoding"):
        read_chunks(stream, request)
    else:
        read_length(stream, request)


def read_response(stream, method="GET"):
    """The next final response. Interim ones are kept in its `interim`."""
    interim = []
    response = read_head(stream)
    while 100 <= response.status < 200 and response.status != 101:
        interim.append(response)
        response = read_head(stream)
    response.interim = interim
    response.until_close = False
    if method == "HEAD" or response.status in (101, 204, 304):
        return response
    if method == "CONNECT" and response.status // 100 == 2:
        return response
    if response.has("Transfer-Encoding"):
        read_chunks(stream, response)
    elif response.has("Content-Length"):
        read_length(stream, response)
    else:
        response.until_close = True
        response.body = stream.read_to_end()
        if stream.end != "eof":
            raise Truncated(response, stream.end)
    return response


def read_length(stream, message):
    lengths = message.all("Content-Length")
    if len(set(lengths)) > 1:
        raise ValueError("two lengths: %r" % lengths)
    try:
        message.body = stream.read_exact(int(lengths[0])) if lengths else b""
    except Ended as end:
        message.body = end.got
        raise Truncated(message, end.how) from None


def read_chunks(stream, message):
    if [value.lower() for value in message.all("Transfer-Encoding")] != ["chunked"]:
        raise ValueError("not plainly chunked: %r" % message.all("Transfer-Encoding"))
    if message.has("Content-Length"):
        raise ValueError("both chunked and a length")
    parts = []
    try:
        while True:
            size = int(stream.read_until(b"\r\n").split(b";")[0], 16)
            if size == 0:
                break
            data = stream.read_exact(size + 2)
            if data[-2:] != b"\r\n":
                raise ValueError("a chunk does not end in CRLF")
            parts.append(data[:-2])
        lines = []
        while True:
            line = stream.read_until(b"\r\n").decode("latin-1")[:-2]
            if not line:
                break
            lines.append(line)
        message.trailers = parse_fields(lines)
    except Ended as end:
        parts.append(end.got)
        message.body = b"".join(parts)
        raise Truncated(message, end.how) from None
    message.body = b"".join(parts)


def request_bytes(method, target, fields=(), body=b"", version="HTTP/1.1"):
    """Exactly these fields, in this order; nothing is added."""
    lines = ["%s %s %s" % (method, target, version), *fields, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def response_bytes(body=b"ok", status="200 OK", *fields):
    """A response with Content-Length and the given fields."""
    lines = ["HTTP/1.1 " + status, "Content-Length: %d" % len(body), *fields, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)
