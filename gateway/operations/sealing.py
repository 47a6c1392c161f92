"""Sealing of sensitive values: found by the published definition, checked, and replaced before anything is sent."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gateway.operations.plan import Gate
from gateway.problems import Problem
from gateway.vault.vault import Owner
from projections.folds.rows import json_value
from projections.tables.holds import HoldRow
from schemas.actor import Actor
from schemas.canonical import canonical, parse_strict, sha256_hex
from schemas.ids import NAMESPACE
from schemas.refusals import Refusal
from schemas.sensitive import (
    Marked,
    Path,
    astray,
    at_path,
    has_marks,
    is_placeholder,
    json_path,
    looks_like_placeholder,
    marked_values,
    misfit_of,
    too_long_for_patterns,
)

# How many occurrences of one call are tried; a run seldom makes the same call more often.
OCCURRENCES_MAX = 256


def owner_of(actor: Actor, execution_id: str, kind: str, subject_id: str) -> Owner:
    """Return the owner of sealed values; `kind` is call or request."""
    return Owner(actor.tenant, actor.project, execution_id, kind, subject_id)


def marked_arguments(gate: Gate, actor: Actor, tool: str, arguments: Any) -> list[Marked]:
    """Return the values of arguments that the tool's newest definition marks as sensitive, as they were given."""
    schema = _schema_of(gate, actor, tool)
    return [] if schema is None else marked_values(schema, arguments)


def arguments_to_seal(gate: Gate, actor: Actor, tool: str, arguments: Any, kept: Any = None) -> list[Marked]:
    """Return the values in the arguments of a proposal or an edit that must be sealed.

    Args:
        gate: the services of the gateway.
        actor: the caller, in whose project the tool is called.
        tool: the tool whose newest definition marks sensitive values.
        arguments: as given.
        kept: as `to_seal`.

    Raises:
        Problem: as `to_seal`; also if a value's type hides a marked place below it, which would be sent unsealed.
    """
    schema = _schema_of(gate, actor, tool)
    if schema is None:
        return []
    if (path := astray(schema, arguments)) is not None:
        raise misfit(f"{json_path(path)}: a value of this type hides what the inputSchema marks as sensitive")
    return to_seal(marked_values(schema, arguments), kept)


def _schema_of(gate: Gate, actor: Actor, tool: str) -> Any:
    """Return the schema of a tool's newest definition; None if it marks nothing."""
    versions = gate.live.definitions.tool_versions(actor.tenant, actor.project, tool)
    return _marked_schema(versions[-1].document) if versions else None


def to_seal(marked: list[Marked], kept: Any = None) -> list[Marked]:
    """Return the values that must be sealed: all except those that are already sealed at the same place.

    Args:
        marked: the marked values, as given.
        kept: the arguments that an edit started from; None for a proposal.

    Raises:
        Problem: 422 invalid_arguments: a handle that does not belong at its place, or a value that does not fit.
    """
    found = []
    for one in marked:
        if looks_like_placeholder(one.value):
            if not is_placeholder(one.value) or one.value != at_path(kept, one.path):
                raise misfit(
                    f"{json_path(one.path)}: give the value itself: this handle does not belong here"
                )
        elif (wrong := misfit_of(one)) is not None:
            raise misfit(wrong)
        else:
            found.append(one)
    return found


def check_call_id(execution_id: str, tool: str, arguments: Any, call_id: str) -> None:
    """Refuse an id that the SDK has also made from sensitive values: a reader of the id could test guesses on it.

    Raises:
        Problem: 422 invalid.
    """
    digest = sha256_hex(canonical(arguments))
    for occurrence in range(OCCURRENCES_MAX):
        parts = json.dumps(["call", execution_id, tool, digest, occurrence], separators=(",", ":"))
        if call_id == str(uuid.uuid5(NAMESPACE, parts)):
            detail = "the call_id is made from sensitive arguments: name them in gated(sensitive=[…]), or choose one"
            raise Problem(Refusal.INVALID, detail)


def variables_to_seal(row: HoldRow, value: Any) -> list[Marked]:
    """Return the values of an answer to an env_var request, every one of which is sealed.

    Raises:
        Problem: 422 invalid_arguments: the answer is not an object of requested variables, each a text that fits its
            pattern, or lacks one that is required.
    """
    schema = json_value(row["input_schema"])
    required, named = set(schema.get("required", ())), set(schema.get("properties", ()))
    if not isinstance(value, Mapping) or not required <= set(value) <= named or not value:
        optional = ", ".join(sorted(named - required))
        listed = ", ".join(sorted(required))
        if not listed:
            raise misfit(f"$: answer with an object of one or more of these variables: {optional}")
        more = f"; these may be left out: {optional}" if optional else ""
        raise misfit(f"$: answer with an object of exactly these variables: {listed}{more}")
    given = marked_values(schema, value)
    if (too_long := too_long_for_patterns(given)) is not None:
        raise misfit(too_long)
    return to_seal(given)


def misfit(detail: str) -> Problem:
    """Return the refusal of sensitive values; it contains the path and the reason, and never the value."""
    path, _, message = detail.partition(": ")
    entry = {"path": f"arguments{path.removeprefix('$')}", "code": "schema", "message": message}
    return Problem(Refusal.INVALID_ARGUMENTS, detail, errors=[entry])


def marked_paths(gate: Gate, actor: Actor, tool: str, arguments: Any) -> list[Path]:
    """Return the paths in the arguments that the tool's newest definition marks as sensitive."""
    return [one.path for one in marked_arguments(gate, actor, tool, arguments)]


@lru_cache(maxsize=1024)
def _marked_schema(definition: str) -> Any:
    """Return the input schema of a tool's definition (canonical JSON); None if it marks nothing."""
    schema = parse_strict(definition).get("inputSchema")
    return schema if has_marks(schema) else None
