"""The values of one call that a policy's expressions can read.

JSON numbers are doubles, as in CEL over JSON elsewhere: `args.amount > 500` and `args.amount > 500.0` both
work for 500 and for 98.7. Arithmetic needs a double literal (`args.amount * 2.0`), even for whole numbers.
"""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Any

from schemas.canonical import MAX_SAFE_INTEGER
from schemas.limits import JSON_MAX_DEPTH
from schemas.linear_patterns import bounded_pattern
from services.domain.policy.cel_engine import cel
from services.domain.policy.cel_memory import MEMORY
from services.domain.policy.cel_program import (
    CHECKED_DURATION,
    CHECKED_TIMESTAMP,
    CODE_POINTS,
    DOUBLE_TEXT,
    IN_ZONE,
    RE2_MATCHES,
    SPAN_TEXT,
    TIME_TEXT,
    WHOLE_SECONDS,
    checked_duration,
    code_points,
)
from services.domain.policy.cel_texts import double_text, span_text, time_text
from services.domain.policy.cel_times import checked_timestamp, in_zone, whole_seconds
from services.domain.policy.cel_work import Read, Size
from services.domain.policy.failures import EvaluationFailed
from services.domain.policy.paths import PathResolver, real_path
from services.domain.policy.urls import url_host

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=4096)
def _plan(reads: frozenset[Read]) -> tuple[tuple[Read, bool], ...]:
    """The parts to read, whole variables first, and for each whether it is kept or only measured."""
    whole = {name for name, part in reads if part is None}
    ordered = sorted(reads - {("now", None)}, key=lambda read: (read[0], read[1] or ""))
    return tuple((read, read[1] is None or read[0] not in whole) for read in ordered)


class Bindings:
    """The values of one call for its expressions: only the fields that are read, with numbers as doubles.

    Not shared between threads; made for one call and then dropped. `spent` is for the evaluator's own use: the units
    of work that conditions on these values may have taken; so is `waited_s`, the seconds spent waiting for a helper.
    """

    __slots__ = (
        "_context",
        "_sizes",
        "_values",
        "failures",
        "now_ms",
        "reads",
        "resolve_path",
        "spent",
        "variables",
        "waited_s",
    )

    def __init__(
        self,
        variables: Mapping[str, Any],
        now_ms: int,
        reads: frozenset[Read] = frozenset(),
        resolve_path: PathResolver | None = None,
    ) -> None:
        self.variables = variables
        self.now_ms = now_ms
        self.reads = reads
        self.resolve_path = resolve_path
        self.failures: list[Exception] = []
        self.spent = 0.0
        self.waited_s = 0.0
        self._context: Any = None
        self._sizes: dict[Read, tuple[int, int, int]] = {}
        self._values: dict[str, Any] | None = None

    def values(self) -> dict[str, Any]:
        """The variables in the form in which they are evaluated, without `now`; measured at the same time.

        Raises:
            EvaluationFailed: a value that CEL cannot hold exactly.
        """
        if self._values is None:
            values: dict[str, Any] = {}
            for read, kept in _plan(self.reads):
                self._read(values, read, kept)
            # Stored only when complete: a field missing after an error would look absent to has().
            self._values = values
        return self._values

    def _read(self, values: dict[str, Any], read: Read, kept: bool) -> None:
        name, part = read
        value = self.variables.get(name)
        if name == MEMORY and part is not None:
            # An argument without approved values has an empty list; the field is never missing.
            approved = value.get(part, ()) if isinstance(value, Mapping) else ()
            values.setdefault(name, {})[part] = self._measured(read, list(approved))
            return
        if part is None or not isinstance(value, Mapping):
            values[name] = self._measured(read, value)
            return
        fields = values.setdefault(name, {})
        if part in value:
            measured = self._measured(read, value[part])
            if kept:
                fields[part] = measured

    def _measured(self, read: Read, value: Any) -> Any:
        size = [0, 0, 0]
        doubled = _as_cel(value, size, 0)
        self._sizes[read] = (size[0], size[1], size[2])
        return doubled

    def size(self, reads: frozenset[Read]) -> Size:
        """The nodes and characters (as UTF-8, which engines read byte by byte) of the parts that are read."""
        self.values()
        sizes = [self._sizes[read] for read in reads if read in self._sizes]
        nodes, characters, odd = (sum(size[kind] for size in sizes) for kind in range(3))
        parts = {read: self._sizes[read][:2] for read in reads if read in self._sizes}
        return Size(nodes, characters, odd > 0, parts)

    def has_more_than(self, nodes: int) -> bool:
        """True if the parts that are read have more nodes than this; visits at most this many."""
        left = nodes
        waiting = [self.variables.get(name) for name, part in self.reads if part is None]
        waiting += [_part(self.variables.get(name), part) for name, part in self.reads if part is not None]
        while waiting:
            value = waiting.pop()
            left -= 1
            if isinstance(value, Mapping | list | tuple):
                if len(value) > left:
                    return True
                waiting.extend(value.values() if isinstance(value, Mapping) else value)
        return left < 0

    def context(self) -> Any:
        """The values and functions in the binding's own form, made once."""
        if self._context is None:
            variables = dict(self.values())
            if ("now", None) in self.reads:
                variables["now"] = _EPOCH + timedelta(milliseconds=self.now_ms)
            self._context = cel.Context(variables=variables, functions=self._functions())
        return self._context

    def _functions(self) -> dict[str, Callable[..., Any]]:
        return {
            "url_host": partial(self._call, url_host),
            "real_path": partial(self._call, partial(real_path, resolve=self.resolve_path)),
            "sql_kind": partial(self._call, sql_kind),
            RE2_MATCHES: _matches,
            CODE_POINTS: code_points,
            CHECKED_DURATION: checked_duration,
            CHECKED_TIMESTAMP: checked_timestamp,
            WHOLE_SECONDS: whole_seconds,
            IN_ZONE: in_zone,
            DOUBLE_TEXT: double_text,
            TIME_TEXT: time_text,
            SPAN_TEXT: span_text,
        }

    def _call(self, function: Callable[..., str], *arguments: Any) -> str | None:
        # The binding would lose an exception in `error || true`; an exception that is stored here always counts.
        try:
            return function(*arguments)
        except Exception as error:
            self.failures.append(error)
            return None


