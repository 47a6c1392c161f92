"""Files of an installation are their owner's alone: what is made from now on, and what an earlier version made."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from ops.files import unusable

UMASK = 0o077


def keep_private(root: Path) -> None:
    """Let this process, and every process that it starts, make files for their owner alone, and tighten a directory.

    A directory that belongs to somebody else (a volume's mount point) keeps its mode; what is in it does not.

    Args:
        root: the data directory; it is made.

    Raises:
        DataDirectoryUnusableError: it cannot be made.
        DiskFullError: there is no room for it.
    """
    os.umask(UMASK)
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        tighten(root)
    except OSError as error:
        raise unusable(error, root) from error


def tighten(path: Path) -> None:
    """Take from others what they may do with a directory and all that is in it; links are not followed."""
    _tighten_one(path, path.stat())
    for entry in os.scandir(path):
        try:
            if entry.is_dir(follow_symlinks=False):
                tighten(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                _tighten_one(Path(entry.path), entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            continue  # replaced meanwhile, by a process that makes private files


def _tighten_one(path: Path, found: os.stat_result) -> None:
    if found.st_mode & UMASK and found.st_uid == os.geteuid():
        path.chmod(stat.S_IMODE(found.st_mode) & ~UMASK)


def without_secrets(
    arguments: Sequence[str], options: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """A command line without the addresses in it that hold a secret.

    Args:
        arguments: the command line.
        options: option → the variable that says the same.

    Returns:
        What is left, and the variables that say the rest.
    """
    left: list[str] = []
    moved: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        option, is_joined, value = argument.partition("=")
        if option not in options:
            left.append(argument)
            continue
        given = value if is_joined else next(rest, "")
        if _holds_secret(given):
            moved[options[option]] = given
        else:
            left.extend((argument,) if is_joined else (argument, given))
    return tuple(left), moved


def hide_secrets(options: Mapping[str, str]) -> None:
    """Start this program again without the secrets in its arguments, which every user of the machine can list.

    The variables of a process are for its own user alone (proc(5), /proc/pid/environ).
    """
    left, moved = without_secrets(sys.argv, options)
    if moved:
        os.execve(sys.executable, (sys.executable, *left), {**os.environ, **moved})  # noqa: S606 - this program


def _holds_secret(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.password or parts.query or (parts.username and "@" in parts.netloc))
