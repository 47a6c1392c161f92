"""What the OpenAPI document says of an answer, held against the answer: a field that it does not name is a fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any

import httpx

from gateway.app import SECURITY_HEADERS, routed_app
from gateway.docs_gen.openapi import openapi_document
from gateway.resources.base import OPEN

KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
Schema = dict[str, Any]


@cache
def document() -> Schema:
    """The OpenAPI document: whoever looks at it in this process looks at this one, and changes nothing of it."""
    return openapi_document(routed_app())


class Documented:
    """The document, and the faults of the answers that it was shown."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.seen = 0

    def look(self, response: httpx.Response) -> None:
        """Hold an answer of a gateway against the document; others are passed over."""
        media_type = response.headers.get("content-type", "").partition(";")[0]
        if not _is_gateways(response) or not media_type.endswith("json"):
            return
        self.seen += 1
        request = response.request
        place = f"{request.method} {request.url.path} {response.status_code}"
        schema = self._schema(request.method, request.url.path, str(response.status_code), media_type)
        if schema is None:
            return
        self.faults += [
            f"{place}: {fault}" for fault in self.faults_of(schema, json.loads(response.content), "")
        ]

    def faults_of(self, schema: Schema, value: Any, at: str) -> Iterator[str]:
        """What of a value a schema does not say."""
        schema = self._resolved(schema)
        if "anyOf" in schema:
            yield from self._fewest_faults(schema["anyOf"], value, at)
            return
        if "const" in schema or "enum" in schema:
            if value not in schema.get("enum", [schema.get("const")]):
                yield f"{at or '.'}: {value!r} is none of the documented values"
            return
        kind = schema.get("type")
        if kind is not None and (
            not isinstance(value, KINDS[kind]) or isinstance(value, bool) is not (kind == "boolean")
        ):
            yield f"{at or '.'}: {type(value).__name__} in place of {kind}"
        elif kind == "array":
            for index, item in enumerate(value):
                yield from self.faults_of(_item(schema, index), item, f"{at}[{index}]")
        elif kind == "object":
            yield from self._faults_of_object(schema, value, at)

    def _fewest_faults(self, options: list[Schema], value: Any, at: str) -> list[str]:
        """The faults by the option that the value comes nearest to: null is no near one of an object."""
        found = [list(self.faults_of(option, value, at)) for option in options]
        near = [faults for faults in found if not any(" in place of " in fault for fault in faults)]
        return min(near or found, key=len)

    def _faults_of_object(self, schema: Schema, value: dict[str, Any], at: str) -> Iterator[str]:
        properties = schema.get("properties")
        if properties is None:
            more = schema.get("additionalProperties")
            if isinstance(more, dict):
                for name, item in value.items():
                    yield from self.faults_of(more, item, f"{at}.{name}")
            return
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{at}.{name}: is missing"
        for name, item in value.items():
            if name not in properties and OPEN in schema:
                continue
            if name not in properties:
                yield f"{at}.{name}: is not documented"
            else:
                yield from self.faults_of(properties[name], item, f"{at}.{name}")

    def _schema(self, method: str, path: str, status: str, media_type: str) -> Schema | None:
        route = self._route(method, path)
        if route is None:
            # An address that leads nowhere, or the documents themselves.
            return None
        operation = document()["paths"][route][method.lower()]
        answer = operation["responses"].get(status)
        if answer is None:
            if status in ("405", "500"):
                return None
            self.faults.append(f"{method} {path}: the status {status} is not documented")
            return None
        content = answer.get("content", {}).get(media_type)
        if content is None:
            self.faults.append(f"{method} {path} {status}: {media_type} is not documented")
            return None
        found: Schema = content.get("schema", {})
        return found

    def _route(self, method: str, path: str) -> str | None:
        for route, pattern in self._patterns:
            if pattern.fullmatch(path) and method.lower() in document()["paths"][route]:
                return route
        return None

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        """The documented paths, those with the fewest parameters first."""
        routes = sorted(document()["paths"], key=lambda route: route.count("{"))
        return [(route, re.compile(re.sub(r"\{[^}]+\}", "[^/]+", route))) for route in routes]

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return schema


def _item(schema: Schema, index: int) -> Schema:
    prefix = schema.get("prefixItems", ())
    found: Schema = prefix[index] if index < len(prefix) else schema.get("items", {})
    return found


def _is_gateways(response: httpx.Response) -> bool:
    """Whether it has the headers that every answer of a gateway carries, and no stand-in's of a test."""
    return all(response.headers.get(name.decode()) == value.decode() for name, value in SECURITY_HEADERS)
