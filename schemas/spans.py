"""Spans of time in words."""


def span(ms: int) -> str:
    """A span of time for people: in seconds, or in minutes from 120 seconds on."""
    return f"{ms / 1000:.1f} s" if ms < 120_000 else f"{ms / 60_000:.0f} min"
