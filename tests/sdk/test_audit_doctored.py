"""A doctored bundle or proof: what no signature covers is told or refused, whatever it is (case 34)."""

from __future__ import annotations

import json
import os
import shutil
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placet.audit import Report, Unreadable, verify_bundle, verify_path, verify_proof
from placet.audit.bundle import Bundle, compact
from placet.audit.leaf import leaf_of
from placet.cli.app import run
from tests.sdk.audit_bundles import KEY, KEYS, TREE, change_lines, record_at, trail, write
from tests.sdk.test_audit_merkle import shown
from tests.sdk.test_audit_proof import proof_of
from tests.sdk.test_audit_verify import TRAIL, fetched, verified

SMALL = trail(3)
FILES = ("heads.jsonl", "trees/executions-3.jsonl", "trees/executions-3.leaves", "trees/definitions-0.jsonl")
Lines = list[dict[str, Any]]


def is_believed(bundle: Bundle) -> bool:
    try:
        return verify_bundle(bundle, KEYS).is_verified
    except Unreadable:
        return False


def findings(report: Report) -> list[tuple[str, int | None]]:
    return [(found.kind, found.index) for found in report.findings]


@given(st.sampled_from(FILES), st.integers(0), st.integers(1, 255))
def test_case_34_any_byte_changed_is_told(name: str, place: int, change: int) -> None:
    with fetched(SMALL) as bundle:
        assert is_believed(bundle)
        path = bundle.directory / name
        data = bytearray(path.read_bytes())
        data[place % len(data)] ^= change
        path.write_bytes(data)
        assert not is_believed(bundle), path.read_text(errors="replace")


@given(st.sampled_from(FILES), st.integers(0), st.sampled_from([b" ", b"\n", b"0", b'"', b"\\u0041", b","]))
def test_case_34_anything_put_in_is_told(name: str, place: int, more: bytes) -> None:
    with fetched(SMALL) as bundle:
        path = bundle.directory / name
        data = path.read_bytes()
        at = place % (len(data) + 1)
        path.write_bytes(data[:at] + more + data[at:])
        assert not is_believed(bundle), (name, at)


def null_record(line: dict[str, Any]) -> dict[str, Any]:
    return {
        "index": line["index"],
        "offset": line["offset"],
        "record": None,
        "leaf": leaf_of(line["record"]).hex(),
    }


def more_members(line: dict[str, Any]) -> dict[str, Any]:
    return line | {"approved_by": "mallory"}


def more_in_the_record(line: dict[str, Any]) -> dict[str, Any]:
    return line | {"record": line["record"] | {"approved_by": "mallory"}}


def hash_beside(line: dict[str, Any]) -> dict[str, Any]:
    return line | {"leaf": leaf_of(line["record"]).hex()}


