"""The problems of a policy document, each with a path and a sentence that says what to do."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from schemas.actor import subject_fault
from schemas.plain_words import did_you_mean, sentence, shown

IN_FULL_MAX_CHARS = 2_000
# Each problem costs a search for similar names: this bounds the time for a document full of faults.
PROBLEMS_MAX = 100
_NAMED_MAX = 12
# The tags that pydantic adds to a location for each form of a union that it tried.
_FORMS = frozenset({"word", "answer", "number", "int", "float", "constrained-int", "constrained-float"})


class Problem(BaseModel):
    """One thing to correct: its place, its kind, and what to do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    code: str
    message: str
    severity: Literal["error", "warning"] = "error"


def no_subjects(path: str, names: Iterable[str]) -> Iterator[Problem]:
    """The names in a list that cannot be a token's subject, and so would never match a person."""
    for index, name in enumerate(names):
        if (fault := subject_fault(name)) is not None:
            yield Problem(path=f"{path}[{index}]", code="no_subject", message=fault)


def warning(path: str, code: str, message: str) -> Problem:
    """A doubtful place that does not prevent publishing."""
    return Problem(path=path, code=code, message=message, severity="warning")


class PolicyRefused(ValueError):
    """The document cannot be published; `problems` has every reason, each with its path."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{first.path}: {first.message}{more}")

    def in_full(self) -> str:
        """Every reason in one text; of very many, only the first ones."""
        said: list[str] = []
        for count, problem in enumerate(self.problems):
            one = f"{problem.path}: {problem.message}"[:IN_FULL_MAX_CHARS]
            if said and sum(map(len, said)) + len(one) > IN_FULL_MAX_CHARS:
                return "; ".join([*said, f"and {len(self.problems) - count} more"])
            said.append(one)
        return "; ".join(said)


def problems_of(error: ValidationError, model: type[BaseModel]) -> tuple[Problem, ...]:
    """A validation error as problems with paths like `rules[0].hold.quorum`: one for each of the first places."""
    by_place: dict[tuple[int | str, ...], list[Mapping[str, Any]]] = {}
    for item in error.errors(include_url=False):
        by_place.setdefault(_place(item["loc"]), []).append(item)
    # Pydantic also reports a list with faulty items as too short, which is misleading.
    around = {place[:depth] for place in by_place for depth in range(len(place))}
    told = (
        (place, items)
        for place, items in by_place.items()
        if place not in around or any(item["type"] != "too_short" for item in items)
    )
    return tuple(_problem_of(place, items, model) for place, items in islice(told, PROBLEMS_MAX))


def _problem_of(
    place: tuple[int | str, ...], items: list[Mapping[str, Any]], model: type[BaseModel]
) -> Problem:
    path, kind = path_of(place), items[0]["type"]
    if kind == "extra_forbidden":
        return Problem(path=path, code="unknown_field", message=_unknown(place, model))
    if kind == "missing":
        return Problem(path=path, code="missing", message="this field is missing; add it")
    message = f"{sentence(items)}, found {shown(items[0]['input'])}"
    return Problem(path=path, code="invalid", message=message)


def _place(loc: Iterable[int | str]) -> tuple[int | str, ...]:
    return tuple(part for part in loc if part not in _FORMS and not str(part).startswith("literal["))


def path_of(loc: Iterable[int | str]) -> str:
    """A location as `rules[0].hold.quorum`; the tags that pydantic adds for unions are left out."""
    path = ""
    for part in _place(loc):
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path or "policy"


def _unknown(place: tuple[int | str, ...], model: type[BaseModel]) -> str:
    """What to do about an unknown field: a similar field of its place, or the place where it belongs."""
    name = str(place[-1])
    here = {known for found in _models_at(model, place[:-1]) for known, _ in _fields_of(found)}
    near = did_you_mean(name, here)
    if near == "; remove it":
        elsewhere = sorted({path for path, known in _everywhere(model) if known == name})
        if elsewhere:
            return f"unknown field {name!r} here; it belongs in {elsewhere[0]}"
        if 0 < len(here) <= _NAMED_MAX:
            return f"unknown field {name!r}; remove it, or write one of {', '.join(sorted(here))}"
    return f"unknown field {name!r}{near}"


def _models_at(model: type[BaseModel], place: Iterable[int | str]) -> list[type[BaseModel]]:
    """The models that a mapping at a place can have."""
    found = [model]
    for part in place:
        if not isinstance(part, int):
            fields = [kind for one in found for name, kind in _fields_of(one) if name == part]
            found = [inner for kind in fields for inner in _models_in(kind)]
    return found


def _fields_of(model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    """The fields of a model as they are written, each with its type."""
    for name, field in model.model_fields.items():
        yield field.alias or name, field.annotation


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _everywhere(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, str]]:
    """Every field of a document, with the path of the mapping that contains it."""
    for name, kind in _fields_of(model):
        yield path or "the document", name
        for inner in _models_in(kind):
            yield from _everywhere(inner, f"{path}.{name}" if path else name)
