"""Refusals as RFC 9457 problem documents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from itertools import islice
from typing import Any

import orjson
from pydantic import ValidationError
from starlette.responses import Response

from schemas.plain_words import by_place, sentence
from schemas.refusals import HTTP_STATUS, Refusal

MEDIA_TYPE = "application/problem+json"
ERRORS_MAX = 100
# Of the name of a field, which a client can choose, and of what is said of it, which can quote a value: far more than
# any of ours needs.
PATH_MAX_BYTES = 256
MESSAGE_MAX_BYTES = 1_024
ELLIPSIS = "…"
# The refusals of HTTP itself whose codes no other answer has.
HTTP_CODES: Mapping[HTTPStatus, str] = {
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    HTTPStatus.REQUEST_TIMEOUT: "timeout",
    HTTPStatus.REQUEST_URI_TOO_LONG: "uri_too_long",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "unsupported_media_type",
    HTTPStatus.UPGRADE_REQUIRED: "upgrade_required",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "header_too_large",
    HTTPStatus.INTERNAL_SERVER_ERROR: "internal",
    HTTPStatus.NOT_IMPLEMENTED: "unsupported_transfer_encoding",
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED: "http_version_not_supported",
}
_BARE_CODES: Mapping[HTTPStatus, str] = {
    **HTTP_CODES,
    HTTPStatus.BAD_REQUEST: "malformed",
    HTTPStatus.FORBIDDEN: "not_authorised",
    HTTPStatus.SERVICE_UNAVAILABLE: "unavailable",
}


class Problem(Exception):
    """A refusal for the caller.

    Attributes:
        code: the refusal.
        detail: one sentence for a person.
        fields: further members of the answer, such as `winning_decision_id` or `errors`.
    """

    def __init__(self, code: Refusal, detail: str, **fields: Any) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.fields = fields

    @property
    def status(self) -> int:
        """Its HTTP status."""
        return HTTP_STATUS[self.code]

    def document(self) -> dict[str, Any]:
        """Return the members of the problem document."""
        return {
            "type": f"/problems/{self.code}",
            "title": self.code.replace("_", " "),
            "status": self.status,
            "code": str(self.code),
            "detail": self.detail,
            **self.fields,
        }

    def named(self, names: Mapping[str, str]) -> Problem:
        """Return it in the words of another interface; see `renamed`."""
        said = renamed({"detail": self.detail, **self.fields}, names)
        return Problem(self.code, said.pop("detail"), **said)


def still_starting() -> Problem:
    """The answer of a gateway that has not read the log yet, or still waits for a database."""
    detail = "the gateway has not read the log yet: GET /readyz says why"
    return Problem(Refusal.UNAVAILABLE, detail, retry_after=1)


def renamed(document: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a problem document for a client of another interface, by what it calls its fields.

    Args:
        document: the document, or the members of one.
        names: that interface's name of each field that a sentence or a path can begin with.
    """
    said = dict(document)
    if "detail" in said:
        said["detail"] = _said(said["detail"], names)
    if "errors" in said:
        said["errors"] = [{**error, "path": _said(error["path"], names)} for error in said["errors"]]
    return said


def _said(text: str, names: Mapping[str, str]) -> str:
    for name, other in names.items():
        rest = text.removeprefix(name)
        if rest != text and (not rest or rest[0] in ": .["):
            return other + rest
    return text


def not_found(what: str) -> Problem:
    """404: the resource does not exist, or belongs to another tenant; the answer is the same."""
    return Problem(Refusal.NOT_FOUND, f"no such {what}")


def invalid(error: ValidationError) -> Problem:
    """Return the refusal of a body that does not fit its model, with every error and its path."""
    places = by_place(error.errors(include_url=False, include_input=False))
    errors = [
        {"path": quoted_path(place), "code": items[0]["type"], "message": _message(items)}
        for place, items in islice(places.items(), ERRORS_MAX)
    ]
    first = errors[0]
    return Problem(Refusal.INVALID, f"{first['path'] or 'body'}: {first['message']}", errors=errors)


def _message(errors: list[Mapping[str, Any]]) -> str:
    kind = errors[0]["type"]
    if kind == "extra_forbidden":
        return "this field is unknown; remove it"
    if kind == "missing":
        return "this field is missing; add it"
    return shortened(sentence(errors), MESSAGE_MAX_BYTES)


def quoted_path(place: Iterable[int | str]) -> str:
    """Return the path of a fault in a body, cut if it is long."""
    return shortened(".".join(map(str, place)), PATH_MAX_BYTES)


def shortened(text: str, most: int) -> str:
    """Return a text; of one over `most` bytes of UTF-8 (at least 3) the beginning, with an ellipsis within them."""
    if len(text) <= most // 4 or len(written := text.encode(errors="surrogatepass")) <= most:
        return text
    return written[: most - len(ELLIPSIS.encode())].decode(errors="ignore") + ELLIPSIS


def _bare_code(status: int) -> str:
    """Return the code of one of HTTP's own refusals."""
    return _BARE_CODES.get(HTTPStatus(status), "malformed")


def bare_document(status: int, detail: str) -> dict[str, Any]:
    """Return the problem document of one of HTTP's own refusals, which do not depend on the resource."""
    code = _bare_code(status)
    return {
        "type": f"/problems/{code}",
        "title": code.replace("_", " "),
        "status": status,
        "code": code,
        "detail": detail,
    }


def bare(status: int, detail: str, headers: Mapping[str, str]) -> Response:
    """Return the same as an HTTP response."""
    return Response(orjson.dumps(bare_document(status, detail)), status, headers, MEDIA_TYPE)


def response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """Return the problem as an HTTP response."""
    extra = dict(headers or {})
    if problem.code is Refusal.UNAUTHENTICATED:
        extra["WWW-Authenticate"] = 'Bearer realm="placet"'
    if "retry_after" in problem.fields:
        extra["Retry-After"] = str(problem.fields["retry_after"])
    return Response(written(problem.document()), problem.status, extra, MEDIA_TYPE)


def message_of(problem: Problem) -> dict[str, Any]:
    """Return the problem as the message `error` of a socket or stream: `problem` is the document's own `type`."""
    document = problem.document()
    return {**document, "type": "error", "problem": document["type"], "ref": None}


def written(document: Mapping[str, Any]) -> bytes:
    """Serialize a problem document to JSON, whatever text it quotes."""
    try:
        return orjson.dumps(document)
    except TypeError:
        # The quoted text contains a lone surrogate; json escapes it, and orjson does not.
        return json.dumps(document).encode()
