"""The rules for a command's fields, the same for every API: read from the annotations of its model."""

from functools import cache
from typing import Any, NamedTuple, get_args

from schemas.limits import Form, Limit, Range
from schemas.message import Message
from schemas.refusals import Refusal


class Rules(NamedTuple):
    """The rules for one field of a command."""

    limit: Limit | None = None
    form: Form | None = None
    range: Range | None = None


@cache
def rules_of(command: type[Message]) -> dict[str, Rules]:
    """The limit and form of every text, and the range of every number of a command, by its field."""
    found = {}
    for name, field in command.model_fields.items():
        # An optional field has its rules inside the union.
        parts = [*field.metadata, *(part for union in get_args(field.annotation) for part in get_args(union))]
        rules = Rules(*(_of_kind(parts, kind) for kind in (Limit, Form, Range)))
        if any(rules):
            found[name] = rules
    return found


def limit_of(command: type[Message], name: str) -> int:
    """The maximal length of a text of a command."""
    limit = rules_of(command)[name].limit
    assert limit is not None, f"{command.__name__}.{name} has no limit"
    return limit.most


def form_of(command: type[Message], name: str) -> str:
    """The pattern of a text of a command, from its beginning to its end."""
    form = rules_of(command)[name].form
    assert form is not None, f"{command.__name__}.{name} has no form"
    return f"^{form.pattern}$"


def range_of(command: type[Message], name: str) -> Range:
    """The smallest and largest value of a number of a command."""
    found = rules_of(command)[name].range
    assert found is not None, f"{command.__name__}.{name} has no range"
    return found


def unfit(command: Message) -> tuple[Refusal, str] | None:
    """Why a command is refused in any state: a text too long, or a field in the wrong form; or None."""
    return _too_large(command) or _invalid(command)


def _too_large(command: Message) -> tuple[Refusal, str] | None:
    fields = command.__dict__
    for name, limit in _limits_of(type(command)):
        text = fields[name]
        if text is not None and not limit.allows(text):
            return Refusal.TOO_LARGE, f"{name} is limited to {limit.most:,} {limit.unit}"
    return None


def _invalid(command: Message) -> tuple[Refusal, str] | None:
    fields = command.__dict__
    for name, rule in _forms_of(type(command)):
        value = fields[name]
        if value is not None and not rule.allows(value):
            return Refusal.INVALID, f"{name} {rule.rule}"
    return None


@cache
def _limits_of(command: type[Message]) -> tuple[tuple[str, Limit], ...]:
    """The limits of a command's texts, without those whose forms include the limit."""
    return tuple(
        (name, rules.limit)
        for name, rules in rules_of(command).items()
        if rules.limit is not None and not (rules.form and rules.form.bounds)
    )


@cache
def _forms_of(command: type[Message]) -> tuple[tuple[str, Form | Range], ...]:
    rules = ((name, one.form or one.range) for name, one in rules_of(command).items())
    return tuple((name, rule) for name, rule in rules if rule is not None)


def _of_kind(parts: list[Any], kind: type[Any]) -> Any:
    return next((part for part in parts if isinstance(part, kind)), None)
