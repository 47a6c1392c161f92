"""The names of the projects that forks get, by which others recognise a fork's run."""

from __future__ import annotations

import re
import uuid

PREFIX = "fork-"
# A project's name is at most 128 characters; this leaves room for the prefix and for what makes it new.
NAME_MAX_CHARS = 100
NEW_CHARS = 8


def fork_project(execution_id: str) -> str:
    """A name for the project of a fork that no other has, so that each fork of a run stands beside the others."""
    return f"{_begin(execution_id)}{uuid.uuid4().hex[:NEW_CHARS]}"


def is_fork(project: str, execution_id: str) -> bool:
    """True for a run that a fork has made: its project is named after the run, which has the original's id.

    A project that merely begins with the same word has runs of other names.
    """
    begin = _begin(execution_id)
    end = project[len(begin) :]
    return project.startswith(begin) and re.fullmatch(rf"[0-9a-f]{{{NEW_CHARS}}}", end) is not None


def _begin(execution_id: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9._:-]", "-", execution_id)[:NAME_MAX_CHARS]
    return f"{PREFIX}{plain}-"
