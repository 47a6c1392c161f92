"""The certificate authorities that a client trusts: the system's, and in addition a company's own.

1. The certificate authorities of the system, or those of OpenSSL's own variables `SSL_CERT_FILE` and `SSL_CERT_DIR`;
   if the system has none, those of certifi.
2. In addition those in the file that `PLACET_CA_FILE` names.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import certifi

from placet.config import NotConfigured

CA_FILE = "PLACET_CA_FILE"


def outgoing_tls() -> ssl.SSLContext:
    """The TLS context that checks a server's certificate and name, for every transport.

    Raises:
        NotConfigured: a named file cannot be read, or contains no certificate.
    """
    # OpenSSL itself ignores a missing file, and then trusts no authority.
    for variable in (CA_FILE, "SSL_CERT_FILE"):
        if path := os.environ.get(variable):
            _check(variable, path)
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not any((paths.cafile, paths.capath)) and not context.get_ca_certs():
        context.load_verify_locations(certifi.where())
    if path := os.environ.get(CA_FILE):
        try:
            context.load_verify_locations(path)
        except OSError as error:
            raise _refused(CA_FILE, path, error) from error
    return context


def tls_for(url: str) -> ssl.SSLContext:
    """The TLS context for a server at an address; authorities are read only if it uses TLS.

    Raises:
        NotConfigured: as `outgoing_tls`.
    """
    if url.lower().startswith(("https:", "wss:")):
        return outgoing_tls()
    # It trusts no authority.
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _check(variable: str, path: str) -> None:
    try:
        Path(path).read_bytes()
    except OSError as error:
        raise _refused(variable, path, error) from error


def _refused(variable: str, path: str, error: OSError) -> NotConfigured:
    reason = error.strerror or str(error) or type(error).__name__
    return NotConfigured(
        f"{variable} names {path}, which cannot be used ({reason}): give a file of certificates in PEM"
    )
