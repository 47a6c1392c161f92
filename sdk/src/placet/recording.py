"""Converts a function's result or exception into values that the log can record.

`encode`, `__str__` and the parts of a dataclass are user code. It is called beside the function, on
a thread of its caller and never on the client's own, and whatever it raises, something is recorded. Exceptions that
end the process (KeyboardInterrupt, SystemExit) are kept, and raised once the log has the record.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from placet.canonical import check_json
from placet.errors import Refused

T = TypeVar("T")
Encode = Callable[[Any], Any]
UNRECORDED = "placet_unrecorded_output"


@dataclass(frozen=True)
class Recordable(Generic[T]):
    """A value for the log; `interrupt` is raised after the log has it."""

    value: T
    interrupt: BaseException | None = None

    def go_on(self) -> None:
        """Raise the interrupt, if there was one."""
        if self.interrupt is not None:
            raise self.interrupt


def is_plain(output: Any) -> bool:
    """Returns True if an output is JSON without conversion; no user code is called."""
    try:
        check_json(output, "the output")
    except Exception:
        # Not JSON, or another thread changes it at this moment.
        return False
    return True


def recordable_output(output: Any, encode: Encode | None) -> Recordable[Any]:
    """An output in recorded form: as JSON, or marked as not recorded, with its type.

    Args:
        output: the function's return value.
        encode: converts it to JSON; None if it should be JSON, or a dataclass of JSON.
    """
    # The tool has run: a problem with its output must not hide that.
    try:
        value = encode(output) if encode is not None else _parts(output)
        check_json(value, "the output")
    except Exception:
        return Recordable(_not_json(output))
    except BaseException as interrupt:
        return Recordable(_not_json(output), interrupt)
    return Recordable(value)


def unrecorded(why: str) -> dict[str, str]:
    """The value in the log in place of an output that cannot be recorded; `why` has nothing of the output."""
    return {UNRECORDED: why}


def _not_json(output: Any) -> dict[str, str]:
    # Its repr can show what its author never meant to be kept.
    return unrecorded(f"not JSON: {type(output).__module__}.{type(output).__qualname__}")


def recordable_failure(failure: BaseException, is_exposed: bool) -> Recordable[str]:
    """An exception in recorded form: its type's name, and its message if it has one.

    Args:
        failure: the exception.
        is_exposed: its message can contain sensitive values, and is not recorded.
    """
    name = type(failure).__name__
    if is_exposed:
        # A refusal's code is one of Placet's own.
        code = f" {failure.code}" if isinstance(failure, Refused) else ""
        return Recordable(f"{name}{code} (its text is not recorded: it can contain sensitive values)")
    try:
        message = str(failure).encode("utf-8", "replace").decode()
    except Exception as unsaid:
        return Recordable(f"{name} (its text failed: {type(unsaid).__name__})")
    except BaseException as interrupt:
        return Recordable(f"{name} (its text failed: {type(interrupt).__name__})", interrupt)
    return Recordable(f"{name}: {message}" if message else name)


def _parts(output: Any) -> Any:
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        return dataclasses.asdict(output)
    return output
