"""The settings of the gRPC role, from the plain text that every role receives at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from host.errors import SettingsRefused


@dataclass(frozen=True, slots=True)
class RpcSettings:
    """The settings of the gRPC role.

    Attributes:
        gateway_url: the gateway that it asks.
        host, port: where it listens; port 0 for any free one.
        tls: a directory with `tls.crt` and `tls.key` (PEM); None for plain text.
    """

    gateway_url: str
    host: str
    port: int
    tls: Path | None = None

    def address(self, port: int) -> str:
        """The address for clients, with a port; that of an IPv6 host is in brackets."""
        return f"[{self.host}]:{port}" if ":" in self.host else f"{self.host}:{port}"


def read_rpc_settings(settings: Mapping[str, str]) -> RpcSettings:
    """Read `grpc_gateway_url`, `grpc_host`, `grpc_port` and `grpc_tls`.

    Raises:
        SettingsRefused: one is missing or wrong.
    """
    tls = settings.get("grpc_tls", "")
    try:
        return RpcSettings(
            gateway_url=settings["grpc_gateway_url"],
            host=settings.get("grpc_host") or "127.0.0.1",
            port=int(settings["grpc_port"]),
            tls=Path(tls) if tls else None,
        )
    except (KeyError, ValueError) as error:
        raise SettingsRefused(f"The settings of the gRPC role cannot be used: {error!r}.") from error
