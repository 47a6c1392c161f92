"""The `remember` of `placet approve`, built from `--uses`, `--for` and `--where`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from placet.canonical import MalformedJson, parse_strict

UNLIMITED = "unlimited"
_DURATION = re.compile(r"([0-9]{1,9})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
# A prefix is plain text; a run of any other sign characters is one sign, so that an unknown sign is detected.
_TEST = re.compile(r"(?P<name>[^<>=!~^]+?)\s*(?P<test>\^=|[<>=!~^*]+| in )\s*(?P<value>.*)", re.DOTALL)
_KEYS = {"<=": "at_most", ">=": "at_least", "^=": "prefix", " in ": "one_of", "=": "equals"}
_TESTS = "the tests are <=, >=, =, ^= (begins with), in (with a JSON list) and =* (anything)"
WHERE = (
    'What an argument may be: amount<=100, amount>=1, to=GB29, \'to in ["GB29","GB30"]\', path^=/tmp/, note=*; '
    "repeat for more. Every other argument stays as it is."
)


def remember_of(scope: str, uses: str, lasts: str, where: Sequence[str]) -> dict[str, Any] | None:
    """What is to be remembered, or None for the defaults of the scope.

    Raises:
        typer.BadParameter: one of the options cannot be read, or does not belong to the scope.
    """
    if scope == "once" and (uses or lasts or where):
        raise typer.BadParameter(
            "--uses and --for belong to --scope rule, --where to --scope rule or execution"
        )
    if scope == "execution" and (uses or lasts):
        raise typer.BadParameter(
            "--uses and --for belong to --scope rule: what is remembered for an execution ends with it"
        )
    remembered: dict[str, Any] = {}
    if where:
        remembered["arguments"] = parsed_tests(where)
    if uses:
        remembered["uses"] = _uses(uses)
    if lasts:
        remembered["expires_seconds"] = seconds_of(lasts)
    return remembered or None


def options_of(scope: str, remember: Mapping[str, Any]) -> str:
    """The options of an equal request, for a person who agrees to it."""
    options = ["--scope", scope]
    if "uses" in remember:
        options += ["--uses", UNLIMITED if remember["uses"] is None else str(remember["uses"])]
    if remember.get("expires_seconds") is not None:
        options += ["--for", f"{remember['expires_seconds']}s"]
    for name, tests in sorted(remember.get("arguments", {}).items()):
        for test, value in sorted(tests.items()):
            options += ["--where", f"{name}{_test_text(test, value)}"]
    return shlex.join(options)


def _test_text(test: str, value: Any) -> str:
    if test == "any":
        return "=*"
    sign = next(sign for sign, key in _KEYS.items() if key == test)
    return f"{sign}{value}" if test == "prefix" else f"{sign}{json.dumps(value, ensure_ascii=False)}"


def parsed_tests(where: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The tests of arguments; bounds on one number are combined.

    Raises:
        typer.BadParameter: one cannot be read.
    """
    tests: dict[str, dict[str, Any]] = {}
    for text in where:
        found = _TEST.fullmatch(text.strip())
        if found is None:
            raise _refused(f"{text!r} is not a test such as amount<=100: {_TESTS}")
        name, test, value = found["name"], found["test"], found["value"]
        _check_sign(name, test, text)
        if test == "=*":
            if value:
                raise _refused(f"{text!r}: nothing comes after =*, which allows any value")
            tests.setdefault(name, {})["any"] = True
            continue
        tests.setdefault(name, {})[_KEYS[test]] = value if test == "^=" else _value(value, test, text)
    return tests


def _check_sign(name: str, test: str, text: str) -> None:
    sign = "not in" if test == " in " and name.endswith(" not") else test
    if sign not in (*_KEYS, "=*"):
        hint = f'a value that begins with a sign must be in quotes, as in {name}="{sign.lstrip("=")}…"'
        raise _refused(
            f"{text!r}: there is no test {sign}; {_TESTS}" + (f"; {hint}" if sign[:1] == "=" else "")
        )


def _refused(said: str) -> typer.BadParameter:
    return typer.BadParameter(said, param_hint="--where")


def seconds_of(text: str, hint: str = "--for", at_most: str = "") -> int:
    """A duration in seconds: 90s, 30m, 24h, 7d.

    Raises:
        typer.BadParameter: it cannot be read, or is longer than `at_most`.
    """
    found = _DURATION.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise typer.BadParameter("a duration is 90s, 30m, 24h or 7d", param_hint=hint)
    seconds = int(found[1]) * _SECONDS[found[2]]
    if at_most and seconds > seconds_of(at_most):
        raise typer.BadParameter(f"{text} is too long; at most {at_most}", param_hint=hint)
    return seconds


def _value(text: str, test: str, whole: str) -> Any:
    try:
        value = parse_strict(text)
    except MalformedJson:
        # A plain word is a text; a list or a bound must be valid JSON.
        if test == "=":
            return text
        raise _refused(f"{whole!r}: {text!r} cannot be read") from None
    if test in ("<=", ">=") and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise _refused(f"{whole!r}: a bound must be a number")
    if test == " in " and not isinstance(value, list):
        raise _refused(f"{whole!r}: in takes a JSON list")
    return value


def _uses(text: str) -> int | None:
    if text == UNLIMITED:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise typer.BadParameter(f"a number from 1, or {UNLIMITED}", param_hint="--uses")
    return int(text)
