"""The settings of the gRPC role, from the plain text that every role receives at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.identity.keys import ISSUERS
from gateway.identity.oidc_settings import OidcSettings, read_oidc
from gateway.settings import DEFAULT_GRPC_CALLS_AT_ONCE
from host.errors import SettingsRefused


@dataclass(frozen=True, slots=True)
class RpcSettings:
    """The settings of the gRPC role.

    Attributes:
        gateway_url: the gateway that it asks.
        host, port: where it listens; port 0 for any free one.
        tls: a directory with `tls.crt` and `tls.key` (PEM); None for plain text.
        issuers: the file of the issuers' public keys; None if the gateway alone verifies tokens.
        oidc: the identity provider that the installation trusts; None for none.
        calls_at_once: open calls of one subject.
    """

    gateway_url: str
    host: str
    port: int
    tls: Path | None = None
    issuers: Path | None = None
    oidc: OidcSettings | None = None
    calls_at_once: int = DEFAULT_GRPC_CALLS_AT_ONCE

    def address(self, port: int) -> str:
        """The address for clients, with a port; that of an IPv6 host is in brackets."""
        return f"[{self.host}]:{port}" if ":" in self.host else f"{self.host}:{port}"


def read_rpc_settings(settings: Mapping[str, str]) -> RpcSettings:
    """Read `grpc_gateway_url`, `grpc_host`, `grpc_port`, `grpc_tls`, `grpc_calls_at_once`, `keys_dir` and `oidc_…`.

    Raises:
        SettingsRefused: one is missing or wrong.
    """
    tls, keys_dir = settings.get("grpc_tls", ""), settings.get("keys_dir", "")
    try:
        read = RpcSettings(
            gateway_url=settings["grpc_gateway_url"],
            host=settings.get("grpc_host") or "127.0.0.1",
            port=int(settings["grpc_port"]),
            tls=Path(tls) if tls else None,
            issuers=Path(keys_dir) / ISSUERS if keys_dir else None,
            oidc=read_oidc(settings),
            calls_at_once=int(settings.get("grpc_calls_at_once") or DEFAULT_GRPC_CALLS_AT_ONCE),
        )
    except (KeyError, ValueError) as error:
        raise SettingsRefused(f"The settings of the gRPC role cannot be used: {error!r}.") from error
    if read.calls_at_once < 1:
        raise SettingsRefused("grpc_calls_at_once must be 1 or more: with less, no call would be accepted")
    return read
