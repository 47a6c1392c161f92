"""The shipped schemas in a schema registry (Karapace, Confluent, Apicurio), under exactly their own ids.

An import is: 1 ask for every id, and write nothing if one of them stands for another schema · 2 register what is
missing, in the order of ids, in IMPORT mode where the registry has one · 3 refuse any other id than the shipped.
A registry without IMPORT mode gives ids itself, from 1 on: an empty one gives the shipped ids.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from host.outgoing_http import ProxyUnusable, proxy_checked
from host.outgoing_tls import TlsRefused, outgoing_tls
from ops.errors import OpsError
from schemas.registry import Registry, SchemaEntry, builtin

TIMEOUT_S = 10.0
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class SchemaRegistryError(OpsError):
    """The schema registry does not have, and does not take, the shipped schemas under their ids."""


def import_from_environment(environ: Mapping[str, str] = os.environ) -> int:
    """Import into the registry that `SCHEMA_REGISTRY_URL` names; nothing to do where it is not set.

    Returns:
        How many schemas were missing there.

    Raises:
        SchemaRegistryError: see `import_schemas`.
    """
    url = environ.get("SCHEMA_REGISTRY_URL", "")
    return import_schemas(url) if url else 0


def import_schemas(
    url: str, book: Registry | None = None, transport: httpx.BaseTransport | None = None
) -> int:
    """Have every shipped schema in a registry under its own id.

    Args:
        url: the registry's base URL; user and password may stand in it.
        book: the schemas; the shipped ones by default.
        transport: how the registry is reached; by HTTP by default.

    Returns:
        How many schemas were missing there.

    Raises:
        SchemaRegistryError: it cannot be reached, or has or gives an id for something else. Do not start.
    """
    entries = sorted((book or builtin()).by_id.values(), key=lambda entry: entry.schema_id)
    headers = {"Content-Type": CONTENT_TYPE, "Accept": f"{CONTENT_TYPE}, application/json"}
    try:
        address = httpx.URL(url)
        with proxy_checked():
            made = httpx.Client(
                base_url=address,
                headers=headers,
                timeout=TIMEOUT_S,
                transport=transport,
                verify=outgoing_tls(),
            )
        with made as client:
            missing = [entry for entry in entries if not _has(client, entry)]
            for entry in missing:
                _register(client, entry)
    except ProxyUnusable as error:
        raise SchemaRegistryError(str(error)) from error
    except (httpx.HTTPError, httpx.InvalidURL, TlsRefused) as error:
        raise SchemaRegistryError(
            f"The schema registry at {_shown(url)} does not answer ({error}): start it, or correct "
            "SCHEMA_REGISTRY_URL."
        ) from error
    return len(missing)


def _has(client: httpx.Client, entry: SchemaEntry) -> bool:
    answer = client.get(f"/schemas/ids/{entry.schema_id}")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return False
    try:
        found = json.loads(_body(answer)["schema"])
    except (KeyError, ValueError) as error:
        raise _unexpected(answer) from error
    if found != entry.schema:
        raise SchemaRegistryError(
            f"Schema id {entry.schema_id} in the registry at {_shown(str(client.base_url))} is not "
            f"{entry.subject} version {entry.version}: use a registry of Placet's own, or an empty one."
        )
    return True


def _register(client: httpx.Client, entry: SchemaEntry) -> None:
    with _import_mode(client, entry.subject) as importing:
        wanted = {"id": entry.schema_id, "version": entry.version} if importing else {}
        answer = client.post(
            f"/subjects/{entry.subject}/versions",
            json={"schema": _portable(entry.text), "schemaType": "AVRO", **wanted},
        )
    given = _body(answer).get("id")
    if given != entry.schema_id:
        raise SchemaRegistryError(
            f"The registry at {_shown(str(client.base_url))} gave {entry.subject} version {entry.version} the "
            f"id {given} instead of {entry.schema_id}: use an empty registry, or one with IMPORT mode."
        )


def _portable(text: str) -> str:
    # Apicurio 3.3 does not see Avro in a text with a literal "{}" as a default; the escape means the same.
    return text.replace('"{}"', '"\\u007b}"')


@contextmanager
def _import_mode(client: httpx.Client, subject: str) -> Iterator[bool]:
    """Let a subject take ids from us, if its registry can, and no longer than it takes."""
    answer = client.put(f"/mode/{subject}", params={"force": "true"}, json={"mode": "IMPORT"})
    try:
        yield answer.is_success
    finally:
        if answer.is_success:
            client.put(f"/mode/{subject}", json={"mode": "READWRITE"}).raise_for_status()


def _body(answer: httpx.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError as error:
        raise _unexpected(answer) from error
    if not answer.is_success or not isinstance(body, dict):
        raise _unexpected(answer)
    return body


def _unexpected(answer: httpx.Response) -> SchemaRegistryError:
    return SchemaRegistryError(
        f"{answer.request.method} {_shown(str(answer.request.url))} answered {answer.status_code} "
        f"{answer.text[:200]!r}: SCHEMA_REGISTRY_URL must be the base URL of a Confluent-compatible registry."
    )


def _shown(url: str) -> str:
    """The URL without user and password."""
    return str(httpx.URL(url).copy_with(userinfo=b""))
