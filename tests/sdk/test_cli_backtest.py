"""`placet policy publish --backtest`: nothing is published of which it is not known for whom it would be replayed."""

from __future__ import annotations

from pathlib import Path

from tests.sdk.terminal import Terminal

POLICY = "policy: billing\nrules: []\n"


def test_token_that_does_not_say_for_whom_it_publishes_is_refused(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)

    assert terminal("policy", "publish", str(tmp_path / "policy.yaml"), "--backtest") == 2

    assert "for which tenant and project it publishes" in " ".join(terminal.err.split())
    assert terminal.sent("PUT") == []


def test_options_of_a_backtest_need_one(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)

    for option in (
        ("--since", "2026-01-01T00:00:00Z"),
        ("--allow-named", "main/run/call"),
        ("--data-dir", str(tmp_path)),
        ("--bootstrap-servers", "localhost:1"),
        ("--accept-unjudged",),
    ):
        assert terminal("policy", "publish", str(tmp_path / "policy.yaml"), *option) == 2
        assert "belong to --backtest" in " ".join(terminal.err.split())
    assert terminal.sent("PUT") == []


def test_publication_without_a_backtest_mentions_it(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)

    assert terminal("policy", "publish", str(tmp_path / "policy.yaml")) == 0

    assert "--backtest first replays history" in terminal.err
