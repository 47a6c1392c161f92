"""A company's own certificate authority, and a server on loopback that only its certificate speaks for."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.servers.threaded import serving

HOST = "localhost"


@dataclass(frozen=True)
class Authority:
    """Files of one authority: its own certificate, and what a server needs."""

    ca_file: Path
    chain: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain, self.key)
        return context


def make_authority(directory: Path) -> Authority:
    """An authority of today, and a certificate of it for this machine."""
    directory.mkdir(parents=True, exist_ok=True)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Example Company CA")])
    by = ca_key.public_key()
    ca = _certificate(ca_name, by, ca_name, by, is_ca=True).sign(ca_key, hashes.SHA256())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    leaf = (
        _certificate(name, key.public_key(), ca_name, by, is_ca=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST), address]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    made = Authority(directory / "ca.pem", directory / "server.pem", directory / "server.key")
    made.ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    made.chain.write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return made


def _certificate(
    name: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer: x509.Name,
    issued_by: ec.EllipticCurvePublicKey,
    *,
    is_ca: bool,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issued_by), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


@dataclass
class TlsServer:
    """Answers every request over TLS with one body; `reached` has what came."""

    port: int = 0
    body: bytes = b"{}"
    reached: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"


@contextmanager
def serving_tls(authority: Authority, body: bytes = b"{}") -> Iterator[TlsServer]:
    """A server that speaks HTTPS."""
    found = TlsServer(body=body)

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            found.reached.append(self.path)
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(found.body)))
            self.end_headers()
            self.wfile.write(found.body)

        do_GET = do_POST = do_PUT = _answer

        def log_message(self, *args: Any) -> None:
            return None

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Who does not believe the certificate hangs up; that is what the tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    # The handshake is made by the thread that answers, so that one who hangs up in it disturbs nobody.
    server.socket = authority.server_context().wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    found.port = server.server_port
    with serving(server):
        yield found
