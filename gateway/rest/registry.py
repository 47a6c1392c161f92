"""The schema registry's read API, in the form that Confluent's clients use, and the policy document's JSON Schema.

The schemas are the published contract of the log; they contain no data of a tenant and need no token. A write is
accepted only if it changes nothing: a client that registers the schema it uses gets the id of a shipped schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway import resources as r
from gateway.rest.documented import Answers, Declared, open_operation
from gateway.rest.request_bodies import read_raw
from schemas.policy_document import policy_json_schema
from schemas.registry import SchemaEntry, builtin


class AvroSchema(BaseModel):
    """A schema as Confluent's clients send it: as text. Their other fields, such as `references`, change nothing."""

    model_config = ConfigDict(extra="allow")

    text: str = Field(alias="schema")
    schemaType: Literal["AVRO"] = "AVRO"


MEDIA_TYPES = ("application/json", "application/vnd.schemaregistry.v1+json")


class RegistryResponse(JSONResponse):
    """JSON under the registry's own media type."""

    media_type = "application/vnd.schemaregistry.v1+json"


class SchemaResponse(JSONResponse):
    """A JSON Schema."""

    media_type = "application/schema+json"


router = APIRouter(tags=["registry"])
ERROR = {"model": r.RegistryError, "description": "A registry's error"}
REFUSALS: Answers = {404: ERROR, 422: ERROR}
ID_MAX_DIGITS = 9
# The longest schema here has 4 KB; larger unauthenticated bodies are not parsed.
LOOKED_UP_MAX_BYTES = 64 * 1024
NO_SUBJECT, NO_VERSION, NO_SCHEMA, BAD_SCHEMA, BAD_VERSION, READ_ONLY = (
    40401,
    40402,
    40403,
    42201,
    42202,
    42205,
)
COMPATIBILITY = "FULL_TRANSITIVE"
Handler = TypeVar("Handler", bound=Callable[..., Any])
# Checked here and not by the framework: the registry's errors have a form of their own.
VersionName = Annotated[str, WithJsonSchema({"type": "string", "pattern": "^(latest|0*[1-9][0-9]*)$"})]
# The first parts of the registry's addresses.
ROOTS = ("subjects", "schemas", "config", "mode", "compatibility", "contexts", "exporters")


def _read(
    path: str, operation: str, model: Any, refusals: Answers | None = None
) -> Callable[[Handler], Handler]:
    """Declare a route that reads."""
    return _declared(router.get, path, operation, model, open_operation(refusals))


def _look_up(path: str, operation: str, model: Any) -> Callable[[Handler], Handler]:
    """Declare a route that takes a schema."""
    said = open_operation(REFUSALS, body=AvroSchema, media_types=MEDIA_TYPES)
    return _declared(router.post, path, operation, model, said)


def _declared(
    method: Any, path: str, operation: str, model: Any, said: Declared
) -> Callable[[Handler], Handler]:
    declared: Callable[[Handler], Handler] = method(
        path, operation_id=operation, response_class=RegistryResponse, response_model=model, **said
    )
    return declared


@_read("/subjects", "listSubjects", list[str])
async def subjects() -> Response:
    """List the subjects."""
    return _answer(sorted(builtin().by_subject))


@_read("/subjects/{subject}/versions", "listSubjectVersions", list[int], REFUSALS)
async def versions(subject: str) -> Response:
    """List the versions of a subject."""
    entries = builtin().by_subject.get(subject)
    if entries is None:
        return _no_subject()
    return _answer([entry.version for entry in entries])


@_read("/subjects/{subject}/versions/{version}", "getSchemaVersion", r.SchemaVersion, REFUSALS)
async def version_of(subject: str, version: VersionName) -> Response:
    """Get one version of a subject; `latest` is its newest."""
    found = _version(subject, version)
    return found if isinstance(found, Response) else _answer(_version_json(found))


@_read("/subjects/{subject}/versions/{version}/schema", "getSchemaOfVersion", dict[str, Any], REFUSALS)
async def schema_of_version(subject: str, version: VersionName) -> Response:
    """Get the schema alone of one version of a subject; `latest` is its newest."""
    found = _version(subject, version)
    return found if isinstance(found, Response) else _schema_alone(found)


@_read("/schemas/ids/{schema_id}", "getSchema", r.SchemaText, REFUSALS)
async def schema_of(schema_id: str) -> Response:
    """Get the schema with an id."""
    entry = _by_id(schema_id)
    return _no_schema() if entry is None else _answer({"schema": entry.text})


@_read("/schemas/ids/{schema_id}/schema", "getSchemaAlone", dict[str, Any], REFUSALS)
async def schema_alone(schema_id: str) -> Response:
    """Get the schema with an id, not as text within JSON but by itself."""
    entry = _by_id(schema_id)
    return _no_schema() if entry is None else _schema_alone(entry)


@_read("/schemas/ids/{schema_id}/versions", "listSchemaVersions", list[r.SubjectVersion], REFUSALS)
async def versions_of_schema(schema_id: str) -> Response:
    """List the versions of subjects that have the schema with an id: there is one."""
    entry = _by_id(schema_id)
    if entry is None:
        return _no_schema()
    return _answer([{"subject": entry.subject, "version": entry.version}])


