"""HTTPS seen from inside: what clients and origins see when Sluice ends TLS on both sides."""

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import ssl
import subprocess
import tempfile
import threading
import time
import types

from harness.case import ProxyCase
from harness.message import chunk, read_response, request_bytes, response_bytes
from harness.origin import replying
from harness.proxy import binary
from harness.stream import Ended
from harness.tls import P256, Session, TestAuthority, server_context

HOST = "origin.test"
NAMES = ("origin.test", "other.test", "wrong.test", "late.test", "self.test", "pinned.test", "revoked.test", "mutual.test", "upgraded.test")
RESOLVE = "proxy.resolve={%s}" % ", ".join('"%s" = "127.0.0.1"' % name for name in NAMES)


class TlsCase(ProxyCase):
    """One proxy that looks into every tunnel, and trusts the CA of the tests' origins."""

    policies = {}

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="sluice-tls-")
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        cls.authority = TestAuthority(cls.directory)
        cls.good = cls.authority.certificate("good", ",".join("DNS:" + name for name in NAMES) + ",IP:127.0.0.1")
        cls.settings = (RESOLVE, 'tls.extra_ca="%s"' % cls.authority.path, *cls.more_settings())
        super().setUpClass()
        for name, text in cls.policies.items():
            cls.proxy.write("policies/%s.toml" % name, text)
        deadline = time.monotonic() + 10
        while cls.proxy.log().count("is in force") < len(cls.policies) and time.monotonic() < deadline:
            time.sleep(0.02)
        cls.ca = os.path.join(cls.proxy.directory, "state", "ca-cert.pem")

    @classmethod
    def more_settings(cls):
        return ('tls.intercept="all"',)

    def origin(self, script=None, **options):
        options.setdefault("tls", server_context(self.good))
        return super().origin(script, **options)

    def context(self, ca=None):
        context = ssl.create_default_context(cafile=ca or self.ca)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def inside(self, port, host=HOST, context=None, name=None, proxy=None, session=None):
        """A client's TLS session inside its tunnel to host:port."""
        stream, answer = self.tunnel("%s:%d" % (host, port), proxy=proxy)
        self.assertEqual(answer.status, 200, answer)
        stream.sock = (context or self.context()).wrap_socket(stream.sock, server_hostname=name or host, session=session)
        return stream

    def ask(self, stream, port, path="/", method="GET", host=HOST, fields=(), body=b""):
        lines = ["Host: %s:%d" % (host, port), *fields] + (["Content-Length: %d" % len(body)] if body else [])
        stream.send(request_bytes(method, path, lines, body))
        return read_response(stream, method)


