"""The certificate authorities that Placet trusts, the same for every TLS connection that it opens.

1. The authorities of the system, or those of OpenSSL's own variables `SSL_CERT_FILE` and `SSL_CERT_DIR`.
2. In addition those in the file that `PLACET_CA_FILE` names: a company's own.

The client distribution has the same rule (`placet.tls`). docs/operations.md, TLS.
"""

import os
import ssl
from pathlib import Path

CA_FILE = "PLACET_CA_FILE"
# The variables that OpenSSL and requests read, in libraries that make their connections themselves.
SSL_CERT_FILE, REQUESTS_CA_BUNDLE = "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"
_CERTIFICATE_FILES = {".pem", ".crt", ".0"}


class TlsRefused(OSError):
    """A file of certificate authorities cannot be used; the message names the file and its variable."""


def outgoing_tls() -> ssl.SSLContext:
    """The TLS context by which Placet's clients check a server's certificate and name.

    Raises:
        TlsRefused: a named file cannot be read, or contains no certificate.
    """
    for variable in (CA_FILE, SSL_CERT_FILE):
        _check_readable(variable)
    context = ssl.create_default_context()
    if path := os.environ.get(CA_FILE):
        try:
            context.load_verify_locations(path)
        except OSError as error:
            raise TlsRefused(_sentence(CA_FILE, path, error)) from error
    return context


def tls_for(url: str) -> ssl.SSLContext:
    """The TLS context for a server at an address; authorities are read only if it uses TLS.

    Raises:
        TlsRefused: as `outgoing_tls`.
    """
    if url.lower().startswith("https:"):
        return outgoing_tls()
    # It trusts no authority.
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def trust_for_libraries(path: Path) -> None:
    """Let libraries that make their own connections in this process trust the same authorities.

    Args:
        path: the file to which the authorities are written.

    Raises:
        TlsRefused: as `outgoing_tls`, or the file cannot be written.
    """
    outgoing_tls()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(b"\n".join(found.read_bytes() for found in _sources()))
    except OSError as error:
        raise TlsRefused(f"the certificate authorities cannot be written to {path}: {error}") from error
    os.environ[SSL_CERT_FILE] = os.environ[REQUESTS_CA_BUNDLE] = str(path)


def _sources() -> list[Path]:
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        found = [Path(paths.cafile)]
    else:
        directory = Path(paths.capath) if paths.capath else None
        listed = sorted(directory.iterdir()) if directory else []
        found = [one for one in listed if one.suffix in _CERTIFICATE_FILES and one.is_file()]
    own = os.environ.get(CA_FILE)
    return [*found, Path(own)] if own else found


def _check_readable(variable: str) -> None:
    """Refuse a missing file: OpenSSL itself ignores it, and then trusts no authority."""
    path = os.environ.get(variable)
    if not path:
        return
    try:
        Path(path).read_bytes()
    except OSError as error:
        raise TlsRefused(_sentence(variable, path, error)) from error


def _sentence(variable: str, path: str, error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{variable} names {path}, which cannot be used ({reason}): give a file of certificates in PEM"
