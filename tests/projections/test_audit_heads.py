"""Heads kept outside: what they say, what a crash leaves, and that a cut or changed log stops the projector."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from host.errors import SettingsRefused
from host.key_files import SigningKey, load_public, load_published
from projections.audit.head_files import HeadFiles, HeadsUnusable
from projections.audit.heads import HeadsDisagree, HeadSigner, SignedHeads, check_all
from projections.audit.settings import opened_audit
from projections.store.urls import open_view
from projections.tables.audit import AUDIT_TREES
from schemas.audit import AUDIT_KEY, AUDIT_KEYS, Head, TreeHead, read_head, sign_head, tenant_of, verify_head
from tests.projections.filling import Filler
from tests.projections.histories import LogBuilder, key_of, many_runs, started


@dataclass
class Desk:
    """Where heads are kept and who signs them; the clock stands until it is moved."""

    files: HeadFiles
    key: SigningKey
    now_s: float = 0.0
    told: list[Head] = field(default_factory=list)

    def head_signer(self, events: int = 50, seconds: float = 10.0) -> HeadSigner:
        believed = {self.key.kid: self.key.private_key.public_key()}
        return HeadSigner(
            self.files, self.key, believed, events, seconds, self.told.append, lambda: self.now_s
        )

    def signed(self, filler: Filler) -> Head:
        """Sign a head of all that a view holds."""
        head_signer = self.head_signer(events=1)
        head_signer.begin(filler.store)
        head_signer.turn(filler.store, is_caught_up=True)
        head = self.files.newest("acme")
        assert head is not None
        return head


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    files = HeadFiles(tmp_path / "heads")
    with files.writing():
        yield Desk(files, load_published(tmp_path / "keys", AUDIT_KEY, AUDIT_KEYS))


def a_log(runs: int = 20) -> LogBuilder:
    return many_runs(LogBuilder(2).claim_all(), runs, seed=6)


def shortened(builder: LogBuilder, by: int) -> LogBuilder:
    """The log without its last records."""
    return LogBuilder(2, [records[:-by] for records in builder.records], builder.term)


def test_head_covers_every_tree_and_names_the_one_before(filler: Filler, desk: Desk) -> None:
    filler.fill(a_log())
    first = desk.signed(filler)
    rows = filler.rows(AUDIT_TREES)
    assert [(t.topic, t.partition, t.size, t.last_offset) for t in first.trees] == [
        (row["topic"], row["log_partition"], row["size"], row["last_offset"]) for row in rows
    ]
    assert (first.number, first.previous) == (1, "")
    assert verify_head(first, desk.key.private_key.public_key())
    filler.fill(a_log(40))
    second = desk.signed(filler)
    assert (second.number, second.previous) == (2, first.digest)
    assert desk.files.after("acme", 0, 10) == [first, second]


def test_head_signer_signs_after_so_many_events_or_seconds_and_only_what_changed(
    filler: Filler, desk: Desk
) -> None:
    head_signer = desk.head_signer(events=10_000, seconds=10)
    head_signer.begin(filler.store)
    filler.fill(a_log())
    head_signer.begin(filler.store)
    head_signer.turn(filler.store, is_caught_up=True)
    assert desk.told == []
    desk.now_s += 10
    head_signer.turn(filler.store, is_caught_up=True)
    assert [head.number for head in desk.told] == [1]
    desk.now_s += 100
    head_signer.turn(filler.store, is_caught_up=True)
    assert [head.number for head in desk.told] == [1]


def test_head_signer_that_starts_again_signs_what_grew_meanwhile(filler: Filler, desk: Desk) -> None:
    filler.fill(a_log())
    desk.signed(filler)
    filler.fill(a_log(22))
    again = desk.head_signer(events=1)
    again.begin(filler.store)
    again.turn(filler.store, is_caught_up=True)
    assert [head.number for head in desk.told] == [1, 2]


def test_rebuilt_view_has_the_roots_that_were_signed(filler: Filler, desk: Desk, tmp_path: Path) -> None:
    builder = a_log()
    filler.fill(builder, step=17)
    head = desk.signed(filler)
    rebuilt = Filler(open_view(f"sqlite:///{tmp_path}/rebuilt.db"))
    rebuilt.fill(builder)
    check_all(desk.files, {"acme": head}, rebuilt.store)
    assert desk.signed(rebuilt) == head
    rebuilt.store.close()


def test_log_whose_tail_was_cut_is_refused_with_the_tree_and_the_size(
    filler: Filler, desk: Desk, tmp_path: Path
) -> None:
    builder = a_log()
    filler.fill(builder)
    head = desk.signed(filler)
    cut = Filler(open_view(f"sqlite:///{tmp_path}/cut.db"))
    cut.fill(shortened(builder, 3))
    head_signer = desk.head_signer()
    head_signer.begin(cut.store)
    head_signer.turn(cut.store, is_caught_up=False)
    with pytest.raises(
        HeadsDisagree, match=r"executions/0 of tenant acme ends after .* its tail was cut off"
    ):
        head_signer.turn(cut.store, is_caught_up=True)
    with pytest.raises(HeadsDisagree, match="its tail was cut off"):
        check_all(desk.files, {"acme": head}, cut.store)
    cut.store.close()


def test_log_with_another_record_is_refused_at_start(filler: Filler, desk: Desk, tmp_path: Path) -> None:
    builder = a_log()
    filler.fill(builder)
    desk.signed(filler)
    at = next(n for n, raw in enumerate(builder.records[1]) if tenant_of(raw.key) == "acme" and n > 20)
    raw = builder.records[1][at]
    others = tuple((name, b"x" if name == "placet_command_id" else value) for name, value in raw.headers)
    builder.records[1][at] = raw._replace(headers=others)
    changed = Filler(open_view(f"sqlite:///{tmp_path}/changed.db"))
    changed.fill(builder)
    with pytest.raises(HeadsDisagree, match="executions/1 of tenant acme, up to offset"):
        desk.head_signer().begin(changed.store)
    changed.store.close()


def test_view_that_is_behind_is_signed_only_once_it_was_checked(
    filler: Filler, desk: Desk, tmp_path: Path
) -> None:
    builder = a_log()
    filler.fill(builder)
    desk.signed(filler)
    again = Filler(open_view(f"sqlite:///{tmp_path}/again.db"))
    again.fill(shortened(builder, 30))
    head_signer = desk.head_signer(events=1)
    head_signer.begin(again.store)
    head_signer.turn(again.store, is_caught_up=False)
    builder.append(key_of("one-more"), [started()])
    again.fill(builder)
    head_signer.begin(again.store)
    head_signer.turn(again.store, is_caught_up=True)
    assert [head.number for head in desk.told] == [1, 2]
    again.store.close()


def test_head_that_others_signed_is_refused(filler: Filler, desk: Desk, tmp_path: Path) -> None:
    filler.fill(a_log())
    stranger = load_published(tmp_path / "others", AUDIT_KEY, AUDIT_KEYS)
    desk.files.append(sign_head(stranger, "acme", "2026-01-01T00:00:00.000Z", None, []))
    with pytest.raises(
        HeadsDisagree,
        match=r"not signed by this installation's keys\. Restore that file and keys/audit\.json",
    ):
        desk.head_signer().begin(filler.store)


def heads_of(desk: Desk, count: int, wide: int = 1) -> list[Head]:
    found: list[Head] = []
    for number in range(count):
        trees = [TreeHead("executions", p, number, number + 1, "00" * 32) for p in range(wide)]
        found.append(
            sign_head(desk.key, "acme", "2026-01-01T00:00:00.000Z", found[-1] if found else None, trees)
        )
    return found


def test_line_torn_by_a_crash_is_cut_off(desk: Desk, tmp_path: Path) -> None:
    one, two = heads_of(desk, 2)
    path = desk.files.path("acme")
    path.write_text(f"{one.line}\n{two.line[:-40]}")
    assert desk.files.newest("acme") == one
    assert _reopened(desk, tmp_path).path("acme").read_text() == f"{one.line}\n"


def test_whole_line_without_its_end_is_kept(desk: Desk, tmp_path: Path) -> None:
    one, two = heads_of(desk, 2)
    desk.files.path("acme").write_text(f"{one.line}\n{two.line}")
    assert desk.files.newest("acme") == one
    assert _reopened(desk, tmp_path).newest("acme") == two


def _reopened(desk: Desk, tmp_path: Path) -> HeadFiles:
    """What the directory is once it was opened to be written again."""
    copy = HeadFiles(tmp_path / "copy")
    shutil.copytree(desk.files.directory, copy.directory)
    with copy.writing():
        return copy


def test_heads_after_a_number_are_found_in_a_long_file(desk: Desk) -> None:
    heads = heads_of(desk, 400, wide=12)
    desk.files.path("acme").write_text("".join(f"{head.line}\n" for head in heads))
    assert desk.files.path("acme").stat().st_size > 5 * 64 * 1024
    assert desk.files.newest("acme") == heads[-1]
    for after in (0, 1, 57, 200, 398, 399, 400, 500):
        assert [head.number for head in desk.files.after("acme", after, 3)] == [
            number for number in (after + 1, after + 2, after + 3) if number <= 400
        ]
    assert desk.files.after("nobody", 0, 3) == []


def test_line_that_is_no_head_is_refused_by_name(desk: Desk) -> None:
    desk.files.path("acme").write_text("{}\n")
    with pytest.raises(HeadsUnusable, match=r"acme\.jsonl has a line that is not an audit head"):
        desk.files.newest("acme")


def test_second_writer_of_a_directory_is_refused(desk: Desk) -> None:
    with (
        pytest.raises(HeadsUnusable, match=r"Another projector .*: stop one of the two"),
        HeadFiles(desk.files.directory).writing(),
    ):
        pass


def test_read_head_gives_what_was_signed(desk: Desk) -> None:
    (head,) = heads_of(desk, 1)
    assert read_head(head.line) == head
    assert not verify_head(
        head._replace(line=head.line.replace('"size":1', '"size":2')), desk.key.private_key.public_key()
    )


async def test_number_that_is_none_is_refused(tmp_path: Path) -> None:
    settings = {"data_dir": str(tmp_path), "keys_dir": str(tmp_path / "k"), "audit_head_events": "often"}
    with pytest.raises(SettingsRefused, match="audit_head_events must be a number, not often"):
        async with opened_audit(settings):
            pass


def test_signed_heads_are_believed_by_any_key_that_was_ever_published(desk: Desk, tmp_path: Path) -> None:
    (head,) = heads_of(desk, 1)
    desk.files.append(head)
    (tmp_path / "keys" / AUDIT_KEY).unlink()
    load_published(tmp_path / "keys", AUDIT_KEY, AUDIT_KEYS)
    believed = load_public(tmp_path / "keys" / AUDIT_KEYS)
    assert len(believed) == 2
    assert SignedHeads(desk.files, believed).newest() == {"acme": head}
