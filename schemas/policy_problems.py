"""What is wrong with a policy document: problems with a path and a sentence that says what to do."""

import difflib
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError


class Problem(BaseModel):
    """One thing to mend: where it stands, what kind it is, and what to do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    code: str
    message: str
    severity: Literal["error", "warning"] = "error"


class PolicyRefused(ValueError):
    """The document cannot be published; `problems` has every reason, each with its path."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{first.path}: {first.message}{more}")


def problems_of(error: ValidationError, model: type[BaseModel]) -> tuple[Problem, ...]:
    """A validation error as problems with paths like `rules[0].hold.quorum`."""
    fields = sorted(_field_names(model))
    return tuple(_problem_of(dict(item), fields) for item in error.errors(include_url=False))


def _problem_of(item: dict[str, Any], fields: list[str]) -> Problem:
    path = path_of(item["loc"])
    if item["type"] == "extra_forbidden":
        name = str(item["loc"][-1])
        message = f"unknown field {name!r}{did_you_mean(name, fields)}"
        return Problem(path=path, code="unknown_field", message=message)
    if item["type"] == "missing":
        return Problem(path=path, code="missing", message="this field is missing; add it")
    return Problem(path=path, code="invalid", message=f"{item['msg']}, found {_shown(item['input'])}")


def path_of(loc: Iterable[int | str]) -> str:
    """A location as `rules[0].hold.quorum`; the tags that pydantic adds for unions are left out."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part not in ("word", "answer", "int", "float"):
            path += f".{part}" if path else part
    return path or "policy"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when something known is near, else `; remove it`."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else "; remove it"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _field_names(model: type[BaseModel]) -> set[str]:
    definitions = model.model_json_schema()
    parts = [definitions, *definitions.get("$defs", {}).values()]
    return {name for part in parts for name in part.get("properties", {})}
