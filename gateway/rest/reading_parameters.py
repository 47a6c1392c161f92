"""Query and path parameters are read strictly: a value that is not what the parameter declares is refused."""

from __future__ import annotations

import re

from starlette.requests import Request

from gateway.problems import Problem
from gateway.rest.parameters import Choice, Number, Seconds
from schemas.refusals import Refusal

_SECONDS = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,3})?")


def seconds_in(text: str, parameter: Seconds) -> float:
    """Return how many seconds a parameter permits to wait.

    Raises:
        Problem: 422, it is not a number from 0 to the parameter's maximum.
    """
    # Python accepts more forms of a number than clients write: 1_0, other scripts' digits, blanks, nan.
    if _SECONDS.fullmatch(text) is None or float(text) > parameter.most:
        raise Problem(Refusal.INVALID, f"{parameter.name} must be seconds from 0 to {parameter.most}")
    return parameter.permitted(float(text))


def number_in(text: str, parameter: Number) -> int:
    """Return the value of a parameter that is a whole number.

    Raises:
        Problem: 422, it is not a number in the parameter's range.
    """
    least, most = parameter.least, parameter.most
    # A text with more digits than the maximum is not parsed.
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not is_number or not least <= int(text) <= most:
        raise Problem(Refusal.INVALID, f"{parameter.name} must be a whole number from {least} to {most}")
    return int(text)


def choice_in(request: Request, parameter: Choice) -> str | None:
    """Return a request's query parameter that must be one of its choices; None if it is missing.

    Raises:
        Problem: 422, it is none of them, empty or given twice.
    """
    _check_said_once(request, parameter.name)
    found = request.query_params.get(parameter.name)
    if found is None and parameter.required:
        raise Problem(Refusal.INVALID, f"{parameter.name} is required: one of {', '.join(parameter.choices)}")
    if found is not None and found not in parameter.choices:
        raise Problem(Refusal.INVALID, f"{parameter.name} must be one of {', '.join(parameter.choices)}")
    return found


def check_parameters(request: Request) -> None:
    """Refuse query parameters that the route does not declare, empty ones, and those that are given twice.

    Raises:
        Problem: 422.
    """
    if not request.query_params:
        return
    # If they were ignored, a misspelt filter or another project's name would get an answer to a different question.
    declared = (request.scope["route"].openapi_extra or {}).get("parameters", ())
    taken = [one["name"] for one in declared if one["in"] == "query"]
    unknown = next((name for name in request.query_params if name not in taken), None)
    if unknown is not None:
        only = f"only {', '.join(taken)}" if taken else "no parameters"
        raise Problem(Refusal.INVALID, f"{unknown}: unknown parameter; this route takes {only}")
    for name in request.query_params:
        _check_said_once(request, name)


def _check_said_once(request: Request, name: str) -> None:
    """Refuse parameters that are empty (an unset variable in a script) or given twice (only one would be used)."""
    values = request.query_params.getlist(name)
    if len(values) > 1:
        raise Problem(Refusal.INVALID, f"{name} is given {len(values)} times: give it once")
    if "" in values:
        raise Problem(Refusal.INVALID, f"{name} is empty: give it a value, or leave it out")
