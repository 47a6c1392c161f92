"""What a command is given and cannot use is wrong usage, exit code 2, and nothing is asked or sent."""

from __future__ import annotations

import pytest

from placet.cli.prompting import InputEnded
from tests.sdk.terminal import HOLD, Terminal

ID = str(HOLD["hold_id"])


@pytest.mark.parametrize(
    "command",
    [
        ("state", "invoice-march", "--at", "nonsense"),
        ("state", "invoice-march", "--at", "-1"),
        ("state", "invoice-march", "--at", "2026-11-20T10:00:00"),
        ("audit", "--since", "bla"),
        ("audit", "--since", "2026-13-01T00:00:00Z"),
        ("audit", "--since", "0001-01-01T00:00:00+10:00"),
        ("events", "--from", "2026-13-01T00:00:00Z"),
        ("trust", "report", "--since", "yesterday"),
    ],
    ids=" ".join,
)
def test_malformed_time_is_wrong_usage(terminal: Terminal, command: tuple[str, ...]) -> None:
    assert terminal(*command) == 2
    assert command[-2] in terminal.err
    assert "RFC 3339" in terminal.err
    assert "such as 2026-01-05T12:00:00Z" in " ".join(terminal.err.replace("│", " ").split())
    assert terminal.script.asked == []


@pytest.mark.parametrize(
    "command",
    [
        ("inbox", "--agent", ""),
        ("executions", "--agent", ""),
        ("events", "--execution", ""),
        ("events", "--from", ""),
        ("state", "invoice-march", "--at", ""),
        ("state", ""),
        ("show", ""),
        ("delegate", ID, ""),
        ("approve", ID, "--yes", "--digest", ""),
        ("approve", ID, "--yes", "--seen", ""),
        ("approve", ID, "--yes", "--scope", "rule", "--where", ""),
        ("audit", "--subject", ""),
        ("audit", "--since", ""),
        ("audit", "impact", "--reviewer", ""),
        ("policy", "show", ""),
        ("principals", "publish", "mia-m", "--subject", ""),
        ("vault", "erase", "r1", "--yes", "--execution", ""),
        ("audit", "fetch", "--out", ""),
        ("audit", "fetch", "--out="),
        ("audit", "prove", "e1", "--since-head", ""),
        ("audit", "verify", ""),
        ("audit", "verify", ".", "--key", ""),
        ("policy", "publish", ""),
    ],
    ids=" ".join,
)
def test_empty_option_or_argument_is_wrong_usage(terminal: Terminal, command: tuple[str, ...]) -> None:
    assert terminal(*command) == 2
    assert "it is empty" in terminal.err
    assert terminal.script.asked == []


@pytest.mark.parametrize(
    "command",
    [
        ("show", "invoice-march/"),
        ("show", "/c0ffee"),
        ("show", "/"),
        ("show", "invoice-march/ "),
        ("show", "invoice-march/c0ffee/x"),
        ("vault", "erase", "invoice-march/", "--yes"),
        ("vault", "erase", "/c0ffee", "--yes"),
        ("vault", "erase", "/"),
    ],
    ids=" ".join,
)
def test_call_without_an_id_on_a_side_of_the_slash_is_wrong_usage(
    terminal: Terminal, command: tuple[str, ...]
) -> None:
    assert terminal(*command) == 2
    assert "EXECUTION/CALL" in terminal.err
    assert terminal.script.asked == []


def test_execution_of_a_call_is_not_named_twice(terminal: Terminal) -> None:
    assert terminal("vault", "erase", "invoice-march/c0ffee", "--yes", "--execution", "other") == 2
    assert "--execution" in terminal.err
    assert terminal.script.asked == []


@pytest.mark.parametrize(
    "command",
    [
        ("show", " "),
        ("approve", "a/b", "--yes"),
        ("approve", " ", "--yes", "--group"),
        ("reject", "/", "--feedback", "no"),
        ("answer", " ", "x"),
        ("edit", "/", "--arguments", "{}", "--yes"),
        ("state", "a/"),
        ("pause", "/"),
        ("cancel", " ", "--yes"),
        ("revoke", "invoice-march", "/"),
        ("revoke", " ", "c0ffee"),
        ("report-impact", "invoice-march", "/", "--reason", "harm"),
        ("claim", " "),
        ("extend", "/", "1h"),
        ("events", "--execution", "/"),
        ("rules", "activate", " "),
        ("rules", "revoke", "/"),
        ("audit", "prove", ""),
        ("audit", "prove", " "),
        ("audit", "prove", "a/b"),
        ("audit", "prove", "a?b=c"),
        ("vault", "erase", " "),
        ("vault", "destroy-key", "/"),
    ],
    ids=" ".join,
)
def test_what_no_id_can_begin_with_is_wrong_usage(terminal: Terminal, command: tuple[str, ...]) -> None:
    assert terminal(*command) == 2
    assert "must be 1 to 128 of A-Z a-z 0-9 . _ : -" in terminal.err or "it is empty" in terminal.err
    assert terminal.sent() == []


def test_empty_text_for_the_agent_is_none(terminal: Terminal) -> None:
    assert terminal("approve", ID, "--yes", "--feedback", "") == 0


@pytest.mark.parametrize(("ends", "code"), [(KeyboardInterrupt, 130), (InputEnded, 1)])
def test_interrupt_at_the_question_is_130_and_the_end_of_the_input_a_no(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, ends: type[BaseException], code: int
) -> None:
    def read(*_: object) -> str:
        raise ends("it ends")

    monkeypatch.setattr("placet.cli.session.is_interactive", lambda: True)
    monkeypatch.setattr("placet.cli.decide.check_askable", lambda *_: None)
    monkeypatch.setattr("placet.cli.prompting._line", read)
    assert terminal("approve", ID) == code
    assert terminal.sent() == []


def test_extension_that_is_too_long_says_how_long_it_may_be(terminal: Terminal) -> None:
    assert terminal("extend", ID, "30d") == 2
    assert "30d is too long; at most 7d" in terminal.err
    assert terminal.sent() == []


@pytest.mark.parametrize(
    ("words", "meant"),
    [(("inbx",), "'inbox'"), (("polcy",), "'policy'"), (("policy", "publsh"), "'publish'")],
)
def test_command_that_is_misspelt_is_suggested(
    terminal: Terminal, words: tuple[str, ...], meant: str
) -> None:
    assert terminal(*words) == 2
    assert f"No such command {words[-1]!r}. Did you mean {meant}" in terminal.err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("export", "--format", "csv"), "'csv' is not one of 'parquet', 'jsonl'"),
        (("export", "--processes", "x"), "it should be a valid integer"),
        (("export", "--processes", "0"), "it should be greater than or equal to 1"),
        (("edit", ID, "--yes", "--arguments", "[1]"), "it should be a JSON object"),
    ],
)
def test_value_that_cannot_be_read_is_told_in_the_commands_words(
    terminal: Terminal, command: tuple[str, ...], said: str
) -> None:
    assert terminal(*command) == 2
    assert terminal.err.strip().removesuffix(".").endswith(f"{command[-2]}: {said}") or (
        terminal.err.strip().removesuffix(".").endswith(f"'{command[-2]}': {said}")
    )
