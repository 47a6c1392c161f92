"""From where on the log is signed: `signed-from.json` beside the keys, and its copy.

The file says for each partition of a topic of events from which offset on a decider's signature is owed (`seals`). It
cannot be made again from nothing: with a place behind the true one, what was forged before it would be believed. So
the installation writes everything twice, and neither of the two changes without a word.
"""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from host.json_files import read_json_file
from host.key_files import KeysUnreadable, write_private

SIGNED_FROM = "signed-from.json"
# Not in `published.json`: a process of an earlier version reads that one as keys only.
COPY = "signed-from.copy.json"

# From which offset on a partition is signed; or where that changed, in turns: signed, not signed, signed …
Since = int | tuple[int, ...]
Places = Mapping[str, Sequence[Since]]


class SealsUnreadable(KeysUnreadable):
    """From where on the log is signed is not known; the message says what to do."""


def owes(since: Since, offset: int) -> bool:
    """Whether what stands at an offset of a partition must be signed."""
    return offset >= since if isinstance(since, int) else bisect_right(since, offset) % 2 == 1


def is_on(since: Since) -> bool:
    """Whether what comes next in a partition must be signed."""
    return isinstance(since, int) or len(since) % 2 == 1


def switched(since: Since, end: int, *, on: bool) -> Since:
    """From where on a partition is signed once signing is switched on or off where it ends; the same if it was so.

    Args:
        since: up to now.
        end: one past its last record.
        on: whether what comes must be signed.
    """
    if is_on(since) == on:
        return since
    # A log that was restored shorter than it was.
    return (*(min(place, end) for place in _turns(since)), end)


def read_signed_from(path: Path) -> dict[str, tuple[Since, ...]]:
    """What `signed-from.json` says.

    Raises:
        SealsUnreadable: it is missing or damaged.
    """
    try:
        return _read(path)
    except FileNotFoundError as error:
        raise SealsUnreadable(
            f"{path} is missing, which says from where on the log is signed: copy it from the host where Placet was "
            "installed. On that host `placet up` or `python -m ops.install` makes it again, or says why not."
        ) from error
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise SealsUnreadable(
            f"{path} does not say from where on the log is signed ({type(error).__name__}): {_way_back(path)}."
        ) from error


def installed_signed_from(path: Path) -> dict[str, tuple[Since, ...]]:
    """What the installation wrote into `signed-from.json`: the file, or its copy where it is missing.

    Returns:
        Nothing where both are missing.

    Raises:
        SealsUnreadable: one of the two is damaged, or they do not say the same.
    """
    copied = _copy(path)
    if not path.exists():
        return copied
    found = read_signed_from(path)
    # Of a write that was cut short the file is the newer one.
    if lost := [topic for topic, places in copied.items() if not _goes_on(found.get(topic, ()), places)]:
        raise SealsUnreadable(
            f"{path} says otherwise of {lost[0]} than {path.with_name(COPY)}: copy that over it, or, where the "
            "file was changed on purpose, remove the copy; it is written again from the file"
        )
    return found


def is_installed(path: Path) -> bool:
    """Whether the installation wrote the file, also where only its copy is left."""
    return path.exists() or path.with_name(COPY).exists()


def write_signed_from(path: Path, since: Places) -> None:
    """Keep from where on each topic is signed, and then the copy; the caller holds the directory of keys."""
    data = json.dumps({topic: list(places) for topic, places in since.items()}, indent=1).encode()
    for target in (path, path.with_name(COPY)):
        if not target.exists() or target.read_bytes() != data:
            write_private(target, data)


def _copy(path: Path) -> dict[str, tuple[Since, ...]]:
    copy = path.with_name(COPY)
    try:
        return _read(copy)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise SealsUnreadable(
            f"{copy} is damaged ({type(error).__name__}): "
            + (
                f"remove it once {path} is known to be right; it is written again from that"
                if path.exists()
                else f"restore it or {path} from a backup or another host (docs/identity.md, From where on)"
            )
        ) from error


def _way_back(path: Path) -> str:
    """What to do about a damaged file, which deletes nothing that stands nowhere else."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        if _read(path.with_name(COPY)):
            return f"copy {path.with_name(COPY)} over it, which has what the installation wrote"
    return "restore it from a backup or another host (docs/identity.md, From where on)"


def _read(path: Path) -> dict[str, tuple[Since, ...]]:
    found = read_json_file(path)
    return {topic: tuple(_since(entry) for entry in entries) for topic, entries in found.items()}


def _since(entry: object) -> Since:
    if isinstance(entry, list):
        return tuple(int(offset) for offset in entry)
    return int(entry)  # type: ignore[call-overload, no-any-return]


def _goes_on(found: Sequence[Since], before: Sequence[Since]) -> bool:
    """Whether each partition's places begin as they were before."""
    if len(found) < len(before):
        return False
    turns = [(_turns(now), _turns(then)) for now, then in zip(found, before, strict=False)]
    return all(now[: len(then)] == then for now, then in turns)


def _turns(since: Since) -> tuple[int, ...]:
    return (since,) if isinstance(since, int) else since
