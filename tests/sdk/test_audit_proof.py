"""Proof files, what can't be read, and what the verifier is made of."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given

from placet import Placet, audit
from placet.audit import Unreadable, read_heads, read_keys, verify_path, verify_proof
from placet.cli.fetching import Fetch
from placet.errors import PlacetError
from projections.audit.tiles import Tiles
from schemas.audit import Head, TreeHead, record_leaf, sign_head
from schemas.merkle import root_and_paths
from schemas.record import RawRecord
from tests.sdk.audit_bundles import EVERY, KEY, KEYS, record_at, root_of
from tests.sdk.test_audit_merkle import shown
from tests.sdk.test_audit_verify import PLACES, SIZE, TRAIL, kept


def proof_of(index: int, head: Head = TRAIL.heads[-1]) -> dict[str, Any]:
    size = head.trees[1].size
    leaves = [record_leaf("executions", record) for record in TRAIL.records[:size]]
    return {
        "event_id": f"e{index}",
        "record": shown(TRAIL.records[index]),
        "leaf_index": index,
        "tree_size": size,
        "path": [step.hex() for step in root_and_paths(leaves)[1][index]],
        "head": json.loads(head.line),
    }


@given(PLACES)
def test_proof_is_verified_and_no_other_record_fits_it(index: int) -> None:
    proof = proof_of(index)
    assert verify_proof(proof, KEYS).is_verified
    other = proof | {"record": shown(record_at(index)._replace(value=b"another"))}
    (found,) = verify_proof(other, KEYS).findings
    assert (found.kind, found.index) == ("not_the_signed_root", index)
    assert verify_proof(proof | {"event_id": "e99999"}, KEYS).findings[0].kind == "edited"
    forged = proof["head"] | {"at": "2020-01-01T00:00:00.000Z"}
    assert verify_proof(proof | {"head": forged}, KEYS).findings[0].kind == "forged_signature"
    changes: list[dict[str, Any]] = [{"leaf_index": index + 1}, {"tree_size": SIZE - 1}, {"path": []}]
    for change in changes:
        assert not verify_proof(proof | change, KEYS).is_verified


def consistency_of(old: Head, new: Head = TRAIL.heads[-1], records: list[RawRecord] = TRAIL.records) -> Any:
    leaves = b"".join(record_leaf("executions", record) for record in records)
    path = Tiles(lambda level, number: leaves).consistency(old.trees[1].size, new.trees[1].size)
    steps = [step.hex() for step in path]
    sizes = {"first_size": old.trees[1].size, "second_size": new.trees[1].size}
    shown_path: dict[str, Any] = {"topic": "executions", "partition": 3, "path": steps} | sizes
    still = {"topic": "definitions", "partition": 0, "path": [], "first_size": 1, "second_size": 1}
    return {"first": json.loads(old.line), "second": json.loads(new.line), "proofs": [shown_path, still]}


def test_proof_is_held_against_a_head_kept_elsewhere_by_consistency() -> None:
    old, new = TRAIL.heads[0], TRAIL.heads[-1]
    consistency = consistency_of(old)
    # Earlier versions wrote the one consistency proof without a list around it.
    for written in (consistency, [consistency]):
        proof = proof_of(20) | {"consistency": written}
        assert verify_proof(proof, KEYS, [kept(old)]).is_verified
        assert verify_proof(proof, KEYS, [kept(new)]).is_verified
    assert "--since-head" in verify_proof(proof_of(20), KEYS, [kept(old)]).findings[0].detail
    consistency["proofs"][0]["path"].pop()
    (found,) = verify_proof(proof, KEYS, [kept(old)]).findings
    assert (found.kind, found.tree) == ("not_the_signed_root", "executions/3")


def test_proof_is_verified_against_all_heads_that_were_kept_elsewhere() -> None:
    first, second, third, newest = TRAIL.heads
    all_kept = [kept(head) for head in TRAIL.heads]
    shown = [consistency_of(head) for head in (first, second, third)]
    for written in (shown, [*shown, consistency_of(newest)], shown[::-1]):
        report = verify_proof(proof_of(20) | {"consistency": written}, KEYS, all_kept)
        assert report.is_verified, report.findings
    (found,) = verify_proof(proof_of(20) | {"consistency": shown[:1]}, KEYS, all_kept).findings
    # What the proof says nothing of is no tampering, and is not verified either.
    assert (found.kind, found.head) == ("not_shown", 2)
    assert "and 1 more" in found.detail
    assert "--since-head" in found.detail


def test_proof_with_two_consistency_proofs_of_one_head_is_unreadable() -> None:
    shown = [consistency_of(head) for head in TRAIL.heads[:2]]
    with pytest.raises(Unreadable, match="two consistency proofs of one head"):
        verify_proof(proof_of(20) | {"consistency": [*shown, shown[0]]}, KEYS, [])


def rewritten() -> tuple[list[RawRecord], Head]:
    """What who has the key makes of the trail after its first head: another second head that links to the first."""
    records = [*TRAIL.records[:EVERY], *(record_at(index) for index in range(100, 100 + EVERY))]
    trees = [
        TreeHead("executions", 3, records[-1].offset, len(records), root_of("executions", records)),
        TRAIL.heads[0].trees[0],
    ]
    return records, sign_head(KEY, "acme", "2026-01-01T00:00:00.000Z", TRAIL.heads[0], trees)


def test_case_34_kept_head_that_contradicts_is_a_broken_chain_and_never_verified() -> None:
    first, second, third, newest = TRAIL.heads
    records, forged = rewritten()
    leaves = [record_leaf("executions", record) for record in records]
    proof = proof_of(3) | {
        "tree_size": len(records),
        "path": [step.hex() for step in root_and_paths(leaves)[1][3]],
        "head": json.loads(forged.line),
        "consistency": [consistency_of(first, forged, records)],
    }
    # The forged history begins as the kept one did, so its first head alone cannot tell.
    assert verify_proof(proof, KEYS, [kept(first)]).is_verified
    for others in ([second], [third], [second, third, newest]):
        report = verify_proof(proof, KEYS, [kept(first), *map(kept, others)])
        assert {found.kind for found in report.findings} <= {"broken_chain", "tail_cut"}
        assert not report.is_verified
    # Two kept heads of one number, both of which the forger could link to what came before.
    honest = proof_of(20) | {"consistency": [consistency_of(head) for head in (first, second, third)]}
    for heads in ([forged, second], [first, forged, third], [forged]):
        kinds = [found.kind for found in verify_proof(honest, KEYS, list(map(kept, heads))).findings]
        assert kinds
        assert set(kinds) == {"broken_chain"}


def test_case_34_link_of_kept_heads_is_no_proof_that_the_trees_of_one_begin_with_the_other() -> None:
    """The key's owner signs a head that names the one before, of trees that do not hold it."""
    other = [record_at(index) for index in range(100, 150)]
    heads: list[Head] = [TRAIL.heads[0]]
    for size in (20, 50):
        tree = TreeHead("executions", 3, other[size - 1].offset, size, root_of("executions", other[:size]))
        trees = [tree, TRAIL.heads[0].trees[0]]
        heads.append(sign_head(KEY, "acme", "2026-01-01T00:00:00.000Z", heads[-1], trees))
    leaves = [record_leaf("executions", record) for record in other]
    proof = {
        "event_id": "e103",
        "record": shown(other[3]),
        "leaf_index": 3,
        "tree_size": 50,
        "path": [step.hex() for step in root_and_paths(leaves)[1][3]],
        "head": json.loads(heads[2].line),
        "consistency": [consistency_of(heads[1], heads[2], other)],
    }
    assert verify_proof(proof, KEYS, [kept(heads[1])]).is_verified
    (found,) = verify_proof(proof, KEYS, list(map(kept, heads))).findings
    assert (found.kind, found.head) == ("not_shown", 1)