class Interception(TlsCase):
    def test_requests_inside_take_the_ordinary_way(self):
        origin = self.origin(replying(response_bytes(b"inside")))
        client = self.inside(origin.port)
        self.assertEqual(client.sock.selected_alpn_protocol(), "http/1.1")
        for path in ("/a?b=c", "/", "*"):
            method = "OPTIONS" if path == "*" else "GET"
            response = self.ask(client, origin.port, path, method)
            self.assertEqual((response.status, response.body), (200, b"inside"))
        self.assertEqual([r.start for r in origin.requests],
                         ["GET /a?b=c HTTP/1.1", "GET / HTTP/1.1", "OPTIONS * HTTP/1.1"])
        self.assertIn("sluice", origin.requests[0].get("Via"))
        self.assertEqual(origin.requests[0].get("Host"), "%s:%d" % (HOST, origin.port))
        self.assertEqual(len(origin.visits), 1, "the origin's connection is used again")

    def test_an_absolute_target_inside(self):
        origin = self.origin()
        client = self.inside(origin.port)
        response = self.ask(client, origin.port, "https://%s:%d/deep?x" % (HOST, origin.port))
        self.assertEqual(response.status, 200)
        self.assertEqual(origin.requests[0].start, "GET /deep?x HTTP/1.1")

    def test_an_address_as_the_host(self):
        origin = self.origin()
        client = self.inside(origin.port, "127.0.0.1")
        self.assertEqual(self.ask(client, origin.port, host="127.0.0.1").status, 200)
        names = dict(client.sock.getpeercert())["subjectAltName"]
        self.assertEqual(names, (("IP Address", "127.0.0.1"),))

    def test_the_leaf(self):
        origin = self.origin()
        client = self.inside(origin.port)
        certificate = client.sock.getpeercert()
        self.assertEqual(certificate["subjectAltName"], (("DNS", HOST),))
        lived = ssl.cert_time_to_seconds(certificate["notAfter"]) - ssl.cert_time_to_seconds(certificate["notBefore"])
        self.assertLessEqual(lived, 5 * 86400)
        text = subprocess.run(["openssl", "x509", "-noout", "-text"], input=ssl.DER_cert_to_PEM_cert(
            client.sock.getpeercert(binary_form=True)), capture_output=True, text=True, check=True).stdout
        self.assertIn("prime256v1", text)

    def test_the_ca_key_is_the_owners(self):
        self.inside(self.origin().port)
        state = os.path.join(self.proxy.directory, "state")
        for name in ("ca-key.pem", "door.%d" % self.proxy.pid):
            self.assertEqual(os.stat(os.path.join(state, name)).st_mode & 0o777, 0o600, name)

    def test_another_host_inside_is_421(self):
        origin = self.origin()
        for fields in (("Host: other.test",), ("Host: %s:1" % HOST,)):
            client = self.inside(origin.port)
            client.send(request_bytes("GET", "/", fields))
            self.assert_problem(read_response(client), 421, "misdirected")
        self.assertEqual(origin.requests, [])

    def test_another_name_in_the_hello_is_turned_away(self):
        origin = self.origin()
        with self.assertRaisesRegex(ssl.SSLError, "UNRECOGNIZED_NAME"):
            self.inside(origin.port, name="other.test")
        self.assertEqual(origin.visits, [])
        line = "with a client for %s failed: it asked for other.test inside that tunnel" % HOST
        self.assertTrue(origin.wait(lambda: line in self.evidence()), self.evidence())

    def test_a_tunnel_in_a_tunnel_is_refused(self):
        client = self.inside(self.origin().port)
        client.send(request_bytes("CONNECT", "other.test:443", ["Host: other.test:443"]))
        self.assert_problem(read_response(client), 400, "bad-request")

    def test_what_follows_connect_at_once_is_not_lost(self):
        """A client that does not wait for our 200."""
        origin = self.origin()
        client = self.client()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self.context().wrap_bio(incoming, outgoing, server_hostname=HOST)
        with self.assertRaises(ssl.SSLWantReadError):
            session.do_handshake()
        authority = "%s:%d" % (HOST, origin.port)
        client.send(request_bytes("CONNECT", authority, ["Host: " + authority]) + outgoing.read())
        self.assertEqual(read_response(client, "CONNECT").status, 200)
        while True:
            incoming.write(client.read_some())
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                pass
        session.write(request_bytes("GET", "/early", ["Host: " + authority]))
        client.send(outgoing.read())  # the end of the handshake and the request together
        self.assertTrue(origin.wait(lambda: origin.requests))

    def test_large_bodies_both_ways(self):
        body = os.urandom(5 << 20)

        def script(visit):
            while request := visit.read_request():
                visit.send(response_bytes(request.body[::-1]))

        origin = self.origin(script)
        response = self.ask(self.inside(origin.port), origin.port, "/", "POST", body=body)
        self.assertEqual(hashlib.sha256(response.body).digest(), hashlib.sha256(body[::-1]).digest())

    def test_a_slow_reader_holds_the_origin_back(self):
        sent = []

        def script(visit):
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (64 << 20))
            for _ in range(64):
                visit.send(bytes(1 << 20))
                sent.append(1)

        origin = self.origin(script)
        client = self.inside(origin.port)
        client.send(request_bytes("GET", "/", ["Host: %s:%d" % (HOST, origin.port)]))
        client.read_exact(100)
        before = self.proxy.resident()
        self.assertFalse(origin.wait(lambda: len(sent) > 40, 2), "the proxy took it all")
        self.assertLess(self.proxy.resident() - before, 16 << 20)

    def test_a_stream_comes_as_it_is_made(self):
        gate = threading.Event()

        def script(visit):
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            visit.send(chunk(b"data: first\n\n"))
            gate.wait(10)
            visit.send(chunk(b"data: last\n\n") + b"0\r\n\r\n")

        origin = self.origin(script)
        client = self.inside(origin.port)
        client.send(request_bytes("GET", "/", ["Host: %s:%d" % (HOST, origin.port)]))
        client.read_until(b"data: first\n\n")
        gate.set()
        client.read_until(b"data: last\n\n")

    def test_websocket(self):
        switch = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")

        def script(visit):
            visit.read_head()
            visit.send(switch + b"\x81\x05hello")
            while data := visit.read_some():
                visit.send(data[::-1])

        origin = self.origin(script)
        client = self.inside(origin.port)
        response = self.ask(client, origin.port, fields=("Connection: Upgrade", "Upgrade: websocket"))
        self.assertEqual(response.status, 101)
        self.assertEqual(client.read_exact(7), b"\x81\x05hello")
        for frame in (b"abc", os.urandom(300_000)):
            client.send(frame)
            self.assertEqual(len(client.read_exact(len(frame))), len(frame))
        client.close()
        self.assertTrue(origin.wait(lambda: origin.visits[0].closed_at), "the origin's side stayed open")

    def test_websocket_whose_sides_end_one_by_one(self):
        """What one direction still has to say arrives after the other has ended, and the ends are told in TLS."""
        switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        server = server_context(self.good)
        for client_first in (True, False):
            seen = {}

            def script(visit):
                session = Session(visit, server)
                session.read_until(b"\r\n\r\n")
                session.send(switch)
                if client_first:
                    seen["got"] = session.read_to_end()
                    for part in (b"after ", b"your ", b"end"):
                        session.send(part)
                    session.close_notify()
                else:
                    session.send(b"that is all")
                    session.close_notify()
                    seen["got"] = session.read_to_end()
                seen["cleanly"] = session.ended_cleanly

            origin = self.origin(script, tls=None)
            stream, _ = self.tunnel("%s:%d" % (HOST, origin.port))
            client = Session(stream, self.context(), HOST)
            client.send(request_bytes("GET", "/", ["Host: %s:%d" % (HOST, origin.port), "Connection: Upgrade",
                                                   "Upgrade: websocket"]))
            self.assertIn(b" 101 ", client.read_until(b"\r\n\r\n"))
            with self.subTest(client_first=client_first):
                if client_first:
                    client.send(b"last words")
                    client.close_notify()
                    self.assertEqual(client.read_to_end(), b"after your end")
                else:
                    self.assertEqual(client.read_to_end(), b"that is all")
                    client.send(b"but I have more")
                    client.close_notify()
                self.assertTrue(client.ended_cleanly)
                self.assertTrue(origin.wait(lambda: "cleanly" in seen), origin.failures)
                self.assertEqual(seen, {"got": b"last words" if client_first else b"but I have more", "cleanly": True})

    def test_an_emergency_stop_cuts_what_is_inside(self):
        proxy = self.start(*self.settings)
        subprocess.run([binary(), "ca", "init", "--state-dir", proxy.state], check=True, capture_output=True)
        ca = os.path.join(proxy.state, "ca-cert.pem")
        seen = threading.Event()

        def endless(visit):
            visit.read_request()
            visit.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + "5\r\nhello\r\n")
            seen.set()
            visit.wait_end(20)

        stream, ok = self.origin(endless), self.origin()
        streaming = self.inside(stream.port, context=self.context(ca), proxy=proxy)
        resting = self.inside(ok.port, context=self.context(ca), proxy=proxy)
        self.assertEqual(self.ask(resting, ok.port).status, 200)
        streaming.send(request_bytes("GET", "/", ["Host: %s:%d" % (HOST, stream.port)]))
        streaming.read_until(b"hello")
        self.assertTrue(seen.wait(10))
        open(os.path.join(proxy.state, "EMERGENCY_STOP"), "w").close()
        self.assertIsNotNone(streaming.wait_end(1.0))
        self.assertEqual(self.ask(resting, ok.port).status, 503)
        self.assertEqual(len(ok.requests), 1)

    def test_a_body_that_ends_with_the_connection(self):
        """With close_notify it is whole; without, it may not be, and the client must see that."""
        def whole(visit):
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")
            visit.sock.unwrap()

        def cut(visit):
            visit.read_request()
            visit.send(b"HTTP/1.1 200 OK\r\n\r\nsome of it")

        origin = self.origin(whole)
        self.assertEqual(self.ask(self.inside(origin.port), origin.port).body, b"all of it")
        origin = self.origin(cut)
        client = self.inside(origin.port)
        with self.assertRaises(Exception) as raised:
            self.ask(client, origin.port)
        self.assertNotIsInstance(raised.exception, AssertionError)

    def test_sessions_resume_on_both_sides(self):
        reused = []

        def script(visit):
            reused.append(visit.sock.session_reused)
            while visit.read_request():
                visit.send(response_bytes(b"x", "200 OK", "Connection: close"))
                return

        origin = self.origin(script)
        context = self.context()
        session = None
        for turn in range(3):
            client = self.inside(origin.port, context=context, session=session)
            self.assertEqual(client.sock.session_reused, turn > 0)
            self.ask(client, origin.port)
            session = client.sock.session
            client.close()
        self.assertEqual(len(reused), 3)
        self.assertIn(True, reused[1:], "the origin's sessions are made anew each time")

    def test_plain_http_in_a_tunnel(self):
        origin = self.origin(tls=None)
        client, answer = self.tunnel("%s:%d" % (HOST, origin.port))
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.ask(client, origin.port, "/plain").status, 200)
        self.assertIn("sluice", origin.requests[0].get("Via"))

    def test_what_is_neither_tls_nor_http_is_cut_and_explained(self):
        client, _ = self.tunnel("%s:443" % HOST)
        client.send(b"\x00\x01hello")
        client.wait_end(5)
        self.assertTrue(self.origin().wait(lambda: "neither TLS nor HTTP" in self.evidence()), self.evidence())

    def test_a_refusal_comes_inside(self):
        client = self.inside(443, "127.0.0.1")
        response = self.ask(client, 443, host="127.0.0.1")
        self.assertEqual(response.status, 502)
        self.assertEqual(response.get("Sluice-Reason"), "connect")

    def test_a_client_that_does_not_trust_the_ca(self):
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.inside(self.origin().port, context=self.context(self.authority.path))
        origin = self.origin()
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.inside(origin.port, context=self.context(self.authority.path))
        self.assertEqual(self.evidence().count("does not trust the CA"), 1, self.evidence())
        self.assertIn("sluice exec", self.evidence())
        def told():
            done = subprocess.run([binary(), "events", "--json", "--key", HOST, "--state-dir", self.proxy.state],
                                  capture_output=True, text=True, check=True)
            events = [json.loads(line) for line in done.stdout.splitlines()]
            return [event["text"] for event in events if event["kind"] == "alert"]

        self.assertTrue(origin.wait(told))  # it is written a moment later
        self.assertEqual(len(told()), 1)
        self.assertIn("intercept = false into the policy of " + HOST, told()[0])

    def test_a_client_of_tls_1_2_that_does_not_trust_the_ca(self):
        context = self.context(self.authority.path)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        origin = self.origin()
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.inside(origin.port, host="late.test", context=context)
        self.assertTrue(origin.wait(lambda: "refused the certificate for late.test" in self.evidence()), self.evidence())

    def test_a_client_that_leaves_when_it_has_seen_the_certificate(self):
        """Java and GnuTLS do not say why."""
        origin = self.origin()
        client, answer = self.tunnel("self.test:%d" % origin.port)
        self.assertEqual(answer.status, 200)
        received, to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self.context().wrap_bio(received, to_send, server_hostname="self.test")
        with self.assertRaises(ssl.SSLWantReadError):
            session.do_handshake()
        client.send(to_send.read())
        self.assertTrue(client.sock.recv(1))
        client.close()
        line = "self.test failed: it closed the connection; if it does not trust the CA"
        self.assertTrue(origin.wait(lambda: line in self.evidence()), self.evidence())


