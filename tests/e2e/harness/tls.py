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

    def __init__(self, directory, name="origin-ca"):
        self.directory = directory
        self.path = os.path.join(directory, name + ".pem")
        self.key = os.path.join(directory, name + ".key")
        self.openssl("req", "-x509", *P256, "-nodes", "-days", "30", "-subj", "/CN=" + name,
                     "-keyout", self.key, "-out", self.path)

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
