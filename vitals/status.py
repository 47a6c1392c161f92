"""Heartbeats in status files: what the processes of this machine say of themselves."""

from __future__ import annotations

from pathlib import Path

from schemas.status_file import read_status
from vitals.word import Word, WordUnreadable, word_of


def read_word(path: Path) -> tuple[Word, float] | None:
    """The heartbeat in a status file and its age in seconds; None where there is none."""
    status = read_status(path)
    if status is None:
        return None
    try:
        return word_of({"role": path.stem, "name": path.stem, "host": "", **status}), float(status["age_s"])
    except WordUnreadable:
        return None