def _part(value: Any, part: str) -> Any:
    return value.get(part) if isinstance(value, Mapping) else value


def _matches(text: Any, pattern: str) -> bool:
    """`text.matches(pattern)`; an error is a CEL error, which `error || true` absorbs."""
    if not isinstance(text, str):
        raise TypeError("matches() takes texts")
    return bounded_pattern(pattern).search(text) is not None


def sql_kind(sql: str, dialect: str = "") -> str:
    """The strictest effect of an SQL text: see `services.domain.policy.sql.sql_kind`."""
    # Loading its parser takes half a second, which would delay a decider's start.
    from services.domain.policy import sql as parser

    return parser.sql_kind(sql, dialect)


def _as_cel(value: Any, size: list[int], depth: int) -> Any:
    """The value with numbers as doubles; adds its nodes, characters and odd texts to `size`."""
    size[0] += 1
    kind = type(value)
    if kind is str:
        _measure(value, size)
        return value
    if kind is float or kind is int:
        return _as_double(value)
    if value is None or kind is bool:
        return value
    if depth >= JSON_MAX_DEPTH:
        raise EvaluationFailed(f"values are nested deeper than {JSON_MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        _measure("".join(value), size)
        return {key: _as_cel(item, size, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_cel(item, size, depth + 1) for item in value]
    raise EvaluationFailed(f"a {kind.__name__} is not a JSON value")


def _measure(text: str, size: list[int]) -> None:
    if text.isascii():
        size[1] += len(text)
        # `xn--` is the prefix of an international name.
        size[2] += "--" in text
    else:
        size[1] += len(text.encode("utf-8", "surrogatepass"))
        size[2] += 1


def _as_double(value: float) -> float:
    # Not a number, infinite, or beyond what a double represents exactly: comparing it is meaningless.
    if not math.isfinite(value) or (type(value) is int and abs(value) > MAX_SAFE_INTEGER):
        raise EvaluationFailed("a number is not finite or beyond ±(2^53 − 1)")
    return float(value)