def test_what_is_no_bundle_key_or_proof_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="placet audit fetch"):
        verify_path(tmp_path)
    file = tmp_path / "file"
    file.write_text("[]")
    for read in (read_keys, verify_path):
        with pytest.raises(Unreadable):
            read(file)
    file.write_text("{}")
    with pytest.raises(Unreadable):
        read_heads(file)
    for nothing in ("", "\n \n"):
        file.write_text(nothing)
        with pytest.raises(Unreadable, match="empty"):
            read_heads(file)
    with pytest.raises(Unreadable):
        verify_path(file)
    with pytest.raises(Unreadable, match="--key"):
        verify_proof(proof_of(1))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, of lists the first two."""
    yield path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from places(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value[:2]):
            yield from places(item, (*path, index))


def put(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    found = dict(value) if isinstance(value, dict) else list(value)
    found[path[0]] = put(value[path[0]], path[1:], other)
    return found


ODD = ("Infinity", "1e400", "NaN", "null", "-1", "true", "0.5", '"\\ud800"', '"x"', "[]", "{}", "9" * 5000)


def is_believed(file: Path) -> bool:
    try:
        return verify_path(file, KEYS).is_verified
    except Unreadable:
        return False


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd[:9])
def test_proof_with_anything_odd_in_it_is_unreadable_or_not_verified(tmp_path: Path, odd: str) -> None:
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof_of(3)))
    assert is_believed(file)
    for path in places(proof_of(3)):
        file.write_text(json.dumps(put(proof_of(3), path, "ODD")).replace('"ODD"', odd))
        assert not is_believed(file), path


@pytest.mark.parametrize("text", ["[" * 100_000, '{"head": {}, "head": {}}'], ids=["deep", "twice"])
def test_file_that_readers_read_differently_is_unreadable(tmp_path: Path, text: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    for read in (read_keys, read_heads, verify_path):
        with pytest.raises(Unreadable):
            read(file)


@pytest.mark.parametrize("topic", ["../../evil", "/tmp/evil", "a\x00b", "\ud800", ""])
def test_head_whose_topic_is_no_name_of_a_file_is_none(tmp_path: Path, topic: str) -> None:
    head = json.loads(TRAIL.heads[-1].line)
    head["trees"][1]["topic"] = topic
    asked: list[str] = []

    class Hostile:
        def fetch(self, path: str, **query: str) -> Any:
            asked.append(path)
            return {"head": head}

    with pytest.raises(PlacetError, match="no audit head"):
        Fetch(cast(Placet, Hostile()), tmp_path / "bundle", lambda done, of: None).run()
    assert (asked, list(tmp_path.iterdir())) == (["/audit/head"], [])
    file = tmp_path / "heads.jsonl"
    file.write_text(json.dumps(head))
    with pytest.raises(Unreadable, match="no audit heads"):
        read_heads(file)


def test_verifier_imports_the_standard_library_alone_and_cryptography_where_it_is_there() -> None:
    files = sorted(Path(audit.__file__).parent.glob("*.py"))
    assert len(files) >= 7
    found = {
        (module.split(".")[0], file.name)
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        for module in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
        if module.split(".")[0] not in sys.stdlib_module_names and not module.startswith("placet.audit")
    }
    assert found == {("cryptography", "heads.py")}
