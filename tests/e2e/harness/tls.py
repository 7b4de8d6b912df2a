"""Certificates made by openssl, good and bad ones, for origins that speak TLS."""

import os
import ssl
import subprocess

P256 = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")


def make_certificate(directory):
    """The path of a PEM file that is its own CA; the key lies beside it."""
    certificate, key = os.path.join(directory, "origin.pem"), os.path.join(directory, "origin.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate,
                    "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"], check=True, capture_output=True)
    return certificate


def server_context(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.replace(".pem", ".key"))
    return context


class TestAuthority:
    """A CA of the tests' own, and whatever certificates an origin should not have."""

    def __init__(self, directory, name="origin-ca", days=30):
        self.directory = directory
        self.path = os.path.join(directory, name + ".pem")
        self.key = os.path.join(directory, name + ".key")
        self.openssl("req", "-x509", *P256, "-nodes", "-days", str(days), "-subj", "/CN=" + name,
                     "-keyout", self.key, "-out", self.path)

    def intermediate(self, name):
        """A CA below this one: the paths of its chain (itself, then this one) and of its key."""
        base = os.path.join(self.directory, name)
        self.openssl("req", "-new", *P256, "-nodes", "-subj", "/CN=" + name, "-keyout", base + ".key", "-out", base + ".csr")
        with open(base + ".ext", "w") as file:
            file.write("basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"
                       "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n")
        self.openssl("x509", "-req", "-in", base + ".csr", "-CA", self.path, "-CAkey", self.key, "-CAcreateserial",
                     "-days", "10", "-extfile", base + ".ext", "-out", base + ".pem")
        with open(self.path) as root, open(base + ".pem", "a") as chain:
            chain.write(root.read())
        os.chmod(base + ".key", 0o600)
        return base + ".pem", base + ".key"

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def revocation_list(self, *certificates):
        """A PEM text: the CA's list, with these certificates in it."""
        index, config = os.path.join(self.directory, "index.txt"), os.path.join(self.directory, "ca.cnf")
        open(index, "w").close()
        with open(config, "w") as file:
            file.write("[ca]\ndefault_ca = it\n[it]\ndatabase = %s\ndefault_md = sha256\ndefault_crl_days = 2\n" % index)
        signer = ("-config", config, "-cert", self.path, "-keyfile", self.key)
        for certificate in certificates:
            self.openssl("ca", *signer, "-revoke", certificate)
        self.openssl("ca", *signer, "-gencrl", "-out", index + ".crl")
        with open(index + ".crl") as file:
            return file.read()

    def certificate(self, name, names, days=2, client=False):
        """The path of a PEM file with the certificate; `names` as in "DNS:a.test,IP:127.0.0.1"."""
        base = os.path.join(self.directory, name)
        self.openssl("req", "-new", *P256, "-nodes", "-subj", "/CN=" + name, "-keyout", base + ".key",
                     "-out", base + ".csr")
        with open(base + ".ext", "w") as file:
            file.write("subjectAltName=%s\nextendedKeyUsage=%s\n" % (names, "clientAuth" if client else "serverAuth"))
        self.openssl("x509", "-req", "-in", base + ".csr", "-CA", self.path, "-CAkey", self.key, "-CAcreateserial",
                     "-days", str(days), "-extfile", base + ".ext", "-out", base + ".pem")
        return base + ".pem"


class Session:
    """TLS over a stream, byte by byte under the test's control, so that each direction ends by itself."""

    def __init__(self, stream, context, server_hostname=None):
        self.stream = stream
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.ended_cleanly = None  # whether the peer said so in TLS (RFC 8446 §6.1)
        self.object = context.wrap_bio(self.incoming, self.outgoing, server_side=server_hostname is None,
                                       server_hostname=server_hostname)
        while True:
            try:
                self.object.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.flush()
                self.more()
        self.flush()

    def flush(self):
        if data := self.outgoing.read():
            self.stream.send(data)

    def more(self):
        """False at the end of the stream."""
        data = self.stream.read_some()
        self.incoming.write(data)
        return bool(data)

    def send(self, data):
        self.object.write(data)
        self.flush()

    def close_notify(self):
        """We send no more; what the peer still sends can be read."""
        try:
            self.object.unwrap()
        except ssl.SSLWantReadError:
            pass
        self.flush()

    def read_until(self, mark):
        got = b""
        while mark not in got:
            data = self.read()
            if not data:
                raise EOFError("the peer ended after %r" % got)
            got += data
        return got

    def read(self):
        """Some plain text, or b"" at the end."""
        while True:
            try:
                if data := self.object.read(1 << 16):
                    return data
                self.ended_cleanly = True
                return b""
            except ssl.SSLZeroReturnError:
                self.ended_cleanly = True
                return b""
            except ssl.SSLWantReadError:
                self.flush()
                if not self.more():
                    self.ended_cleanly = False
                    return b""

    def read_to_end(self):
        return b"".join(iter(self.read, b""))