class SamePath(TlsCase):
    """What is learned of an origin, and what follows from it, is the same inside a tunnel as outside."""

    def enforcing(self, policy):
        proxy = self.start(*self.settings, policy='hosts = ["*"]\n' + policy)
        subprocess.run([binary(), "ca", "init", "--state-dir", proxy.state], check=True, capture_output=True)
        return proxy

    def enter(self, proxy, port):
        return self.inside(port, context=self.context(os.path.join(proxy.state, "ca-cert.pem")), proxy=proxy)

    def test_a_429_shuts_the_host_and_the_refusal_comes_inside(self):
        proxy = self.enforcing("[retry]\nmax = 0\n")
        origin = self.origin(replying(response_bytes(b"slow down", "429 Too Many Requests", "Retry-After: 60")))
        client = self.enter(proxy, origin.port)
        self.assertEqual(self.ask(client, origin.port).status, 429)
        refused = self.ask(client, origin.port)
        problem = self.assert_problem(refused, 503, "breaker-open", HOST)
        self.assertGreater(int(refused.get("Retry-After")), 50)
        self.assertEqual(problem["key"], "%s:%d" % (HOST, origin.port))
        # Another client's CONNECT is answered all the same: it can read why only inside.
        self.assert_problem(self.ask(self.enter(proxy, origin.port), origin.port), 503, "breaker-open")
        self.assertEqual(len(origin.requests), 1)

    def test_a_page_of_a_bot_wall_is_recognised_in_its_compressed_body(self):
        proxy = self.enforcing('[classify]\nmarkers = [{ in = "body", text = "are you a robot" }]\n[retry]\nmax = 0\n')
        page = gzip.compress(b"<html><body>Tell us: are you a robot?</body></html>" * 20)
        origin = self.origin(replying(response_bytes(page, "200 OK", "Content-Type: text/html", "Content-Encoding: gzip")))
        client = self.enter(proxy, origin.port)
        self.assertEqual(self.ask(client, origin.port).body, page)
        self.assert_problem(self.ask(client, origin.port), 503, "breaker-open")
        self.assertEqual(len(origin.requests), 1)

    def test_one_at_a_time_and_the_rest_is_held(self):
        proxy = self.enforcing('[pace]\nmax_concurrency = 1\n[hold]\nmax_wait = "20s"\n')
        gate = threading.Event()
        self.addCleanup(gate.set)

        def script(visit):
            while visit.read_request():
                gate.wait(20)
                visit.send(response_bytes(b"in turn"))

        origin = self.origin(script)
        clients = [self.enter(proxy, origin.port) for _ in range(3)]
        for client in clients:
            client.send(request_bytes("GET", "/", ["Host: %s:%d" % (HOST, origin.port)]))
        self.assertTrue(origin.wait(lambda: origin.requests))
        self.assertFalse(origin.wait(lambda: len(origin.requests) > 1, 0.3), "more than one at once")
        gate.set()
        self.assertEqual([read_response(client).body for client in clients], [b"in turn"] * 3)


