"""The verifier by mutation: whatever is done to a fetched trail is seen, named by its kind and at its index."""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placet.audit import (
    Finding,
    Report,
    read_heads,
    read_keys,
    verify_bundle,
    verify_path,
)
from placet.audit.bundle import Bundle
from placet.audit.heads import head_of
from placet.audit.leaf import leaf_of
from schemas.audit import Head, TreeHead, record_leaf, sign_head
from schemas.canonical import canonical
from schemas.merkle import root_and_paths
from tests.sdk.audit_bundles import (
    EVERY,
    KEY,
    KEYS,
    Trail,
    change_leaves,
    change_lines,
    record_at,
    trail,
    write,
)
from tests.sdk.test_audit_merkle import shown

SIZE = 37
TRAIL = trail(SIZE)
PLACES = st.integers(0, SIZE - 1)


@contextmanager
def fetched(made: Trail = TRAIL) -> Iterator[Bundle]:
    with tempfile.TemporaryDirectory() as directory:
        yield write(Path(directory) / "bundle", made)


def verified(bundle: Bundle, **more: Any) -> Report:
    return verify_bundle(bundle, KEYS, **more)


def only(bundle: Bundle) -> Finding:
    report = verified(bundle)
    assert not report.is_verified
    assert len(report.findings) == 1, report.findings
    assert report.findings[0].tree == "executions/3"
    return report.findings[0]


def between_heads(index: int) -> tuple[int, int]:
    """The range of leaves between the heads around an index."""
    low = index - index % EVERY
    return low, min(low + EVERY, SIZE)


def other_value(line: dict[str, Any]) -> None:
    line["record"]["value"] = base64.b64encode(b"another").decode()


def kept(head: Head) -> Any:
    return head_of(json.loads(head.line))


@pytest.mark.parametrize("size", [1, 2, 9, 10, 11, SIZE])
def test_trail_as_it_was_fetched_is_verified(size: int) -> None:
    with fetched(trail(size)) as bundle:
        report = verified(bundle)
        assert report.is_verified, report.findings
        assert (report.leaves, report.records) == (size + 1, size + 1)


@given(PLACES)
def test_record_edited_is_named(place: int) -> None:
    with fetched() as bundle:
        change_lines(bundle, lambda lines: other_value(lines[place]))
        found = only(bundle)
        assert (found.kind, found.index, found.offset) == ("edited", place, record_at(place).offset)


@pytest.mark.parametrize("field", ["key", "value", "headers", "offset", "partition", "topic"])
def test_any_field_of_a_record_edited_is_named(field: str) -> None:
    others: dict[str, Any] = {
        "key": "eA==",
        "value": "eA==",
        "headers": [],
        "offset": 5,
        "partition": 4,
        "topic": "definitions",
    }
    with fetched() as bundle:
        change_lines(bundle, lambda lines: lines[7]["record"].update({field: others[field]}))
        assert (only(bundle).kind, only(bundle).index) == ("edited", 7)


@given(PLACES)
def test_record_deleted_is_named(place: int) -> None:
    with fetched() as bundle:
        change_lines(bundle, lambda lines: lines.__delitem__(place))
        found = only(bundle)
        assert (found.kind, found.index) == ("tail_cut" if place == SIZE - 1 else "deleted", place)


@given(PLACES)
def test_record_deleted_and_not_renumbered_is_named(place: int) -> None:
    with fetched() as bundle:
        change_lines(bundle, lambda lines: lines.__delitem__(place), renumber=False)
        assert only(bundle).index == place


@given(st.lists(PLACES, min_size=2, max_size=2, unique=True))
def test_records_reordered_are_named_at_the_first(places: list[int]) -> None:
    one, other = sorted(places)

    def swap(lines: list[dict[str, Any]]) -> None:
        lines[one], lines[other] = lines[other], lines[one]

    with fetched() as bundle:
        change_lines(bundle, swap)
        found = only(bundle)
        assert (found.kind, found.index) == ("reordered", one)


@given(PLACES)
def test_record_added_is_named(place: int) -> None:
    added = {"index": 0, "offset": 99_999, "record": shown(record_at(33_333))}
    with fetched() as bundle:
        change_lines(bundle, lambda lines: lines.insert(place, added))
        found = only(bundle)
        assert (found.kind, found.index) == ("added", place)


@given(st.integers(1, SIZE))
def test_records_cut_at_the_tail_are_named(count: int) -> None:
    with fetched() as bundle:
        change_lines(bundle, lambda lines: lines.__delitem__(slice(SIZE - count, None)))
        found = only(bundle)
        assert (found.kind, found.index) == ("tail_cut", SIZE - count)


