"""The base of every resource, errors, and a page of a list."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from schemas.refusals import Refusal

T = TypeVar("T")
# Marks, in the documents, a resource that also contains members from the document that a client published.
OPEN = "x-has-others-members"


class Resource(BaseModel):
    """An answer; more fields may be added."""

    model_config = ConfigDict(extra="allow")


class FieldError(Resource):
    """One error in a body, with its path."""

    path: str
    code: str
    message: str
    severity: str | None = None


class RefusedProposal(Resource):
    """Why a call that is asked for does not exist: its proposal was refused, after it had been answered with 202."""

    code: Refusal
    detail: str
    at: datetime


class Problem(Resource):
    """A refusal (RFC 9457); `refused` is with the 404 of a call whose proposal was refused."""

    type: str
    title: str
    status: int
    code: Refusal
    detail: str
    errors: list[FieldError] | None = None
    winning_decision_id: str | None = None
    retry_after: int | None = None
    refused: RefusedProposal | None = None


class BodyProblem(Resource):
    """A refusal of a body that is compressed; `code` is `unsupported_media_type`, which no other refusal has."""

    type: str
    title: str
    status: int
    code: str
    detail: str


class Page(Resource, Generic[T]):
    """Part of a list."""

    items: list[T]
    next_cursor: str | None
    cursor: str | None = None
