"""CEL expressions: compiled at publication and evaluated with limited work; an error is never an answer."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from schemas.linear_patterns import bounded_pattern
from schemas.plain_words import did_you_mean
from services.domain.policy.bindings import Bindings
from services.domain.policy.cel_engine import cel
from services.domain.policy.cel_failures import first_line, kind_of, reason_of
from services.domain.policy.cel_history import HISTORY_FUNCTIONS, without_history_calls
from services.domain.policy.cel_memory import without_calls
from services.domain.policy.cel_program import program_of
from services.domain.policy.cel_shape import OWN_FUNCTIONS, Shape, check_words, patterns_of, shape_of
from services.domain.policy.cel_times import ACCESSORS, zone_of, zones_of
from services.domain.policy.cel_tokens import Token, Unreadable, call_arguments, tokenize
from services.domain.policy.failures import EvaluationFailed, ExpressionTooLarge
from services.domain.policy.sql_dialects import OFFERED

MAX_COST = 20_000
# For evaluation that delays nobody else: a user's own tests of a policy, and a comparison in a separate process.
MAX_COST_ALONE = 100_000_000
_OPERATORS = """
    !_ -_ _&&_ _||_ _?_:_ _==_ _!=_ _<_ _<=_ _>_ _>=_ _+_ _-_ _*_ _/_ _%_ _[_] @in @not_strictly_false
"""
_FUNCTIONS = """
    size contains startsWith endsWith matches int uint double string bytes timestamp duration type dyn
"""
# The parser's message: the position and the offending text; the list of expected tokens is dropped.
_SYNTAX = re.compile(r"ERROR: <input>:\d+:(\d+): (?:Syntax error: )?(.*?)(?: expecting \{.*)?$")
_NAMED_FUNCTIONS = {*_FUNCTIONS.split(), *ACCESSORS, *OWN_FUNCTIONS, *HISTORY_FUNCTIONS}
_KNOWN_FUNCTIONS = {*_OPERATORS.split(), *_NAMED_FUNCTIONS}


class DoesNotCompile(ValueError):
    """The expression cannot be published; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """A compiled expression, and the values that it reads."""

    source: str
    shape: Shape = field(compare=False)
    program: Any = field(compare=False, repr=False)
    functions: tuple[str, ...] = field(compare=False)
    tokens: tuple[Token, ...] = field(compare=False, repr=False)


@lru_cache(maxsize=4096)
def compile_expression(source: str) -> CompiledExpression:
    """Compile an expression and check every name in it.

    Raises:
        DoesNotCompile: bad syntax, an unknown name, field, function or dialect, or a constant that is neither
            true nor false.
    """
    try:
        tokens = tokenize(source)
        plain = source
        for replaced in (without_calls, without_history_calls):
            if (text := replaced(tokens)) is not None:
                plain, tokens = text, tokenize(text)
        check_words(tokens)
        program = cel.compile(plain)
        shape = shape_of(tokens)
    except (Unreadable, ValueError) as error:
        raise DoesNotCompile(_plain(error)) from error
    used = set(program.functions())
    if unknown := sorted(used - _KNOWN_FUNCTIONS):
        raise DoesNotCompile(f"unknown function {unknown[0]!r}{did_you_mean(unknown[0], _NAMED_FUNCTIONS)}")
    for pattern in patterns_of(tokens):
        # Compiled now, when there is time for it, and not at the first evaluation.
        bounded_pattern(pattern)
    for zone in zones_of(tokens):
        with suppress(ValueError):
            zone_of(zone)
    if (as_run := program_of(tokens)) is not None:
        program = cel.compile(as_run)
    _check_dialects(tokens)
    own = tuple(name for name in OWN_FUNCTIONS if name in used)
    expression = CompiledExpression(source, shape, program, own, tokens)
    if not shape.reads:
        _check_constant(expression)
    return expression


def _plain(error: Exception) -> str:
    """The position and text of the parser's error, without the names of its internals."""
    found = _SYNTAX.search(said := first_line(error))
    if found is None:
        return said
    place = int(found.group(1))
    stumbled = found.group(2).removesuffix(" expecting <EOF>")
    if "<EOF>" in stumbled:
        return "it ends too early; something is missing"
    if "Context`" in stumbled:
        return f"something is missing in the part that begins at its character {place}"
    return f"it cannot be parsed from its character {place} on: {stumbled}"


def _check_dialects(tokens: tuple[Token, ...]) -> None:
    for index, token in enumerate(tokens):
        if token.text == "sql_kind":
            dialect = call_arguments(tokens, index + 1)[1:]
            name = dialect[0][0].text.strip("'\"") if dialect else ""
            if dialect and name not in OFFERED:
                known = f"known are {', '.join(OFFERED)}"
                raise DoesNotCompile(f"unknown SQL dialect {name!r}{did_you_mean(name, OFFERED)}; {known}")


def _check_constant(expression: CompiledExpression) -> None:
    try:
        evaluate_in_process(expression, Bindings({}, 0))
    except ExpressionTooLarge:
        # No call waits for it here: it is evaluated when a call needs it, within the limit for calls.
        return
    except EvaluationFailed as error:
        raise DoesNotCompile(f"this always fails: {error}") from error


def cost_of(expression: CompiledExpression, bindings: Bindings) -> float:
    """An upper bound of the expression's work on these values, in units of about 0.3 µs."""
    return expression.shape.work.cost(bindings.size(expression.shape.reads))


Evaluator = Callable[[CompiledExpression, Bindings], bool]


def evaluate_in_process(expression: CompiledExpression, bindings: Bindings) -> bool:
    """Evaluate in this process, if the work is certainly small.

    Raises:
        ExpressionTooLarge: it may be large; a helper process is needed.
        EvaluationFailed: an error, or an answer that is neither true nor false.
    """
    return _within(MAX_COST, expression, bindings)


def evaluate_alone(expression: CompiledExpression, bindings: Bindings) -> bool:
    """Evaluate with a limit of about half a minute of work: for callers that delay nobody else.

    Raises:
        ExpressionTooLarge: the work may be larger.
        EvaluationFailed: an error, or an answer that is neither true nor false.
    """
    return _within(MAX_COST_ALONE, expression, bindings)


def _within(most: int, expression: CompiledExpression, bindings: Bindings) -> bool:
    cost = cost_of(expression, bindings)
    if cost > most:
        raise ExpressionTooLarge(
            f"up to {cost:.0f} steps, and at most {most} are done without a helper process"
        )
    return run(expression, bindings)


def run(expression: CompiledExpression, bindings: Bindings) -> bool:
    """Evaluate with unlimited work: only in a process that can be killed, or for work that is known to be small.

    Raises:
        EvaluationFailed: an error, or an answer that is neither true nor false.
    """
    bindings.failures.clear()
    try:
        answer = expression.program.execute(bindings.context())
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the Rust binding is not an Exception
        said = bindings.failures[0] if bindings.failures else error
        raise EvaluationFailed(reason_of(said, expression.tokens, bindings.values())) from error
    if bindings.failures:
        raise EvaluationFailed(reason_of(bindings.failures[0], expression.tokens, bindings.values()))
    if answer is not True and answer is not False:
        raise EvaluationFailed(f"the answer is {kind_of(answer)}, neither true nor false")
    return answer
