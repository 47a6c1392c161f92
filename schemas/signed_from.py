"""The offsets from which the log is signed: `signed-from.json` beside the keys, and its copy.

The file has, for each partition of an events topic, the offset from which a decider's signature is required
(`event_signatures`). It cannot be made again from nothing: with an offset after the true one, records forged before
that offset would be trusted. So the installation writes everything twice, and no change of either file goes
unreported.
"""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from host.json_files import read_json_file
from host.key_files import KeysUnreadable, write_private

SIGNED_FROM = "signed-from.json"
# Not in `published.json`, which processes of earlier versions read as keys only.
COPY = "signed-from.copy.json"

# The offset from which a partition is signed; or the offsets where that changed, in turns: signed, unsigned, signed …
Since = int | tuple[int, ...]
Places = Mapping[str, Sequence[Since]]


class SignedFromUnreadable(KeysUnreadable):
    """The offsets from which the log is signed are not known; the message says what to do."""


def owes(since: Since, offset: int) -> bool:
    """Returns True if the record at an offset of a partition must be signed."""
    return offset >= since if isinstance(since, int) else bisect_right(since, offset) % 2 == 1


def is_on(since: Since) -> bool:
    """Returns True if the next record of a partition must be signed."""
    return isinstance(since, int) or len(since) % 2 == 1


def switched(since: Since, end: int, *, on: bool) -> Since:
    """The offsets of a partition once signing is switched on or off at its end; unchanged if it already was so.

    Args:
        since: the offsets until now.
        end: one past its last record.
        on: true if the next records must be signed.
    """
    if is_on(since) == on:
        return since
    # A restored log can be shorter than it was.
    return (*(min(place, end) for place in _turns(since)), end)


def read_signed_from(path: Path) -> dict[str, tuple[Since, ...]]:
    """The contents of `signed-from.json`.

    Raises:
        SignedFromUnreadable: it is missing or damaged.
    """
    try:
        return _read(path)
    except FileNotFoundError as error:
        raise SignedFromUnreadable(
            f"{path} is missing, which says from which offsets the log is signed: copy it from the host where Placet "
            "was installed. On that host `placet up` or `python -m ops.install` writes it again, or says why not."
        ) from error
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise SignedFromUnreadable(
            f"{path} does not say from which offsets the log is signed ({type(error).__name__}): "
            f"{_way_back(path)}."
        ) from error


def installed_signed_from(path: Path) -> dict[str, tuple[Since, ...]]:
    """What the installation wrote into `signed-from.json`: the file, or its copy if the file is missing.

    Returns:
        An empty mapping if both are missing.

    Raises:
        SignedFromUnreadable: one of the two is damaged, or they differ.
    """
    copied = _copy(path)
    if not path.exists():
        return copied
    found = read_signed_from(path)
    # After a write that was cut short, the file is newer than its copy.
    if lost := [topic for topic, places in copied.items() if not _goes_on(found.get(topic, ()), places)]:
        raise SignedFromUnreadable(
            f"{path} differs about {lost[0]} from {path.with_name(COPY)}: copy that over it, or, if the "
            "file was changed on purpose, remove the copy; it is written again from the file"
        )
    return found


def is_installed(path: Path) -> bool:
    """Returns True if the installation wrote the file, also if only its copy is left."""
    return path.exists() or path.with_name(COPY).exists()


def write_signed_from(path: Path, since: Places) -> None:
    """Write the offsets of each topic to the file, then to the copy; the caller holds the keys directory's lock."""
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
        raise SignedFromUnreadable(
            f"{copy} is damaged ({type(error).__name__}): "
            + (
                f"remove it if {path} is known to be right; it is written again from that file"
                if path.exists()
                else f"restore it or {path} from a backup or another host (docs/identity.md, From where on)"
            )
        ) from error


def _way_back(path: Path) -> str:
    """What to do about a damaged file without deleting information that is stored nowhere else."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        if _read(path.with_name(COPY)):
            return f"copy {path.with_name(COPY)} over it, which contains what the installation wrote"
    return "restore it from a backup or another host (docs/identity.md, From where on)"


def _read(path: Path) -> dict[str, tuple[Since, ...]]:
    found = read_json_file(path)
    return {topic: tuple(_since(entry) for entry in entries) for topic, entries in found.items()}


def _since(entry: object) -> Since:
    if isinstance(entry, list):
        return tuple(int(offset) for offset in entry)
    return int(entry)  # type: ignore[call-overload, no-any-return]


def _goes_on(found: Sequence[Since], before: Sequence[Since]) -> bool:
    """Returns True if each partition's offsets begin with the earlier ones."""
    if len(found) < len(before):
        return False
    turns = [(_turns(now), _turns(then)) for now, then in zip(found, before, strict=False)]
    return all(now[: len(then)] == then for now, then in turns)


def _turns(since: Since) -> tuple[int, ...]:
    return (since,) if isinstance(since, int) else since
