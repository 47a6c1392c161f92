"""What the names of files beside a text say of it: whether it is written into a program, a setting or data."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_PATHS = frozenset(["file", "filename", "filepath", "fname", "path", "pathname"])
# Other names are of files only where the ending says so: `destination: St.Gallen`, `name: acme.com`.
_OTHERS = frozenset(["dest", "destination", "document", "key", "location", "name", "target", "uri", "url"])
# What people read, or see and hear.
_DOCUMENT_ENDINGS = """
    bmp csv doc docx gif heic jpeg jpg md mov mp3 mp4 odp odt pdf png ppt pptx rst rtf svg tiff txt wav webp xls xlsx
    zip
"""
_PROGRAM_ENDINGS = """
    bash bat c cfg cmd conf config cpp cs css env go gradle h hcl htm html ini java js json jsx kt lua php pl
    properties ps1 py r rb rs service sh sql swift tf toml ts tsx xml yaml yml zsh
"""
_DOCUMENTS, _PROGRAMS = frozenset(_DOCUMENT_ENDINGS.split()), frozenset(_PROGRAM_ENDINGS.split())
_ENDING = re.compile(r"\.([A-Za-z][\w-]{0,15})~?\s*\Z")
# Files of programs and settings that have no ending.
_BARE = re.compile(
    r"[a-z]{2,20}file|authorized_keys|config|crontab|exports|fstab|group|hosts|passwd|profile|shadow|sudoers",
    re.IGNORECASE,
)
_AFTER_PATH = re.compile(r"[?#]")
# Of a longer name the end is looked at, and so many names of a list.
MAX_CHARS, MAX_NAMES = 2_048, 8


def is_beside_program(words: frozenset[str], value: Any) -> bool:
    """True if an argument names a file that is no document, so that a text beside it is written into a program.

    Args:
        words: of the argument's name, in small letters.
        value: the argument: a name, a list of some, or an object with one.
    """
    is_path = not words.isdisjoint(_PATHS)
    if not is_path and words.isdisjoint(_OTHERS):
        return False
    return any(_is_program(name, is_path=is_path) for name in _names(value))


def _names(value: Any) -> Iterator[str]:
    inner = [*value.values()] if isinstance(value, Mapping) and len(value) <= MAX_NAMES else value
    for one in inner[:MAX_NAMES] if isinstance(inner, list | tuple) else (inner,):
        if isinstance(one, str):
            yield one[-MAX_CHARS:]


def _is_program(name: str, *, is_path: bool) -> bool:
    _, mark, behind = name.partition("://")
    place = behind.partition("/")[2] if mark else name
    place = _AFTER_PATH.split(place)[0].strip()
    if "@" in place and not place.startswith((".", "/", "~")):
        # A mail address.
        return False
    ending = _ENDING.search(place)
    if ending is None or ending[1].lower() in _DOCUMENTS:
        # Without one it is a program in a folder: `/etc/crontab`, `bin/deploy`.
        return (
            is_path and not mark and ending is None and ("/" in place or _BARE.fullmatch(place) is not None)
        )
    return (is_path and not mark) or ending[1].lower() in _PROGRAMS
