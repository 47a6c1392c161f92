"""SASL and TLS settings for a cluster: a JSON file for each process that connects to Kafka, or one for all.

The file holds `security_protocol`, `sasl_mechanism`, `sasl_plain_username`, `sasl_plain_password`, and for TLS the
paths `ssl_cafile`, `ssl_certfile`, `ssl_keyfile` and `ssl_password`: the names that aiokafka's clients use.
"""

import ssl
from pathlib import Path
from typing import Any

from host.errors import SettingsRefused
from host.json_files import read_json_file
from host.outgoing_tls import outgoing_tls

PLAIN = frozenset({"security_protocol", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password"})
TLS = frozenset({"ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password"})


def settings_file(path: str | Path | None, principal: str) -> Path | None:
    """The file that holds the settings of one principal.

    Args:
        path: a file for all, or a directory with a file `<principal>.json` for each; None or "" for none.
        principal: the role's name.
    """
    if not path:
        return None
    return Path(path) / f"{principal}.json" if Path(path).is_dir() else Path(path)


def client_settings(path: str | Path | None) -> dict[str, Any]:
    """Keyword arguments for any of aiokafka's clients; none without a file.

    Raises:
        SettingsRefused: the file, or one that it names, cannot be read, or it has an unknown setting.
    """
    if not path:
        return {}
    values = _read(Path(path))
    settings: dict[str, Any] = {name: value for name, value in values.items() if name in PLAIN}
    if "SSL" in str(values.get("security_protocol", "")) or TLS & values.keys():
        settings["ssl_context"] = _ssl_context(values, path)
    return settings


def _read(path: Path) -> dict[str, Any]:
    try:
        values = read_json_file(path)
    except (OSError, ValueError) as error:
        raise SettingsRefused(f"the Kafka settings {path} cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise SettingsRefused(f"the Kafka settings {path} must be a JSON object")
    if unknown := sorted(values.keys() - PLAIN - TLS):
        names = ", ".join(unknown)
        raise SettingsRefused(f"the Kafka settings {path} hold unknown names ({names}): remove them")
    return values


def _ssl_context(values: dict[str, Any], path: str | Path) -> ssl.SSLContext:
    try:
        cafile = values.get("ssl_cafile")
        # Only the authorities in the named file are trusted; without one, those of all other connections.
        context = ssl.create_default_context(cafile=cafile) if cafile else outgoing_tls()
        if "ssl_certfile" in values:
            context.load_cert_chain(
                values["ssl_certfile"], values.get("ssl_keyfile"), values.get("ssl_password")
            )
    except (OSError, TypeError) as error:
        raise SettingsRefused(
            f"a TLS file that the Kafka settings {path} name is unusable: {error}"
        ) from error
    return context
