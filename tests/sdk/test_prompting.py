"""Prompts on a real terminal: only what is typed while one waits is its answer."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.typing_person import END, INTERRUPT, typing

BEGIN = "import sys; from placet.cli import prompting\n"
ASKS = "print('got', repr(prompting.ask('Name')))"
HIDES = "print('got', repr(prompting.ask('Name', hidden=True)))"


def command(program: str) -> list[str]:
    return [sys.executable, "-c", BEGIN + program]


@pytest.mark.parametrize("program", [ASKS, HIDES])
def test_line_that_was_typed_before_the_prompt_is_not_its_answer(program: str) -> None:
    with typing(command(program), early="early\nand more\nhalf") as person:
        shown = person.expect("Name: ")
        assert "[what was typed before this prompt is not used]" in shown
        person.type("late")
        assert person.ended()[1].endswith("got 'late'\r\n")


@pytest.mark.parametrize("length", [4_095, 9_000])
def test_line_that_the_terminal_may_have_cut_is_no_answer(length: int) -> None:
    with typing(command(ASKS)) as person:
        person.expect("Name: ")
        person.type("x" * length)
        person.expect("a terminal cuts lines at 4,095 bytes")
        person.expect("Name: ")
        person.type("whole")
        assert person.ended()[1].endswith("got 'whole'\r\n")


def test_confirmation_is_not_given_by_what_was_pasted() -> None:
    program = "print('got', prompting.ask('Name'), prompting.agrees('Sure?'))"
    with typing(command(program)) as person:
        person.expect("Name: ")
        person.press("hello\ny\ny\n")
        person.expect("Sure? [y/N]: ")
        person.type("")
        assert person.ended()[1].endswith("got hello False\r\n")


def test_line_that_the_input_had_read_ahead_is_no_answer() -> None:
    program = (
        "import termios; before = termios.tcgetattr(0); raw = [*before]; raw[3] &= ~termios.ICANON\n"
        "termios.tcsetattr(0, termios.TCSANOW, raw); print('go', flush=True); assert sys.stdin.readline() == 'a\\n'\n"
        "termios.tcsetattr(0, termios.TCSANOW, before);" + ASKS
    )
    with typing(command(program)) as person:
        person.expect("go")
        person.press("a\nb\n")
        person.expect("Name: ")
        person.type("late")
        assert person.ended()[1].endswith("got 'late'\r\n")


def test_hidden_line_is_not_shown_and_the_terminal_shows_again_after_it() -> None:
    with typing(command(HIDES.replace("got", "read") + ";" + ASKS)) as person:
        person.expect("Name: ")
        person.type("s3cret")
        shown = person.expect("Name: ")
        assert shown.count("s3cret") == 1, "only what the program prints"
        person.type("open")
        assert "open\r\ngot 'open'" in person.ended()[1]


def test_end_of_the_input_and_an_interrupt_end_the_prompt() -> None:
    ends = "(prompting.InputEnded, KeyboardInterrupt)"
    caught = f"\ntry: prompting.ask('Name')\nexcept {ends} as end: print(type(end).__name__)"
    for key, name in ((END, "InputEnded"), (INTERRUPT, "KeyboardInterrupt")):
        with typing(command(caught)) as person:
            person.expect("Name: ")
            person.press(key)
            assert person.ended()[1].endswith(f"\r\n{name}\r\n")


def test_empty_line_and_bytes_that_are_no_text_are_asked_for_again() -> None:
    with typing([*command(ASKS)]) as person:
        person.expect("Name: ")
        person.type("")
        person.expect("Name: ")
        os.write(person.screen, b"\xff\n")
        person.expect("that is no utf-8")
        person.expect("Name: ")
        person.type("late")
        assert person.ended()[1].endswith("got 'late'\r\n")


def test_empty_line_that_nobody_saw_is_told() -> None:
    with typing(command(HIDES)) as person:
        person.expect("Name: ")
        person.type("")
        person.expect("nothing was typed")
        person.expect("Name: ")
        person.type("late")
        assert person.ended()[1].endswith("got 'late'\r\n")


def test_lines_of_a_pipe_are_the_answers() -> None:
    program = "print(prompting.ask('A'), prompting.agrees('B'), prompting.agrees('C'))"
    done = subprocess.run(
        command(program), input="one\nyes\n", capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "one True False\n"
    assert done.stderr == "A: B [y/N]: C [y/N]: "