class Origins(TlsCase):
    """Whom the proxy takes for the origin."""

    def refusal(self, certificate, host):
        origin = self.origin(tls=server_context(certificate))
        problem = self.assert_problem(self.ask(self.inside(origin.port, host), origin.port, host=host), 502, "tls")
        self.assertEqual(origin.requests, [])
        return problem["detail"]

    def test_a_wrong_name(self):
        self.assertIn("hostname mismatch", self.refusal(self.authority.certificate("wrong", "DNS:right.test"), "wrong.test"))

    def test_an_expired_certificate(self):
        late = self.authority.certificate("late", "DNS:late.test", days=-1)
        self.assertIn("expired", self.refusal(late, "late.test"))

    def test_a_stranger(self):
        alone = TestAuthority(tempfile.mkdtemp(dir=self.directory), "stranger")
        self.assertRegex(self.refusal(alone.certificate("self", "DNS:self.test"), "self.test"), "issuer|self")

    def test_one_that_is_its_own_issuer(self):
        certificate = os.path.join(self.directory, "alone.pem")
        self.authority.openssl("req", "-x509", *P256, "-nodes", "-days", "2", "-subj", "/CN=self.test", "-keyout",
                               certificate.replace(".pem", ".key"), "-out", certificate, "-addext",
                               "subjectAltName=DNS:self.test")
        self.assertIn("self-signed certificate", self.refusal(certificate, "self.test"))

    def test_a_revoked_certificate(self):
        """A list in the file of extra_ca counts, for the CA whose list it is."""
        revoked = self.authority.certificate("revoked", "DNS:revoked.test")
        both = os.path.join(self.directory, "with-list.pem")
        with open(self.authority.path) as ca, open(both, "w") as file:
            file.write(ca.read() + self.authority.revocation_list(revoked))
        other = TestAuthority(tempfile.mkdtemp(dir=self.directory), "other-ca")
        proxy = self.start(RESOLVE, 'tls.intercept="all"', 'tls.extra_ca="%s"' % both,
                           policy='hosts = ["*"]\nmode = "observe"\nextra_ca = "%s"\n' % other.path)
        context = None
        for certificate, host, reason in ((self.good, HOST, None), (revoked, "revoked.test", "certificate revoked"),
                                          (other.certificate("unlisted", "DNS:other.test"), "other.test", None)):
            origin = self.origin(tls=server_context(certificate))
            stream, _ = self.tunnel("%s:%d" % (host, origin.port), proxy=proxy)
            context = context or self.context(os.path.join(proxy.state, "ca-cert.pem"))
            stream.sock = context.wrap_socket(stream.sock, server_hostname=host)
            response = self.ask(stream, origin.port, host=host)
            if reason:
                self.assertIn(reason, self.assert_problem(response, 502, "tls")["detail"])
            else:
                self.assertEqual(response.status, 200, response.body)

    def test_no_tls_at_all(self):
        def script(visit):
            visit.read_some()
            visit.send(response_bytes(b"what was that?", "400 Bad Request"))

        origin = self.origin(script, tls=None)
        response = self.ask(self.inside(origin.port), origin.port)
        self.assert_problem(response, 502, "tls")

    def test_an_origin_that_never_answers_the_hello(self):
        origin = self.origin(lambda visit: threading.Event().wait(8), tls=None)
        slow = self.start(RESOLVE, 'tls.intercept="all"', 'proxy.timeouts.connect="1s"', 'proxy.timeouts.head="5s"')
        ca = os.path.join(slow.directory, "state", "ca-cert.pem")
        stream, _ = self.tunnel("%s:%d" % (HOST, origin.port), proxy=slow)
        stream.sock = self.context(ca).wrap_socket(stream.sock, server_hostname=HOST)
        self.assert_problem(self.ask(stream, origin.port), 504, "connect-timeout")

    def test_old_versions_are_not_spoken(self):
        context = server_context(self.good)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        origin = self.origin(tls=context)
        self.assert_problem(self.ask(self.inside(origin.port), origin.port), 502, "tls")


