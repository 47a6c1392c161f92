"""CEL expressions: compiled at publication, evaluated within a bound, and an error is never an answer.

JSON numbers are doubles, as in CEL over JSON elsewhere: `args.amount > 500` and `args.amount > 500.0` both
work for 500 and for 98.7; arithmetic wants a double literal (`args.amount * 2.0`), whatever the number is.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Any

import cel

from services.domain.policy.cel_shape import OWN_FUNCTIONS, Read, Shape, shape_of
from services.domain.policy.cel_tokens import Token, Unreadable, call_arguments, tokenize
from services.domain.policy.paths import PathResolver, real_path
from services.domain.policy.sql import is_dialect, sql_kind
from services.domain.policy.urls import url_host

MAX_COST = 20_000
MAX_DEPTH = 64
MAX_SAFE_INTEGER = 2**53 - 1
# Work units a character: text is compared in blocks; SQL is parsed, at about two microseconds a character.
_UNITS_A_CHARACTER = 1 / 256
_UNITS_A_SQL_CHARACTER = 4
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OPERATORS = """
    !_ -_ _&&_ _||_ _?_:_ _==_ _!=_ _<_ _<=_ _>_ _>=_ _+_ _-_ _*_ _/_ _%_ _[_] @in @not_strictly_false
"""
_FUNCTIONS = """
    size contains startsWith endsWith matches int uint double string bytes timestamp duration type dyn
    getFullYear getMonth getDate getDayOfMonth getDayOfWeek getDayOfYear getHours getMinutes getSeconds
    getMilliseconds
"""
_KNOWN_FUNCTIONS = {*_OPERATORS.split(), *_FUNCTIONS.split(), *OWN_FUNCTIONS}


class DoesNotCompile(ValueError):
    """The expression cannot be published; the message says why."""


class EvaluationFailed(Exception):
    """The expression gave no answer; the call is held (or denied, where the policy says so)."""


class ExpressionTooLarge(EvaluationFailed):
    """The expression may do more work here than can be done without a helper process."""


class PolicyTimeout(EvaluationFailed):
    """The expression did not end in time."""


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """An expression that compiles, and what it reads."""

    source: str
    shape: Shape = field(compare=False)
    program: Any = field(compare=False, repr=False)
    functions: tuple[str, ...] = field(compare=False)


@lru_cache(maxsize=4096)
def compile_expression(source: str) -> CompiledExpression:
    """Compile an expression and check every name in it.

    Raises:
        DoesNotCompile: bad syntax, an unknown name, field, function or dialect, or a constant that is no
            true or false.
    """
    try:
        tokens = tokenize(source)
        program = cel.compile(source)
        shape = shape_of(tokens)
    except (Unreadable, ValueError) as error:
        raise DoesNotCompile(_first_line(error)) from error
    used = set(program.functions())
    if unknown := sorted(used - _KNOWN_FUNCTIONS):
        raise DoesNotCompile(f"unknown function {unknown[0]!r}")
    _check_dialects(tokens)
    own = tuple(name for name in OWN_FUNCTIONS if name in used)
    expression = CompiledExpression(source, shape, program, own)
    if not shape.reads:
        _check_constant(expression)
    return expression


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__


def _check_dialects(tokens: tuple[Token, ...]) -> None:
    for index, token in enumerate(tokens):
        if token.text == "sql_kind":
            dialect = call_arguments(tokens, index + 1)[1:]
            if dialect and not is_dialect(dialect[0][0].text.strip("'\"")):
                raise DoesNotCompile(f"unknown SQL dialect {dialect[0][0].text}")


def _check_constant(expression: CompiledExpression) -> None:
    try:
        evaluate_in_process(expression, Bindings({}, 0))
    except EvaluationFailed as error:
        raise DoesNotCompile(f"this always fails: {error}") from error


@lru_cache(maxsize=4096)
def _plan(reads: frozenset[Read]) -> tuple[tuple[Read, bool], ...]:
    """What to read, whole variables first, and whether the part is kept or only measured."""
    whole = {name for name, part in reads if part is None}
    ordered = sorted(reads - {("now", None)}, key=lambda read: (read[0], read[1] or ""))
    return tuple((read, read[1] is None or read[0] not in whole) for read in ordered)


class Bindings:
    """What expressions see of one call: only the fields that are read, with numbers as doubles.

    Not shared between threads; made for one call and dropped.
    """

    __slots__ = ("_context", "_sizes", "_values", "failures", "now_ms", "reads", "resolve_path", "variables")

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
        self._context: cel.Context | None = None
        self._sizes: dict[Read, tuple[int, int]] = {}
        self._values: dict[str, Any] | None = None

    def values(self) -> dict[str, Any]:
        """The variables as they are evaluated, without `now`; measured on the way.

        Raises:
            EvaluationFailed: a value that CEL cannot hold exactly.
        """
        if self._values is None:
            values: dict[str, Any] = {}
            for read, kept in _plan(self.reads):
                self._read(values, read, kept)
            # Kept only when complete: a field missing by an error would look absent to has().
            self._values = values
        return self._values

    def _read(self, values: dict[str, Any], read: Read, kept: bool) -> None:
        name, part = read
        value = self.variables.get(name)
        if part is None or not isinstance(value, Mapping):
            values[name] = self._measured(read, value)
            return
        fields = values.setdefault(name, {})
        if part in value:
            measured = self._measured(read, value[part])
            if kept:
                fields[part] = measured

    def _measured(self, read: Read, value: Any) -> Any:
        size = [0, 0]
        doubled = _as_cel(value, size, 0)
        self._sizes[read] = (size[0], size[1])
        return doubled

    def cost(self, expression: CompiledExpression) -> float:
        """The most units of work (about 0.3 µs each) that the expression can do on these values."""
        self.values()
        sizes = [self._sizes[read] for read in expression.shape.reads if read in self._sizes]
        nodes = sum(size[0] for size in sizes)
        characters = sum(size[1] for size in sizes)
        unit = _UNITS_A_SQL_CHARACTER if "sql_kind" in expression.functions else _UNITS_A_CHARACTER
        shape = expression.shape
        return (
            float((1 + nodes + shape.literals + characters * unit) * (1 + shape.concatenations))
            ** shape.exponent
        )

    def context(self) -> cel.Context:
        """The binding's own form of the values and functions, made once."""
        if self._context is None:
            variables = dict(self.values())
            if ("now", None) in self.reads:
                variables["now"] = _EPOCH + timedelta(milliseconds=self.now_ms)
            self._context = cel.Context(variables=variables, functions=self._functions())
        return self._context

    def _functions(self) -> dict[str, Callable[..., str | None]]:
        return {
            "url_host": partial(self._call, url_host),
            "real_path": partial(self._call, partial(real_path, resolve=self.resolve_path)),
            "sql_kind": partial(self._call, sql_kind),
        }

    def _call(self, function: Callable[..., str], *arguments: Any) -> str | None:
        # An error raised into the binding would be lost in `error || true`; kept aside, it always counts.
        try:
            return function(*arguments)
        except Exception as error:
            self.failures.append(error)
            return None


