"""`real_path()`: the path that an access would reach, or an error."""

import posixpath
import re
from collections.abc import Callable

from services.domain.plain import is_plain

MAX_CHARS = 4096
PathResolver = Callable[[str], str]
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
# Segments that some systems treat as `..`: `. .`, `..;a=b`, `...`.
_NEARLY_BACK = re.compile(r"(^|/)(\. +\.|\.\.[ .;?#])")


class UnreadablePath(ValueError):
    """It is ambiguous which file this path names."""


def real_path(path: str, resolve: PathResolver | None = None) -> str:
    """An absolute path without `.`, `..` and doubled slashes.

    The pure core has no disk: symbolic links are followed only by an injected resolver. The runner resolves
    again, on its own disk, before it touches a file (docs/policy.md, "Paths").

    Args:
        path: absolute, with `/`, at most 4,096 characters; backslashes and control characters are errors.
        resolve: takes and returns an absolute path, following links; by default `..` is removed lexically.

    Raises:
        UnreadablePath: with the reason.
    """
    plain = _normalised(path)
    # Links must be followed before `..` is removed, so the resolver gets the path unchanged.
    return plain if resolve is None else _normalised(resolve(path))


def _normalised(path: object) -> str:
    if not isinstance(path, str) or len(path) > MAX_CHARS:
        raise UnreadablePath(f"real_path() reads a text of at most {MAX_CHARS} characters")
    if _FORBIDDEN.search(path):
        raise UnreadablePath("the path has backslashes or control characters")
    if not is_plain(path) or _NEARLY_BACK.search(path):
        raise UnreadablePath("the path has percent signs, or characters that programs read in different ways")
    if not path.startswith("/"):
        raise UnreadablePath("the path is relative; only an absolute path says which file is meant")
    return "/" + posixpath.normpath(path).lstrip("/")