@pytest.mark.parametrize("change", [null_record, more_members, more_in_the_record, hash_beside])
def test_case_34_line_with_more_or_less_than_its_leaf_is_told(
    change: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    def doctor(lines: Lines) -> None:
        lines[7] = change(lines[7])

    with fetched() as bundle:
        change_lines(bundle, doctor)
        assert findings(verified(bundle)) == [("edited", 7)]


def test_case_34_key_that_stands_twice_in_a_line_is_told() -> None:
    with fetched() as bundle:
        path = bundle.records_file(TREE)
        lines = path.read_text().splitlines()
        forged = compact(shown(record_at(7)._replace(value=b"forged")))
        lines[7] = lines[7].replace('"record":', f'"record":{forged},"record":', 1)
        path.write_text("".join(f"{line}\n" for line in lines))
        assert findings(verified(bundle)) == [("edited", 7)]


def test_case_34_index_and_hidden_offset_that_are_not_the_leaf_s_own_are_told() -> None:
    with fetched() as bundle:
        change_lines(bundle, lambda lines: lines[7].update(index=8), renumber=False)
        assert findings(verified(bundle)) == [("edited", 7)]

    def hide_and_move(lines: Lines, place: int, offset: int) -> None:
        lines[place] = {"index": place, "offset": offset, "leaf": leaf_of(lines[place]["record"]).hex()}

    for place, offset in ((7, record_at(8).offset), (8, record_at(7).offset), (9, record_at(9).offset + 1)):
        with fetched() as bundle:
            change_lines(bundle, lambda lines, at=place, to=offset: hide_and_move(lines, at, to))  # type: ignore[misc]
            assert verified(bundle).findings[0].kind == "edited"


def test_case_34_tree_that_no_head_names_and_any_other_file_are_told() -> None:
    with fetched() as bundle:
        for part in (bundle.records_file, bundle.leaves_file):
            shutil.copy(part(TREE), part(("executions", 4)))
        told = verified(bundle)
        assert findings(told) == [("unsigned", None)] * 2
        assert "trees/executions-4.jsonl" in str(told.findings[0])
    with fetched() as bundle:
        (bundle.directory / "trees" / "nested").mkdir()
        (bundle.directory / "trees" / "nested" / "approvals.jsonl").write_text("{}")
        assert findings(verified(bundle)) == [("unsigned", None)]
    for name in ("trees/empty", "empty"):
        with fetched() as bundle:
            (bundle.directory / name).mkdir()
            (found,) = verified(bundle).findings
            assert (found.kind, name in str(found)) == ("unsigned", True)


@pytest.mark.parametrize("name", ["bundle.json", "keys.json", "heads.jsonl", "trees", *FILES[1:], "stray"])
def test_case_34_symbolic_link_in_a_bundle_is_refused(name: str, tmp_path: Path) -> None:
    with fetched() as bundle:
        path, elsewhere = bundle.directory / name, tmp_path / "elsewhere"
        if path.exists():
            path.rename(elsewhere)
        else:
            elsewhere.mkdir()
        path.symlink_to(elsewhere)
        with pytest.raises(Unreadable, match="symbolic link"):
            verified(bundle)


def test_case_34_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for() -> None:
    with fetched() as bundle:
        bundle.heads_file.unlink()
        os.mkfifo(bundle.heads_file)
        with pytest.raises(Unreadable, match="not a file"):
            verified(bundle)


def test_case_34_bundle_of_another_tenant_than_its_heads_is_told() -> None:
    with fetched() as bundle:
        bundle.about_file.write_text(bundle.about_file.read_text().replace("acme", "evil"))
        assert [found.kind for found in verified(bundle).findings] == ["edited"]
        bundle.about_file.write_text('{"format": "placet.audit-bundle.v1", "tenant": "acme", "by": "us"}')
        with pytest.raises(Unreadable, match="'by'"):
            verified(bundle)
        bundle.about_file.write_text('{"format": "x", "format": "placet.audit-bundle.v1", "tenant": "acme"}')
        with pytest.raises(Unreadable, match="twice"):
            verified(bundle)


def test_case_34_key_that_came_with_it_and_is_not_believed_is_told() -> None:
    with fetched() as bundle:
        keys = json.loads(bundle.keys_file.read_text())
        bundle.keys_file.write_text(json.dumps(keys | {"mallory": keys[KEY.kid]}))
        assert [found.kind for found in verified(bundle).findings] == ["forged_signature"]
        bundle.keys_file.write_text(json.dumps({"other": keys[KEY.kid]}))
        assert [found.kind for found in verified(bundle).findings] == ["forged_signature"]
        both = KEYS | {"other": KEYS[KEY.kid]}
        assert [found.kind for found in verify_bundle(bundle, both).findings] == ["forged_signature"]


OWN_KEYS = {kid: b64encode(raw).decode() for kid, raw in KEYS.items()}
MALLORYS = b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    "keys",
    [{"mallory": MALLORYS}, OWN_KEYS | {"mallory": MALLORYS}, dict.fromkeys(OWN_KEYS, MALLORYS)],
    ids=["foreign", "extra", "swapped"],
)
def test_case_34_proof_with_keys_that_are_not_those_given_is_told(
    tmp_path: Path, keys: dict[str, str]
) -> None:
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof_of(3) | {"keys": OWN_KEYS}))
    assert verify_path(file, KEYS).is_verified
    file.write_text(json.dumps(proof_of(3) | {"keys": keys}))
    assert [found.kind for found in verify_path(file, KEYS).findings] == ["forged_signature"]


