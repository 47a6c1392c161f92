"""Whether the headers that a variable of OpenTelemetry gives an exporter can be sent, without telling any of them."""

from __future__ import annotations

import logging

from opentelemetry.util.re import parse_env_headers

# One above it cannot be written in a header (ISO 8859-1).
CHARACTER_MAX = "\xff"


def keep_unread_headers_secret() -> None:
    """Keep the SDK from writing what it cannot read as a header, such as `api-key: SECRET`, into the log."""
    logging.getLogger(parse_env_headers.__module__).setLevel(logging.ERROR)


def are_headers(text: str) -> bool:
    """True if each part of a variable is a header that the SDK reads and that HTTP can carry.

    One with a line break would be refused only when it is sent, by an error that quotes it.
    """
    keep_unread_headers_secret()
    return all(_is_header(part) for part in text.split(",") if part.strip())


def _is_header(part: str) -> bool:
    found = parse_env_headers(part, liberal=True)
    return bool(found) and all(_is_carried(name) and _is_carried(value) for name, value in found.items())


def _is_carried(text: str) -> bool:
    return text.isprintable() and max(text, default="") <= CHARACTER_MAX
