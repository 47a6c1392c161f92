"""HTTP clients of the servers, with the company's certificate authorities and the environment's proxy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from host.outgoing_tls import outgoing_tls


class ProxyUnusable(Exception):
    """The environment names a proxy that cannot be used; the message is one sentence that says what to do."""


def http_client(**settings: Any) -> httpx.AsyncClient:
    """An HTTP client that trusts the same authorities as `outgoing_tls`, with httpx's own settings.

    Raises:
        TlsRefused: as `outgoing_tls`.
        ProxyUnusable: the environment's proxy cannot be used.
    """
    tls = outgoing_tls()
    with proxy_checked():
        return httpx.AsyncClient(verify=tls, **settings)


@contextmanager
def proxy_checked() -> Iterator[None]:
    """Translate errors in making a client of httpx whose own settings are known to be good.

    Raises:
        ProxyUnusable: the environment's proxy cannot be used.
    """
    try:
        yield
    except (ValueError, httpx.InvalidURL):
        # Not chained: the reason can quote the proxy's password.
        raise ProxyUnusable(
            "The environment names a proxy that cannot be used: correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, or "
            "name the host in NO_PROXY."
        ) from None