@given(PLACES, st.sampled_from(["edit", "delete", "cut"]))
def test_listed_hashes_changed_are_named(place: int, what: str) -> None:
    def change(leaves: list[bytes]) -> None:
        if what == "edit":
            leaves[place] = b"x" * 32
        elif what == "delete":
            leaves.pop(place)
        else:
            del leaves[place:]

    with fetched() as bundle:
        change_leaves(bundle, change)
        found = only(bundle)
        kinds = {"edit": "edited", "delete": "deleted", "cut": "tail_cut"}
        expected = "tail_cut" if what == "delete" and place == SIZE - 1 else kinds[what]
        assert (found.kind, found.index, found.until) == (expected, place, None)


@given(PLACES)
def test_edit_of_record_and_hash_is_named_between_two_heads(place: int) -> None:
    with fetched() as bundle:
        change_lines(bundle, lambda lines: other_value(lines[place]))
        leaf = leaf_of(
            json.loads(bundle.records_file(("executions", 3)).read_text().splitlines()[place])["record"]
        )
        change_leaves(bundle, lambda leaves: leaves.__setitem__(place, leaf))
        found = only(bundle)
        assert (found.kind, (found.index, found.until)) == ("edited", between_heads(place))


@given(PLACES)
def test_deletion_of_record_and_hash_is_named_between_two_heads(place: int) -> None:
    with fetched() as bundle:
        change_lines(bundle, lambda lines: lines.__delitem__(place))
        change_leaves(bundle, lambda leaves: leaves.__delitem__(place))
        found = only(bundle)
        if place == SIZE - 1:
            assert (found.kind, found.index, found.until) == ("tail_cut", place, None)
        else:
            assert (found.kind, (found.index, found.until)) == ("deleted", between_heads(place))


@given(st.lists(PLACES, min_size=2, max_size=2, unique=True))
def test_reorder_of_records_and_hashes_is_named_exactly_by_the_offsets(places: list[int]) -> None:
    one, other = sorted(places)

    def swap(items: list[Any]) -> None:
        items[one], items[other] = items[other], items[one]

    with fetched() as bundle:
        change_lines(bundle, swap)
        change_leaves(bundle, swap)
        found = only(bundle)
        assert (found.kind, found.index, found.until) == ("reordered", one, None)


@given(st.integers(1, SIZE))
def test_tail_cut_of_records_and_hashes_is_named(count: int) -> None:
    with fetched() as bundle:
        change_lines(bundle, lambda lines: lines.__delitem__(slice(SIZE - count, None)))
        change_leaves(bundle, lambda leaves: leaves.__delitem__(slice(SIZE - count, None)))
        found = only(bundle)
        assert (found.kind, found.index) == ("tail_cut", SIZE - count)


@given(st.integers(1, SIZE - 1))
def test_tail_cut_of_everything_is_seen_against_a_head_kept_elsewhere(size: int) -> None:
    """A trail that was cut with its heads is whole in itself: only what was kept elsewhere knows more."""
    shorter = Trail(TRAIL.records[:size], [h for h in TRAIL.heads if h.trees[1].size <= size])
    if not shorter.heads:
        return
    until = shorter.heads[-1].trees[1].size
    with fetched(Trail(TRAIL.records[:until], shorter.heads)) as bundle:
        assert verified(bundle).is_verified
        report = verified(bundle, kept=[kept(TRAIL.heads[-1])])
        cut = next(found for found in report.findings if found.tree)
        assert (cut.kind, cut.index) == ("tail_cut", until)
        assert not report.is_verified


@given(PLACES)
def test_trail_made_anew_is_seen_against_any_head_kept_elsewhere(place: int) -> None:
    """Whoever has the key can sign another history; what was handed out before does not fit it."""
    other = trail(SIZE)
    other.records[place] = other.records[place]._replace(value=b"another history")
    heads: list[Head] = []
    for head in other.heads:
        state = head.trees[1]
        root = root_and_paths([record_leaf("executions", r) for r in other.records[: state.size]])[0].hex()
        trees = [head.trees[0], TreeHead("executions", 3, state.last_offset, state.size, root)]
        heads.append(sign_head(KEY, "acme", head.at, heads[-1] if heads else None, trees))
    with fetched(Trail(other.records, heads)) as bundle:
        assert verified(bundle).is_verified
        report = verified(bundle, kept=[kept(TRAIL.heads[-1])])
        assert {found.kind for found in report.findings} == {"broken_chain", "edited"}