def with_early_data(session):
    """A session of OpenSSL's, in PEM, that believes it may send 16 KiB early: element 15 of its ASN.1."""
    marks = re.findall("-----.*-----", session)
    der = base64.b64decode("".join(session.split(marks[0])[1].split(marks[1])[0].split()))

    def element(at):
        """Of what lies there: (where its content begins, where it ends)."""
        length, begin = der[at + 1], at + 2
        if length & 0x80:
            begin += length & 0x7f
            length = int.from_bytes(der[at + 2:begin], "big")
        return begin, begin + length

    begin, end = element(0)
    at = begin
    while at < end and der[at] < 0xaf:
        at = element(at)[1]
    content = der[begin:at] + bytes((0xaf, 4, 2, 2, 0x40, 0)) + der[at:end]
    whole = base64.encodebytes(b"\x30\x82" + len(content).to_bytes(2, "big") + content).decode()
    return "%s\n%s%s\n" % (marks[0], whole, marks[1])


class Versions(TlsCase):
    """What our own end offers, as openssl s_client sees it."""

    def s_client(self, *options):
        origin = self.origin()
        command = ["openssl", "s_client", "-proxy", "127.0.0.1:%d" % self.proxy.port, "-connect",
                   "%s:%d" % (HOST, origin.port), "-servername", HOST, "-CAfile", self.ca, *options]
        done = subprocess.run(command, input=b"Q\n", capture_output=True, timeout=20)
        return done.stdout.decode("latin-1") + done.stderr.decode("latin-1")

    def setUp(self):
        super().setUp()
        self.inside(self.origin().port)  # the CA is there from now on

    def test_new_versions(self):
        for option, version in (("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")):
            said = self.s_client(option)
            self.assertIn("Verify return code: 0 (ok)", said)
            self.assertIn(version, said)

    def test_old_versions(self):
        for option in ("-tls1", "-tls1_1"):
            said = self.s_client(option, "-cipher", "ALL:@SECLEVEL=0")
            self.assertIn("alert protocol version", said)

    def test_weak_ciphers(self):
        for cipher in ("AES128-SHA", "ECDHE-ECDSA-AES128-SHA", "AES128-GCM-SHA256"):
            said = self.s_client("-tls1_2", "-cipher", cipher + ":@SECLEVEL=0")
            self.assertIn("handshake failure", said, cipher)

    def test_no_early_data(self):
        """RFC 8446 §2.3: what could be replayed is neither invited nor taken."""
        origin = self.origin()
        session = os.path.join(tempfile.mkdtemp(dir=self.directory), "session")
        early = session + ".early"
        request = request_bytes("GET", "/early", ["Host: %s:%d" % (HOST, origin.port)])
        with open(early, "wb") as file:
            file.write(request)

        def connect(*options):
            process = subprocess.Popen(
                ["openssl", "s_client", "-proxy", "127.0.0.1:%d" % self.proxy.port, "-connect", "%s:%d" % (HOST, origin.port),
                 "-servername", HOST, "-CAfile", self.ca, "-tls1_3", *options],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            said = b""
            process.stdin.write(request.replace(b"/early", b"/late"))
            process.stdin.flush()
            while b"HTTP/1.1 200" not in said and (data := os.read(process.stdout.fileno(), 65536)):
                said += data
            process.stdin.close()
            process.stdin = None
            return (said + process.communicate(timeout=20)[0]).decode("latin-1")

        first = connect("-sess_out", session)
        self.assertIn("Max Early Data: 0", first)
        with open(session) as file:
            allowed = with_early_data(file.read())
        with open(session, "w") as file:
            file.write(allowed)
        second = connect("-sess_in", session, "-early_data", early)
        self.assertIn("Early data was rejected", second)
        self.assertIn("Reused, TLSv1.3", second)
        self.assertEqual([request.target for request in origin.requests], ["/late", "/late"])

    def test_no_renegotiation(self):
        origin = self.origin()
        process = subprocess.Popen(
            ["openssl", "s_client", "-proxy", "127.0.0.1:%d" % self.proxy.port, "-connect", "%s:%d" % (HOST, origin.port),
             "-servername", HOST, "-CAfile", self.ca, "-tls1_2"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = b""
        while b"Verify return code: 0 (ok)" not in said and (data := os.read(process.stdout.fileno(), 65536)):
            said += data
        process.stdin.write(b"R\n")  # s_client's word for it
        process.stdin.flush()
        while b"no renegotiation" not in said and (data := os.read(process.stdout.fileno(), 65536)):
            said += data
        said += process.communicate(timeout=20)[0]
        self.assertIn(b"RENEGOTIATING", said)
        self.assertIn(b"no renegotiation", said)
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(self.ask(self.inside(origin.port), origin.port).status, 200, "it serves others")

    def hello(self):
        """A client's session to be: (the object, what it says first, its two ends)."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self.context().wrap_bio(incoming, outgoing, server_hostname=HOST)
        with self.assertRaises(ssl.SSLWantReadError):
            session.do_handshake()
        return session, outgoing.read(), incoming, outgoing

    def test_a_hello_in_many_records_and_packets(self):
        """RFC 8446 §5.1: a message may be spread over records as its sender likes."""
        origin = self.origin()
        for size, packet in ((1, 7), (50, 1), (200, 1000)):
            session, hello, incoming, outgoing = self.hello()
            body = hello[5:]
            parts = [body[at:at + size] for at in range(0, len(body), size)]
            spread = b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)
            client, _ = self.tunnel("%s:%d" % (HOST, origin.port))
            for at in range(0, len(spread), packet):
                client.send(spread[at:at + packet])
            while True:
                incoming.write(client.read_some())
                try:
                    session.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    pass
            session.write(request_bytes("GET", "/%d" % size, ["Host: %s:%d" % (HOST, origin.port)]))
            client.send(outgoing.read())
            self.assertTrue(origin.wait(lambda: [r for r in origin.requests if r.target == "/%d" % size]))

    def test_oversized_and_broken_hellos(self):
        """Each is turned away at once, not by running out of time, and costs no memory that counts."""
        proxy = self.start('tls.intercept="all"', RESOLVE, 'proxy.timeouts.head="5m"', 'proxy.timeouts.idle="5m"')
        hello = self.hello()[1]
        broken = {
            "a record longer than any may be": b"\x16\x03\x01\x48\x01" + bytes(0x4801),
            "a message that claims 16 MiB": b"\x16\x03\x01\x00\x04\x01\xff\xff\xff" + (b"\x16\x03\x01\x40\x00" + bytes(0x4000)) * 4,
            "a message of another kind": b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
            "no version that there is": b"\x16\x09\x09\x00\x04\x01\x00\x00\x00",
            "empty records without end": b"\x16\x03\x01\x00\x00" * 200,
            "a hello whose lengths do not add up": hello[:9] + bytes([hello[9] ^ 0xff]) + hello[10:43] + b"\xff" + hello[44:],
            "data instead of the rest": hello[:5] + hello[5:] + b"\x17\x03\x03\x00\x05hello",
        }
        # The rest: not in TLS, or in an alert that is encrypted already.
        plainly_told = set(broken) - {"no version that there is", "data instead of the rest"}
        before = proxy.resident()
        for name, bytes_sent in broken.items():
            with self.subTest(name):
                client, _ = self.tunnel("%s:443" % HOST, proxy=proxy)
                client.try_send(bytes_sent)
                self.assertIsNotNone(client.wait_end(20), "it was let be")
                if name in plainly_told and client.end == "eof":
                    self.assertEqual(bytes(client.buffer[:2]), b"\x15\x03", "it was not told why")
        self.assertLess(proxy.resident() - before, 16 << 20)
        state = os.path.join(proxy.state, "ca-cert.pem")
        client = self.inside(443, "127.0.0.1", context=self.context(state), proxy=proxy)
        self.assertEqual(self.ask(client, 443, host="127.0.0.1").status, 502, "it goes on with others")


class Listed(TlsCase):
    """By default only the policies' hosts are looked into; mutual TLS and upgrades go by policy too."""

    @classmethod
    def more_settings(cls):
        cls.client_certificate = cls.authority.certificate("client", "DNS:client.test", client=True)
        cls.policies = {
            "listed": 'hosts = ["other.test"]\nintercept = true\n',
            "pinned": 'hosts = ["pinned.test"]\nintercept = false\n',
            "mutual": 'hosts = ["mutual.test"]\nintercept = true\nclient_cert = "%s"\nclient_key = "%s"\n'
                      % (cls.client_certificate, cls.client_certificate.replace(".pem", ".key")),
            "upgraded": 'hosts = ["upgraded.test"]\nupgrade = true\n',
        }
        return ()

    def issuer(self, host, user=None, proxy=None):
        """Whose certificate a client sees: ours or the origin's."""
        origin = self.origin()
        context = ssl.create_default_context()
        context.load_verify_locations(self.authority.path)
        if os.path.exists(self.ca):
            context.load_verify_locations(self.ca)
        fields = ["Proxy-Authorization: " + user] if user else []
        stream, answer = self.tunnel("%s:%d" % (host, origin.port), fields, proxy=proxy)
        self.assertEqual(answer.status, 200)
        stream.sock = context.wrap_socket(stream.sock, server_hostname=host)
        return stream.sock.getpeercert()["issuer"][0][0][1]

    def setUp(self):
        super().setUp()
        subprocess.run([binary(), "ca", "init", "--state-dir", os.path.join(self.proxy.directory, "state")],
                       check=True, capture_output=True)

    def run_of_exec(self):
        """The place where clients of a run of `sluice exec` find the proxy."""
        command = subprocess.Popen([binary(), "exec", "--state-dir", self.proxy.state, "--", "sh", "-c",
                                    "echo ${https_proxy##*:}; read x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=self.directory))
        self.addCleanup(command.communicate)
        return types.SimpleNamespace(address=("127.0.0.1", int(command.stdout.readline())))

    def test_who_is_looked_into(self):
        run = self.run_of_exec()
        self.assertEqual(self.issuer(HOST), "origin-ca")
        self.assertRegex(self.issuer("other.test"), "^Sluice CA")
        self.assertRegex(self.issuer(HOST, proxy=run), "^Sluice CA")
        self.assertEqual(self.issuer("pinned.test", proxy=run), "origin-ca")
        self.assertEqual(self.issuer(HOST, "Basic am9iLTE6ZXhlYy0wMDA="), "origin-ca")

    def test_a_client_certificate_for_the_origin(self):
        context = server_context(self.good)
        context.load_verify_locations(self.authority.path)
        context.verify_mode = ssl.CERT_REQUIRED
        seen = []

        def script(visit):
            seen.append(visit.sock.getpeercert()["subject"][0][0][1])
            replying(response_bytes(b"known"))(visit)

        origin = self.origin(script, tls=context)
        self.assertEqual(self.ask(self.inside(origin.port, "mutual.test"), origin.port, host="mutual.test").body, b"known")
        self.assertEqual(seen, ["client"])
        for _ in range(6):  # more often than a breaker takes from an origin that is to blame
            response = self.ask(self.inside(origin.port, "other.test"), origin.port, host="other.test")
            problem = self.assert_problem(response, 502, "tls")
            self.assertIn("client_cert", problem["detail"])
        self.assertEqual(len(origin.visits), 1 + 6, "it was tried again")

    def test_upgrade_of_port_80(self):
        """http://host/ and http://host:80/ go to https://host/, and the origin sees no trace of the 80."""
        try:
            origin = self.origin(replying(response_bytes(b"", "302 Found", "Location: https://upgraded.test/there")),
                                 host="127.0.0.43", port=443)
        except OSError as problem:
            self.skipTest("no listening on 127.0.0.43:443: %s" % problem)
        proxy = self.start("proxy.workers=1", 'proxy.resolve={"upgraded.test" = "127.0.0.43"}', 'tls.extra_ca="%s"' % self.authority.path,
                           policy=self.policies["upgraded"])
        for authority in ("upgraded.test", "upgraded.test:80"):
            response = self.fetch("http://%s/x?y" % authority, proxy=proxy)
            self.assertEqual((response.status, response.get("Location")), (302, "https://upgraded.test/there"))
        self.assertEqual([(r.start, r.all("Host")) for r in origin.requests],
                         [("GET /x?y HTTP/1.1", ["upgraded.test"])] * 2)
        self.assertEqual(len(origin.visits), 1, "both are the same place")

    def test_an_upgrade_verifies(self):
        """There is no way back to plain text, and none past a certificate that does not hold."""
        strange = TestAuthority(tempfile.mkdtemp(dir=self.directory), "stranger")
        origin = self.origin(tls=server_context(strange.certificate("upgraded", "DNS:upgraded.test")))
        self.assert_problem(self.fetch("http://upgraded.test:%d/x" % origin.port), 502, "tls")
        wrong = self.origin(tls=server_context(self.authority.certificate("right", "DNS:right.test")))
        self.assertIn("hostname mismatch",
                      self.assert_problem(self.fetch("http://upgraded.test:%d/x" % wrong.port), 502, "tls")["detail"])
        self.assertEqual(origin.requests + wrong.requests, [])

    def test_upgrade(self):
        origin = self.origin()
        response = self.fetch("http://upgraded.test:%d/x" % origin.port)
        self.assertEqual(response.status, 200)
        self.assertEqual(origin.requests[0].start, "GET /x HTTP/1.1")
        bad = self.origin(lambda visit: visit.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), tls=None)
        self.assert_problem(self.fetch("http://upgraded.test:%d/x" % bad.port), 502, "tls")


class BadAuthority(TlsCase):
    def test_a_key_that_others_can_read_is_refused(self):
        state = os.path.join(self.proxy.directory, "state")
        subprocess.run([binary(), "ca", "init", "--state-dir", state], check=True, capture_output=True)
        os.chmod(os.path.join(state, "ca-key.pem"), 0o644)
        _, answer = self.tunnel("%s:443" % HOST)
        problem = self.assert_problem(answer, 502, "tls")
        self.assertIn("can be read or written by others", problem["detail"])
        os.chmod(os.path.join(state, "ca-key.pem"), 0o600)

    def test_a_key_that_the_user_names(self):
        """Everybody may read it, which is warned of; whoever may write it could put another one there."""
        named = TestAuthority(tempfile.mkdtemp(dir=self.directory), "named")
        settings = ['tls.intercept="all"', 'tls.extra_ca="%s"' % self.authority.path,
                    'tls.ca_cert="%s"' % named.path, 'tls.ca_key="%s"' % named.key]
        os.chmod(named.key, 0o644)
        checked = subprocess.run([binary(), "check", *(word for s in settings for word in ("--set", s))],
                                 capture_output=True, text=True, timeout=20)
        self.assertIn("everybody on this machine can read tls.ca_key", checked.stdout + checked.stderr)
        proxy = self.start(RESOLVE, *settings)
        self.inside(self.origin().port, context=self.context(named.path), proxy=proxy)
        self.assertIn("everybody on this machine can read tls.ca_key", proxy.log())
        os.chmod(named.key, 0o620)
        proxy = self.start(RESOLVE, *settings)
        _, answer = self.tunnel("%s:443" % HOST, proxy=proxy)
        self.assertIn("can be read or written by others", self.assert_problem(answer, 502, "tls")["detail"])

    def test_a_ca_below_another_one(self):
        """A client that trusts the root alone is shown what lies between, and not the root."""
        root = TestAuthority(tempfile.mkdtemp(dir=self.directory), "corporate-root")
        chain, key = root.intermediate("corporate-proxies")
        proxy = self.start('tls.intercept="all"', RESOLVE, 'tls.extra_ca="%s"' % self.authority.path,
                           'tls.ca_cert="%s"' % chain, 'tls.ca_key="%s"' % key)
        origin = self.origin()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.context(root.path)
            context.maximum_version = version
            client = self.inside(origin.port, context=context, proxy=proxy)
            self.assertEqual(self.ask(client, origin.port).status, 200)
        shown = subprocess.run(["openssl", "s_client", "-proxy", "127.0.0.1:%d" % proxy.port, "-connect",
                                "%s:%d" % (HOST, origin.port), "-servername", HOST, "-CAfile", root.path, "-showcerts"],
                               input=b"Q\n", capture_output=True, timeout=20).stdout.decode()
        self.assertEqual(shown.count("BEGIN CERTIFICATE"), 2, shown)
        self.assertIn("Verify return code: 0 (ok)", shown)

    def test_a_leaf_never_outlives_a_ca_that_ends_soon(self):
        soon = TestAuthority(tempfile.mkdtemp(dir=self.directory), "soon", days=1)
        os.chmod(soon.key, 0o600)
        proxy = self.start('tls.intercept="all"', RESOLVE, 'tls.extra_ca="%s"' % self.authority.path,
                           'tls.ca_cert="%s"' % soon.path, 'tls.ca_key="%s"' % soon.key)
        client = self.inside(self.origin().port, context=self.context(soon.path), proxy=proxy)
        ends = ssl._ssl._test_decode_cert(soon.path)["notAfter"]
        self.assertEqual(client.sock.getpeercert()["notAfter"], ends)

    def test_a_new_one_is_taken_up_by_a_running_proxy(self):
        proxy = self.start('tls.intercept="all"', RESOLVE, 'tls.extra_ca="%s"' % self.authority.path)
        init = [binary(), "ca", "init", "--state-dir", proxy.state]
        subprocess.run(init, check=True, capture_output=True)
        path = os.path.join(proxy.state, "ca-cert.pem")
        origin = self.origin()
        self.inside(origin.port, context=self.context(path), proxy=proxy)
        subprocess.run([*init, "--force"], check=True, capture_output=True)
        deadline = time.monotonic() + 15
        while True:
            try:
                self.inside(origin.port, context=self.context(path), proxy=proxy)
                break
            except ssl.SSLCertVerificationError:
                self.assertLess(time.monotonic(), deadline, "the old CA signs on")
                time.sleep(0.05)


del TlsCase  # a base, not a test
