"""What a function returned or raised, in words that the log can take.

`encode`, `__repr__`, `__str__` and the parts of a dataclass are anybody's code. It is called beside the function, on
a thread of its caller and never on the client's own, and whatever it raises, something is told. What asks for the end
of the process (KeyboardInterrupt, SystemExit) is kept, to be raised once the log has what was told.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from placet.canonical import check_json

T = TypeVar("T")
Encode = Callable[[Any], Any]
MOST_SHOWN_CHARS = 1000
UNRECORDED = "placet_unrecorded_output"


@dataclass(frozen=True)
class Told(Generic[T]):
    """What the log is told; `interrupt` is raised after it was."""

    value: T
    interrupt: BaseException | None = None

    def go_on(self) -> None:
        """Raise what asked for the end meanwhile."""
        if self.interrupt is not None:
            raise self.interrupt


def is_plain(output: Any) -> bool:
    """Whether an output is JSON as it is; no code of anybody is called."""
    try:
        check_json(output, "the output")
    except Exception:
        # No JSON, or another thread changes it just now.
        return False
    return True


def output_told(output: Any, encode: Encode | None) -> Told[Any]:
    """An output as it is recorded: as JSON, or marked as not recorded with a text that shows what it was.

    Args:
        output: what the function returned.
        encode: makes JSON of it; None where it should be JSON, or a dataclass of JSON.
    """
    # The tool has run: whatever is wrong with its output must not hide that.
    try:
        value = encode(output) if encode is not None else _parts(output)
        check_json(value, "the output")
    except Exception:
        return _shown(output, None)
    except BaseException as interrupt:
        return _shown(output, interrupt)
    return Told(value)


def unrecorded(text: str) -> dict[str, str]:
    """What stands for an output in the log that is not recorded."""
    return {UNRECORDED: text.encode("utf-8", "replace").decode()[:MOST_SHOWN_CHARS]}


def failure_told(failure: BaseException) -> Told[str]:
    """An exception as it is recorded: its type's name, and its words where it has them."""
    name = type(failure).__name__
    try:
        return Told(f"{name}: {failure}".encode("utf-8", "replace").decode())
    except Exception as unsaid:
        return Told(f"{name} (its text failed: {type(unsaid).__name__})")
    except BaseException as interrupt:
        return Told(f"{name} (its text failed: {type(interrupt).__name__})", interrupt)


def _parts(output: Any) -> Any:
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        return dataclasses.asdict(output)
    return output


def _shown(output: Any, interrupt: BaseException | None) -> Told[Any]:
    kind = f"{type(output).__module__}.{type(output).__qualname__}"
    try:
        return Told(unrecorded(repr(output)), interrupt)
    except Exception as unshown:
        return Told(unrecorded(f"<{kind}: its repr failed: {type(unshown).__name__}>"), interrupt)
    except BaseException as later:
        return Told(unrecorded(f"<{kind}: its repr failed: {type(later).__name__}>"), interrupt or later)