@_look_up("/subjects/{subject}", "findSchema", r.SchemaVersion)
async def find(request: Request, subject: str) -> Response:
    """Find the version of a subject that equals a schema; the schema's formatting and its `doc` do not matter."""
    found = await _looked_up(request, subject)
    return found if isinstance(found, Response) else _answer(_version_json(found))


@_look_up("/subjects/{subject}/versions", "registerSchema", r.SchemaId)
async def register(request: Request, subject: str) -> Response:
    """Get the id of a schema that already exists; none can be added (42205)."""
    found = await _looked_up(request, subject)
    if isinstance(found, SchemaEntry):
        return _answer({"id": found.schema_id})
    if found.status_code != 404:
        return found
    return _error(
        422, READ_ONLY, f"The registry is read-only; no version of {subject[:200]} has this schema."
    )


@_read("/config", "getCompatibility", dict[str, str])
async def config() -> Response:
    """Get the compatibility of every version of a subject with every other."""
    return _answer({"compatibilityLevel": COMPATIBILITY})


@_read("/config/{subject}", "getSubjectCompatibility", dict[str, str], REFUSALS)
async def config_of(subject: str) -> Response:
    """Get the compatibility for a subject."""
    known = subject in builtin().by_subject
    return _answer({"compatibilityLevel": COMPATIBILITY}) if known else _no_subject()


@_read("/mode", "getMode", dict[str, str])
async def mode() -> Response:
    """Get the registry's mode: nothing can be registered."""
    return _answer({"mode": "READONLY"})


@_read("/mode/{subject}", "getSubjectMode", dict[str, str], REFUSALS)
async def mode_of(subject: str) -> Response:
    """Get the mode for a subject."""
    return _answer({"mode": "READONLY"}) if subject in builtin().by_subject else _no_subject()


@_read("/schemas/types", "listSchemaTypes", list[str])
async def types() -> Response:
    """List the schema types that the registry serves."""
    return _answer(["AVRO"])


@router.get(
    "/schemas/policy.json",
    operation_id="getPolicySchema",
    response_class=SchemaResponse,
    response_model=r.JsonSchema,
    **open_operation(),
)
async def policy_schema() -> Response:
    """Get the JSON Schema of the policy document."""
    return SchemaResponse(policy_json_schema())


def http_error(path: str, status: int, headers: Mapping[str, str]) -> Response | None:
    """The answer to a request that HTTP itself refuses, in the registry's form; None if it is not for the registry.

    Args:
        path: of the request.
        status: 404 or 405: the registry has no such address, or no such method of it.
        headers: of the answer.
    """
    # A target such as `*` has no slash.
    if path.removeprefix("/").partition("/")[0] not in ROOTS:
        return None
    message = f"HTTP {status} {HTTPStatus(status).phrase}"
    return RegistryResponse({"error_code": status, "message": message}, status, dict(headers))


def _version(subject: str, version: str) -> SchemaEntry | Response:
    """Return a version of a subject, or the registry's error."""
    entries = builtin().by_subject.get(subject)
    if entries is None:
        return _no_subject()
    if version == "latest":
        return entries[-1]
    if not version.isascii() or not version.isdigit() or int(version[:10]) == 0:
        return _error(422, BAD_VERSION, "The version must be a positive number or latest.")
    found = next((entry for entry in entries if entry.version == int(version[:10])), None)
    return _error(404, NO_VERSION, "Version not found.") if found is None else found


def _by_id(schema_id: str) -> SchemaEntry | None:
    is_id = schema_id.isascii() and schema_id.isdigit() and len(schema_id) <= ID_MAX_DIGITS
    return builtin().by_id.get(int(schema_id)) if is_id else None


async def _looked_up(request: Request, subject: str) -> SchemaEntry | Response:
    """Return the version of a subject that equals the schema in the body, or the registry's error."""
    entries = builtin().by_subject.get(subject)
    if entries is None:
        return _no_subject()
    body = await read_raw(request, LOOKED_UP_MAX_BYTES)
    try:
        asked = _undocumented(json.loads(json.loads(body or b"")["schema"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return _error(422, BAD_SCHEMA, "The body must be JSON with an Avro schema, as text, in `schema`.")
    # The newest first: versions can differ in parts that are not compared here.
    for entry in reversed(entries):
        if _undocumented(entry.schema) == asked:
            return entry
    return _no_schema()


def _undocumented(schema: Any) -> Any:
    """Return a schema without the parts that do not describe its values; a name is merged with its namespace."""
    if isinstance(schema, list):
        return [_undocumented(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _undocumented(part) for name, part in schema.items() if name not in ("doc", "namespace")}
    if "namespace" in schema and "." not in str(schema.get("name", ".")):
        found["name"] = f"{schema['namespace']}.{schema['name']}"
    return found


def _no_subject() -> Response:
    return _error(404, NO_SUBJECT, "Subject not found.")


def _no_schema() -> Response:
    return _error(404, NO_SCHEMA, "Schema not found.")


def _schema_alone(entry: SchemaEntry) -> Response:
    # As it was shipped: the text is what readers compare.
    return Response(entry.text, media_type=RegistryResponse.media_type)


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
