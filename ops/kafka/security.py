"""SASL and TLS for a cluster that asks for them: a JSON file of aiokafka's client settings.

The file holds `security_protocol`, `sasl_mechanism`, `sasl_plain_username`, `sasl_plain_password`, and for
TLS the paths `ssl_cafile`, `ssl_certfile`, `ssl_keyfile` and `ssl_password`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aiokafka.helpers import create_ssl_context

from ops.errors import UsageError

PLAIN = frozenset({"security_protocol", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password"})
TLS = {
    "ssl_cafile": "cafile",
    "ssl_certfile": "certfile",
    "ssl_keyfile": "keyfile",
    "ssl_password": "password",
}


def client_settings(path: Path | None) -> dict[str, Any]:
    """Keyword arguments for any of aiokafka's clients; none without a file.

    Raises:
        UsageError: The file cannot be read, or holds a setting that is not known.
    """
    if path is None:
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        unknown = set(values) - PLAIN - set(TLS)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"The Kafka settings {path} cannot be read: {error}.") from error
    if unknown:
        names = ", ".join(sorted(unknown))
        raise UsageError(f"The Kafka settings {path} hold unknown names ({names}): remove them.")
    settings = {name: value for name, value in values.items() if name in PLAIN}
    tls = {argument: values[name] for name, argument in TLS.items() if name in values}
    if tls or "SSL" in values.get("security_protocol", ""):
        settings["ssl_context"] = create_ssl_context(**tls)
    return settings