Evaluator = Callable[[CompiledExpression, Bindings], bool]


def evaluate_in_process(expression: CompiledExpression, bindings: Bindings) -> bool:
    """Evaluate here and now, if the work is surely small.

    Raises:
        ExpressionTooLarge: it may be large; a helper process is needed.
        EvaluationFailed: an error, or an answer that is neither true nor false.
    """
    cost = bindings.cost(expression)
    if cost > MAX_COST:
        raise ExpressionTooLarge(
            f"up to {cost:.0f} steps, and at most {MAX_COST} are done without a helper process"
        )
    return run(expression, bindings)


def run(expression: CompiledExpression, bindings: Bindings) -> bool:
    """Evaluate without a bound: only where it may be killed, or is known to be small.

    Raises:
        EvaluationFailed: an error, or an answer that is neither true nor false.
    """
    bindings.failures.clear()
    try:
        answer = expression.program.execute(bindings.context())
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the Rust binding is no Exception
        raise EvaluationFailed(_reason(bindings.failures[0] if bindings.failures else error)) from error
    if bindings.failures:
        raise EvaluationFailed(_reason(bindings.failures[0]))
    if answer is not True and answer is not False:
        raise EvaluationFailed(f"the answer is {type(answer).__name__}, neither true nor false")
    return answer


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return f"there is no field {error.args[0]!r}; guard it with has()"
    return _first_line(error).split(". ")[0] if isinstance(error, Exception) else type(error).__name__


def _as_cel(value: Any, size: list[int], depth: int) -> Any:
    """The value with numbers as doubles; adds its nodes and characters to `size`."""
    size[0] += 1
    kind = type(value)
    if kind is str:
        size[1] += len(value)
        return value
    if kind is float or kind is int:
        return _as_double(value)
    if value is None or kind is bool:
        return value
    if depth >= MAX_DEPTH:
        raise EvaluationFailed(f"values are nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        size[1] += sum(map(len, value))
        return {key: _as_cel(item, size, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_cel(item, size, depth + 1) for item in value]
    raise EvaluationFailed(f"a {kind.__name__} is no JSON value")


def _as_double(value: float) -> float:
    # Not a number, infinite, or beyond what a double holds exactly: no comparison with it means anything.
    if not math.isfinite(value) or (type(value) is int and abs(value) > MAX_SAFE_INTEGER):
        raise EvaluationFailed("a number is not finite or beyond ±(2^53 − 1)")
    return float(value)
