"""An auditor's way over a real stack: fetch, verify offline, meddle, be told where, and fetch on."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from placet.audit.bundle import compact
from placet.cli.app import run
from tests.gateway.conftest import Caller, Doors
from tests.gateway.test_proofs_live import an_entry, proof_of

pytestmark = [pytest.mark.stack, pytest.mark.broker]


@pytest.fixture
def analyst(doors: Doors) -> Caller:
    return doors.caller("ada", "analyst")


@pytest.fixture
def placet(analyst: Caller) -> Callable[..., int]:
    """The `placet` command of an analyst."""
    return lambda *arguments: run(
        ["--url", analyst.url, "--token", analyst.token, "audit", *map(str, arguments)]
    )


@pytest.fixture
def key(doors: Doors) -> Path:
    return doors.stack.data_dir / "keys" / "audit.json"


def decided(bot: Caller, anna: Caller, decision: str) -> None:
    """A held call that a person decides."""
    call = bot.propose(bot.execution())
    answer = anna.post(
        f"/v1/holds/{call['hold_id']}/decision", {"decision": decision, "digest": call["digest"]}
    )
    assert answer.status_code == 200, answer.text


def tree_of(directory: Path) -> Path:
    """The longest file of records."""
    return max((directory / "trees").glob("executions-*.jsonl"), key=lambda path: path.stat().st_size)


def printed_json(
    placet: Callable[..., int], capsys: pytest.CaptureFixture[str], *arguments: Any
) -> tuple[int, Any]:
    capsys.readouterr()
    code = placet(*arguments, "--json")
    return code, json.loads(capsys.readouterr().out)


def test_trail_is_fetched_verified_and_every_meddling_named(
    bot: Caller,
    anna: Caller,
    analyst: Caller,
    placet: Callable[..., int],
    key: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for decision in ("approve", "reject", "approve"):
        decided(bot, anna, decision)
    proof_of(analyst, an_entry(bot, analyst))
    home = tmp_path / "home"
    assert placet("fetch", "--out", home) == 0
    code, report = printed_json(placet, capsys, "verify", home, "--key", key)
    assert (code, report["verified"], report["findings"]) == (0, True, [])
    assert report["records"] == report["leaves"] > 10
    _meddle(placet, capsys, key, home)
    shutil.copy(home / "heads.jsonl", tmp_path / "kept.jsonl")
    decided(bot, anna, "approve")
    proof_of(analyst, an_entry(bot, analyst))
    _tear(home)
    more_code, more = printed_json(placet, capsys, "fetch", "--out", home)
    assert (more_code, more["leaves"] > report["leaves"]) == (0, True)
    code, longer = printed_json(
        placet, capsys, "verify", home, "--key", key, "--head", tmp_path / "kept.jsonl"
    )
    assert (code, longer["leaves"]) == (0, more["leaves"])


def _tear(home: Path) -> None:
    """What a fetch leaves that was killed in the middle of its files."""
    path = tree_of(home)
    leaves = path.with_suffix(".leaves")
    path.write_bytes(path.read_bytes()[:-40])
    leaves.write_bytes(leaves.read_bytes()[:-70])
    heads = home / "heads.jsonl"
    heads.write_bytes(heads.read_bytes()[:-5])


def _meddle(placet: Callable[..., int], capsys: pytest.CaptureFixture[str], key: Path, home: Path) -> None:
    def edit(lines: list[dict[str, Any]]) -> None:
        lines[3]["record"]["value"] = base64.b64encode(b"nobody said no").decode()

    def delete(lines: list[dict[str, Any]]) -> None:
        del lines[3]

    def reorder(lines: list[dict[str, Any]]) -> None:
        lines[3], lines[4] = lines[4], lines[3]

    def cut(lines: list[dict[str, Any]]) -> None:
        del lines[3:]

    changes = {"edited": edit, "deleted": delete, "reordered": reorder, "tail_cut": cut}
    for kind, change in changes.items():
        copy = home.with_name(kind)
        shutil.copytree(home, copy)
        path = tree_of(copy)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        change(lines)
        path.write_text("".join(compact(line) + "\n" for line in lines))
        code, report = printed_json(placet, capsys, "verify", copy, "--key", key)
        (found,) = report["findings"]
        assert (code, found["kind"], found["index"]) == (1, kind, 3)
        assert found["tree"] == path.stem.replace("-", "/")


def test_proof_of_one_decision_is_verified_by_itself_and_against_an_earlier_head(
    bot: Caller,
    analyst: Caller,
    placet: Callable[..., int],
    key: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    earlier = tmp_path / "earlier.jsonl"
    with earlier.open("w") as file:
        for _ in range(2):
            proof_of(analyst, an_entry(bot, analyst))
            file.write(json.dumps(analyst.get("/v1/audit/head").json()["head"]) + "\n")
    event_id = an_entry(bot, analyst)
    proof_of(analyst, event_id)
    out = tmp_path / "proof.json"
    assert placet("prove", event_id, "--out", out, "--since-head", earlier) == 0
    assert placet("verify", out, "--key", key, "--head", earlier) == 0
    assert "verified" in capsys.readouterr().out
    proof = json.loads(out.read_text())
    proof["record"]["value"] = base64.b64encode(b"forged").decode()
    out.write_text(json.dumps(proof))
    code, report = printed_json(placet, capsys, "verify", out, "--key", key)
    assert (code, report["findings"][0]["kind"]) == (1, "not_the_signed_root")


def test_fetch_and_prove_say_what_keeps_them(
    anna: Caller, placet: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert placet("prove", "no-such-event") == 1
    assert "no such audit entry" in capsys.readouterr().err
    many = tmp_path / "many.jsonl"
    head = {"number": 1, "tenant": "acme", "previous": "", "trees": []}
    many.write_text("".join(json.dumps(head | {"number": 1 + number}) + "\n" for number in range(101)))
    assert placet("prove", "no-such-event", "--since-head", many) == 2
    assert "tail -n 100" in capsys.readouterr().err
    as_reviewer = ["--url", anna.url, "--token", anna.token, "audit", "fetch", "--out", str(tmp_path / "x")]
    assert run(as_reviewer) == 1
    assert run(["--url", "http://127.0.0.1:9", "--token", "t", "audit", "prove", "e"]) == 3
    assert placet("verify", tmp_path / "nothing") == 2
    assert placet("verify", tmp_path) == 2