def test_case_34_proof_whose_keys_lack_the_one_that_signed_it_is_told() -> None:
    both = KEYS | {"other": KEYS[KEY.kid]}
    proof = proof_of(3) | {"keys": {"other": OWN_KEYS[KEY.kid]}}
    assert [found.kind for found in verify_proof(proof, both).findings] == ["forged_signature"]


def test_case_34_white_space_of_json_is_no_part_of_what_is_proved(tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    for indent in (None, 3):
        file.write_text(f" {json.dumps(proof_of(3), indent=indent)}\n\n")
        assert verify_path(file, KEYS).is_verified
    with fetched() as bundle:
        for path in (bundle.about_file, bundle.keys_file):
            path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
        assert verified(bundle).is_verified


def test_case_34_first_heads_taken_out_are_told() -> None:
    with fetched() as bundle:
        lines = bundle.heads_file.read_text().splitlines(keepends=True)
        bundle.heads_file.write_text("".join(lines[2:]))
        (found,) = verified(bundle).findings
        assert (found.kind, found.head) == ("broken_chain", 3)


def test_case_34_report_says_what_was_proved_and_records_can_be_required(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def hide(lines: Lines) -> None:
        for place in (4, 9):
            lines[place]["leaf"] = leaf_of(lines[place].pop("record")).hex()

    bundle = write(tmp_path / "bundle", TRAIL)
    command = ["audit", "verify", str(bundle.directory), "--key", str(bundle.keys_file)]
    assert run([*command, "--require-records"]) == 0
    assert "verified: 38 leaves, all with their records; 4 heads of acme" in capsys.readouterr().out
    change_lines(bundle, hide)
    assert run(command) == 0
    assert "verified: 38 leaves, 36 with their records; 4 heads of acme" in capsys.readouterr().out
    assert run([*command, "--require-records"]) == 1
    said = capsys.readouterr().out
    assert "hidden: executions/3, leaf 4" in said
    assert "for 2 of 37 leaves" in said
    assert run([*command, "--require-records", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["kind"] == "hidden"


@pytest.mark.parametrize(
    "change",
    [
        {"approved_by": "mallory"},
        {"record": shown(record_at(3)) | {"approved_by": "mallory"}},
        {"path": [step.upper() for step in proof_of(3)["path"]]},
        {"leaf_index": 3.0},
        {"tree_size": "37"},
        {"consistency": {"first": {}, "second": {}, "proofs": []}},
        {"consistency": None},
        {"keys": None},
        {"keys": {}},
        {"event_id": None},
    ],
    ids=[
        *(
            "member",
            "record",
            "path",
            "index",
            "size",
            "consistency",
            "no-consistency",
            "no-keys",
            "empty-keys",
        ),
        "no-event",
    ],
)
def test_case_34_proof_with_what_nothing_vouches_for_is_unreadable(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof_of(3)))
    assert verify_path(file, KEYS).is_verified
    file.write_text(json.dumps(proof_of(3) | change))
    with pytest.raises(Unreadable):
        verify_path(file, KEYS)


def test_case_34_consistency_that_nobody_asked_for_is_held_against_its_heads(tmp_path: Path) -> None:
    """A proof says what it shows: a broken part is told, although no head was given to hold it against."""
    old, new = TRAIL.heads[0], TRAIL.heads[-1]
    sizes = {"first_size": old.trees[1].size, "second_size": new.trees[1].size}
    still = {"topic": "definitions", "partition": 0, "path": [], "first_size": 1, "second_size": 1}
    shown_path = {"topic": "executions", "partition": 3, "path": []} | sizes
    consistency = {
        "first": json.loads(old.line),
        "second": json.loads(new.line),
        "proofs": [shown_path, still],
    }
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof_of(20) | {"consistency": consistency}))
    assert [found.kind for found in verify_path(file, KEYS).findings] == ["not_the_signed_root"]
    consistency["proofs"] = [still]
    file.write_text(json.dumps(proof_of(20) | {"consistency": consistency}))
    assert [found.kind for found in verify_path(file, KEYS).findings] == ["broken_chain"]
