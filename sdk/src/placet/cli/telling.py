"""What Placet tells of a conversation at a terminal, and what an agent says there: neither looks like the other.

At a terminal only Placet's own lines begin in the first column. All rows of what an agent says are indented, also
those into which the terminal would break a long line, and so are the further rows of Placet's lines, because these
quote agents and people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placet.cli import safe
from placet.cli.rows import rows_of
from placet.cli.session import console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

MARGIN = "  "
CONTINUED = "↳ "
# A wide character takes two columns.
ROW_MIN = 2


def tell(text: str) -> None:
    """Print a line about the conversation beside the output, apart from what the agent says."""
    print_line(console(stderr=True), safe.text(f"[{text}]"))


def say(text: str) -> None:
    """Print what the agent says on the output; unchanged if that is no terminal."""
    print_line(console(), safe.text(text, lines=True), first=MARGIN)


def list_one(text: str) -> None:
    """Print a line of what a question offers, which its agent wrote, above the prompt."""
    print_line(console(stderr=True), safe.text(text), first=MARGIN)


def print_question(text: str) -> None:
    """Print a question above the prompt for its answer."""
    print_line(console(stderr=True), safe.text(text, lines=True), first=MARGIN)


def print_line(screen: Console, text: Text, first: str = "") -> None:
    """Print a line, or several, broken between words; unchanged if the output is no terminal.

    Args:
        screen: where.
        text: the line, safe to show.
        first: the margin of the first row; the others have `MARGIN`.
    """
    _print(screen, text, first, MARGIN, at_words=True)


def print_exactly(screen: Console, text: Text) -> None:
    """Print a line of which no character may be lost: a terminal's further rows begin with `CONTINUED`."""
    _print(screen, text, "", CONTINUED, at_words=False)


def _print(screen: Console, text: Text, first: str, rest: str, *, at_words: bool) -> None:
    if not screen.is_terminal:
        screen.print(text, soft_wrap=True)
        return
    from rich.text import Text

    margin = first
    for row in rows_of(text.plain, max(screen.width - len(rest), ROW_MIN), at_words=at_words):
        screen.print(Text(margin + row, style=text.style), soft_wrap=True)
        margin = rest
