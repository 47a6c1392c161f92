"""A snapshot holds all of a partition's fold: whatever field a struct has comes back as it was."""

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from immutables import Map
from msgspec import Struct

from services.domain.definitions import Definitions
from services.domain.policy import PolicySet
from services.domain.state import Execution
from services.domain.trust.reading import Contrary
from services.runtime.answered import Answered, NewestAnswered
from services.runtime.effects import RuleChange
from services.runtime.executions_partition import Entry, ExecutionsPartition
from services.runtime.ledger import Ledger
from services.runtime.rule_uses_partition import UsesEntry
from services.runtime.snapshot_state import encode_ledger, restore_ledger

KEY, OTHER, ENDED, USES = b"acme/main/x", b"acme/main/y", b"acme/main/z", b"acme/main/rule/r"
PLAIN: dict[Any, Any] = {bool: True, type(None): None, None: None}


def filled(kind: Any, name: str = "x", number: int = 1) -> Any:
    """A value of a type with nothing in it left at its default, and two of whatever there may be several of."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    if kind in (str, int):
        return f"{name}-{number}" if kind is str else 7 + number
    if kind is bytes:
        return f"{name}-{number}".encode()
    if origin is Literal:
        return inner[-1]
    if origin in (Union, types.UnionType):
        return filled(next(one for one in inner if one is not type(None)), name, number)
    if isinstance(kind, type) and (issubclass(kind, Struct) or hasattr(kind, "_fields")):
        return kind(**{field: filled(hint, field, number) for field, hint in get_type_hints(kind).items()})
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(filled(one, name, index) for index, one in enumerate(inner))
    # Not in their order, so that what keeps one is told from what sorts.
    two = [tuple(filled(one, name, index) for one in inner if one is not Ellipsis) for index in (2, 1)]
    if origin in (dict, Map):
        return origin(two)
    return origin(one for (one,) in two)


def empty() -> tuple[Ledger, ExecutionsPartition]:
    rules = Definitions(policies=PolicySet())
    executions = ExecutionsPartition(lambda: rules)
    return Ledger(executions), executions


def test_restore_of_what_has_everything_set_gives_all_of_it_back() -> None:
    ledger, executions = empty()
    entry = Entry(filled(Execution), 3, filled(Answered))
    executions.live = {KEY: entry, OTHER: entry}
    executions.recent[ENDED] = entry
    executions.forgotten, executions.unreadable = {b"acme/main/old"}, {OTHER: "why"}
    executions.orphans = filled(NewestAnswered)
    executions.uses.entries[USES] = filled(UsesEntry)
    executions.rule_changes.add(filled(RuleChange))
    executions.rule_changes.spent.add(("acme", "r"))
    name = ("acme", "main", "bot", "pay", "risk=writes")
    executions.contrary.note(name, Contrary(0, 7))
    executions.contrary.floor = Contrary(0, 3)
    executions.contrary.note_value((*name[:4], "digest"), Contrary(0, 6))
    executions.contrary.values_floor = Contrary(0, 2)
    executions.contrary.wait((KEY, "c"), name, Contrary(0, 9, is_open=True))
    for key in executions.live:
        executions.note_reserving(key, entry.state)
    data = encode_ledger(ledger, executions)

    restored_ledger, restored = empty()
    restore_ledger(data, restored_ledger, restored)

    assert restored.live == executions.live
    assert (restored.recent, restored.orphans) == (executions.recent, executions.orphans)
    assert (restored.forgotten, restored.unreadable) == (executions.forgotten, executions.unreadable)
    assert restored.uses.entries == executions.uses.entries
    assert list(restored.uses.entries[USES].commands.digests) == ["digests-2", "digests-1"]
    assert restored.contrary.newest == executions.contrary.newest
    assert restored.contrary.values == executions.contrary.values
    assert restored.contrary.of_value(("other",) * 5) == Contrary(0, 2)
    assert (restored.contrary.floor, restored.contrary.waiting) == (
        Contrary(0, 3),
        executions.contrary.waiting,
    )
    assert restored.contrary.of(name) == Contrary(0, 9, is_open=True)
    assert (restored.rule_changes, restored.reserving) == (executions.rule_changes, executions.reserving)
    assert encode_ledger(restored_ledger, restored) == data
