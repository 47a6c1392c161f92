"""The schema registry's read API, as Confluent's clients ask it, and the policy document's JSON Schema.

The schemas are the published contract of the log; they hold nothing of a tenant and need no token.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from gateway import resources as r
from schemas.policy_document import policy_json_schema
from schemas.registry import SchemaEntry, builtin


class RegistryResponse(JSONResponse):
    """JSON under the registry's own media type."""

    media_type = "application/vnd.schemaregistry.v1+json"


class SchemaResponse(JSONResponse):
    """A JSON Schema."""

    media_type = "application/schema+json"


router = APIRouter(tags=["registry"])
ERROR = {"model": r.RegistryError, "description": "A registry's error"}
REFUSALS: dict[int | str, dict[str, Any]] = {404: ERROR, 422: ERROR}
ID_MAX_DIGITS = 9
NO_SUBJECT, NO_VERSION, NO_SCHEMA, BAD_VERSION = 40401, 40402, 40403, 42202


@router.get(
    "/subjects", operation_id="listSubjects", response_class=RegistryResponse, response_model=list[str]
)
async def subjects() -> Response:
    """The subjects."""
    return _answer(sorted(builtin().by_subject))


@router.get(
    "/subjects/{subject}/versions",
    operation_id="listSubjectVersions",
    response_class=RegistryResponse,
    response_model=list[int],
    responses=REFUSALS,
)
async def versions(subject: str) -> Response:
    """The versions of a subject."""
    entries = builtin().by_subject.get(subject)
    if entries is None:
        return _error(404, NO_SUBJECT, "Subject not found.")
    return _answer([entry.version for entry in entries])


@router.get(
    "/subjects/{subject}/versions/{version}",
    operation_id="getSchemaVersion",
    response_class=RegistryResponse,
    response_model=r.Resource,
    responses=REFUSALS,
)
async def version_of(subject: str, version: str) -> Response:
    """One version of a subject; `latest` is its newest."""
    entries = builtin().by_subject.get(subject)
    if entries is None:
        return _error(404, NO_SUBJECT, "Subject not found.")
    if version == "latest":
        return _answer(_version_json(entries[-1]))
    if not version.isascii() or not version.isdigit() or int(version[:10]) == 0:
        return _error(422, BAD_VERSION, "The version must be a positive number or latest.")
    found = next((entry for entry in entries if entry.version == int(version[:10])), None)
    return _error(404, NO_VERSION, "Version not found.") if found is None else _answer(_version_json(found))


@router.get(
    "/schemas/ids/{schema_id}",
    operation_id="getSchema",
    response_class=RegistryResponse,
    response_model=r.Resource,
    responses=REFUSALS,
)
async def schema_of(schema_id: str) -> Response:
    """The schema of an id."""
    is_id = schema_id.isascii() and schema_id.isdigit() and len(schema_id) <= ID_MAX_DIGITS
    entry = builtin().by_id.get(int(schema_id)) if is_id else None
    return _error(404, NO_SCHEMA, "Schema not found.") if entry is None else _answer({"schema": entry.text})


@router.get(
    "/schemas/types",
    operation_id="listSchemaTypes",
    response_class=RegistryResponse,
    response_model=list[str],
)
async def types() -> Response:
    """The kinds of schemas served."""
    return _answer(["AVRO"])


@router.get(
    "/schemas/policy.json",
    operation_id="getPolicySchema",
    response_class=SchemaResponse,
    response_model=r.Resource,
)
async def policy_schema() -> Response:
    """The JSON Schema of the policy document."""
    return SchemaResponse(policy_json_schema())


def _version_json(entry: SchemaEntry) -> dict[str, Any]:
    return {
        "subject": entry.subject,
        "version": entry.version,
        "id": entry.schema_id,
        "schemaType": "AVRO",
        "schema": entry.text,
    }


def _answer(value: Any) -> Response:
    return RegistryResponse(value)


def _error(status: int, code: int, message: str) -> Response:
    return RegistryResponse({"error_code": code, "message": message}, status)