HEADS = st.integers(0, len(TRAIL.heads) - 1)


@given(HEADS, st.sampled_from(["root", "size", "at", "number", "signature"]))
def test_head_edited_is_named_by_its_number(place: int, field: str) -> None:
    def edit(body: dict[str, Any]) -> None:
        if field == "root":
            body["trees"][1]["root"] = "00" * 32
        elif field == "size":
            body["trees"][1]["size"] += 0 if body["trees"][1]["size"] == SIZE else 1
            body["trees"][1]["last_offset"] += 1
        elif field == "signature":
            body["signature"] = base64.b64encode(b"x" * 64).decode()
        else:
            body[field] = 77 if field == "number" else "2020-01-01T00:00:00.000Z"

    with fetched() as bundle:
        lines = [json.loads(line) for line in bundle.heads_file.read_text().splitlines()]
        edit(lines[place])
        bundle.heads_file.write_text("".join(canonical(line) + "\n" for line in lines))
        report = verified(bundle)
        forged = [found for found in report.findings if found.kind == "forged_signature"]
        assert [found.head for found in forged] == [77 if field == "number" else place + 1]


@given(st.integers(0, len(TRAIL.heads) - 2))
def test_head_taken_out_breaks_the_chain(place: int) -> None:
    with fetched() as bundle:
        lines = bundle.heads_file.read_text().splitlines()
        lines.pop(place)
        bundle.heads_file.write_text("\n".join(lines) + "\n")
        found = [finding for finding in verified(bundle).findings if finding.kind == "broken_chain"]
        assert [finding.head for finding in found] == [place + 2]


def test_hidden_records_are_verified_by_their_hashes() -> None:
    def hide(lines: list[dict[str, Any]]) -> None:
        for line in lines[::2]:
            line["leaf"] = leaf_of(line.pop("record")).hex()

    with fetched() as bundle:
        change_lines(bundle, hide)
        report = verified(bundle)
        assert report.is_verified
        assert report.records == report.leaves - len(range(0, SIZE, 2))
        change_lines(bundle, lambda lines: lines.__delitem__(10))
        assert (only(bundle).kind, only(bundle).index) == ("deleted", 10)


@pytest.mark.parametrize(
    "line", ["", "no json", "{}", '{"index": 7, "offset": "x"}', '{"offset": 1e400}', "[" * 99_999, "[]"]
)
def test_line_that_cannot_be_read_is_named(line: str) -> None:
    with fetched() as bundle:
        path = bundle.records_file(("executions", 3))
        lines = path.read_text().splitlines()
        lines[7] = line
        path.write_text("\n".join(lines) + "\n")
        assert (only(bundle).kind, only(bundle).index) == ("edited", 7)


def test_several_edits_are_all_named() -> None:
    def edit(lines: list[dict[str, Any]]) -> None:
        for place in (3, 12, 30):
            other_value(lines[place])

    with fetched() as bundle:
        change_lines(bundle, edit)
        assert [found.index for found in verified(bundle).findings] == [3, 12, 30]


def test_leaves_beyond_the_newest_head_are_named() -> None:
    with fetched() as bundle:
        lines = bundle.heads_file.read_text().splitlines()
        bundle.heads_file.write_text("\n".join(lines[:-1]) + "\n")
        found = only(bundle)
        assert (found.kind, found.index) == ("added", 30)


def test_other_keys_verify_nothing() -> None:
    with fetched() as bundle:
        report = verify_bundle(bundle, {KEY.kid: b"x" * 32})
        assert {found.kind for found in report.findings} == {"forged_signature"}
        assert {found.kind for found in verify_bundle(bundle, {"else": KEYS[KEY.kid]}).findings} == {
            "forged_signature"
        }


def test_keys_of_the_bundle_are_believed_with_a_warning() -> None:
    with fetched() as bundle:
        report = verify_path(bundle.directory)
        assert report.is_verified
        assert "--key" in report.warnings[0]
        assert verified(bundle).warnings == []
        assert read_keys(bundle.keys_file) == KEYS
        assert len(read_heads(bundle.heads_file)) == len(TRAIL.heads)


def test_signatures_that_cannot_be_checked_verify_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with fetched() as bundle:
        report = verified(bundle)
        assert (report.findings, report.signatures, report.is_verified) == ([], False, False)
        assert "NOT checked" in report.warnings[0]
        change_lines(bundle, lambda lines: other_value(lines[4]))
        assert verified(bundle).findings[0].index == 4
