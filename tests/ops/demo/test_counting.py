from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console
from rich.progress import Progress

from ops.demo.command import counting
from ops.demo.passage import Passage
from ops.demo.suites import Call

ASKED = Passage(Call("send_email", {}), False, "hold", (), "approve", "succeeded", 4.0)
INJECTED = replace(ASKED, injected=True)


def test_counting_says_each_tenth_where_nobody_sees_a_bar() -> None:
    log = Console(file=StringIO())
    tell = counting(20, Progress(console=log), log)
    for passage in (ASKED, INJECTED, ASKED, ASKED, ASKED):
        tell(passage)
    said = log.file.getvalue()  # type: ignore[attr-defined]
    assert said == "2 of the 20 calls that the tasks need\n4 of the 20 calls that the tasks need\n"


def test_counting_on_a_terminal_is_the_bar_alone() -> None:
    screen = Console(file=StringIO(), force_terminal=True)
    tell = counting(1, Progress(console=screen), screen)
    tell(ASKED)
    assert screen.file.getvalue() == ""  # type: ignore[attr-defined]
