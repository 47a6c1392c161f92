"""Verifies a directory of `placet audit fetch`, or one proof, against keys and heads that were kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from placet.audit.bundle import Bundle, Unreadable, keys_of, read_fetched_heads, read_keys, read_proof
from placet.audit.consistency import Consistency, consistencies_of
from placet.audit.findings import Finding, Report
from placet.audit.heads import (
    MALFORMED,
    ROTATED,
    Head,
    NoSignatures,
    TreeName,
    TreeState,
    check_chain,
    check_order,
    check_signature,
    head_of,
)
from placet.audit.leaf import header_of, leaf_of
from placet.audit.merkle import root_of_path
from placet.audit.strict import count, hex_hash, items, members, text
from placet.audit.tree import Anchor, examine, without_record

FIRST_USE = (
    "the keys came together with the data that they verify: give keys that you stored earlier with --key"
)

IN_BUNDLE, IN_PROOF = "keys.json", "the proof"
# What to do if the keys that came with the trail or proof lack a trusted one.
AGAIN = {
    IN_BUNDLE: "run `placet audit fetch` into this directory again, which adds the keys made since",
    IN_PROOF: "make it again with `placet audit prove`",
}

PROOF_MEMBERS = frozenset({"event_id", "record", "leaf_index", "tree_size", "path", "head"})

Keys = Mapping[str, bytes]
Told = Callable[[int, int], None]


def verify_path(
    path: Path,
    keys: Keys | None = None,
    kept: Sequence[Head] = (),
    told: Told = lambda done, of: None,
    *,
    require_records: bool = False,
) -> Report:
    """Verify a directory or a proof file.

    Args:
        path: the path of the directory or file.
        keys: trusted public keys; None uses those that came with it, and warns.
        kept: heads that were kept elsewhere.
        told: is called with the number of checked leaves and the total.
        require_records: if true, a leaf without a record is a finding.

    Raises:
        Unreadable: a file is not as it should be.
    """
    if path.is_dir():
        return verify_bundle(Bundle(path), keys, kept, told, require_records=require_records)
    return verify_proof(read_proof(path), keys, kept)


def verify_bundle(
    bundle: Bundle,
    keys: Keys | None = None,
    kept: Sequence[Head] = (),
    told: Told = lambda done, of: None,
    *,
    require_records: bool = False,
) -> Report:
    """Verify everything in a directory; arguments and errors as in `verify_path`."""
    bundle.check_kinds()
    tenant = bundle.tenant()
    heads = read_fetched_heads(bundle.heads_file)
    report = Report(heads=len(heads), tenant=heads[-1].tenant)
    own = read_keys(bundle.keys_file)
    believed = _believed(report, keys, own)
    report.findings += _foreign_keys(IN_BUNDLE, own, believed, heads)
    good = _signed(report, [*heads, *kept], believed)
    if tenant != report.tenant:
        problem = f"bundle.json says {tenant[:40]}, the heads are of {report.tenant[:40]}"
        report.findings.append(Finding("edited", problem, head=heads[-1].number))
    report.findings += check_chain(heads)
    report.findings += _forks(heads, kept)
    newest: Mapping[TreeName, TreeState] = heads[-1].trees
    trees = sorted({name for head in good for name in head.trees} | set(newest))
    for stray in bundle.strays(trees):
        problem = f"no head covers {stray[:80]}: a trail has no other files"
        report.findings.append(Finding("unsigned", problem))
    report.leaves = total = sum(state.size for state in newest.values())
    done = 0
    for name in trees:
        lists = bundle.lists(name)
        report.records += len(lists.made) - len(lists.hidden)
        anchors = [Anchor(head.trees[name], head.number) for head in good if name in head.trees]
        found = examine(lists, anchors)
        report.findings += found or (without_record(lists) if require_records else [])
        done += len(lists.made)
        told(min(done, total), total)
    return report


def verify_proof(proof: Mapping[str, Any], keys: Keys | None = None, kept: Sequence[Head] = ()) -> Report:
    """Verify one proof; arguments and errors as in `verify_path`."""
    try:
        members(proof, PROOF_MEMBERS, {"keys", "consistency"})
        head = head_of(proof["head"])
        record, index, size = proof["record"], count(proof["leaf_index"]), count(proof["tree_size"])
        path = [hex_hash(step) for step in items(proof["path"])]
        leaf = leaf_of(record)
        name = (record["topic"], record["partition"])
        says = header_of(record, "ce_id")
        offset = record["offset"]
        event_id = text(proof["event_id"])
        own = keys_of(proof["keys"]) if "keys" in proof else None
        shown = consistencies_of(proof["consistency"]) if "consistency" in proof else []
    except MALFORMED as error:
        raise Unreadable(f"This is not a proof ({error}): make one with placet audit prove.") from error
    report = Report(heads=1, leaves=1, records=1, tenant=head.tenant)
    believed = _believed(report, keys, own)
    earlier = [one for consistency in shown for one in (consistency.first, consistency.second)]
    if own is not None:
        report.findings += _foreign_keys(IN_PROOF, own, believed, [head, *earlier])
    # A head that was kept and is also in the proof is checked once.
    _signed(report, list({one.line: one for one in (head, *kept, *earlier)}.values()), believed)
    tree = f"{name[0]}/{name[1]}"
    if says != event_id:
        report.findings.append(
            Finding("edited", "the record is of another event", tree, index, offset=offset)
        )
    state = head.trees.get(name)
    if state is None or state.size != size or root_of_path(leaf, index, size, path) != state.root:
        problem = "the path does not lead from this record to the signed root"
        report.findings.append(
            Finding("not_the_signed_root", problem, tree, index, None, offset, head.number)
        )
    report.findings += _against_kept(head, shown, kept)
    return report


def _against_kept(head: Head, shown: Sequence[Consistency], kept: Sequence[Head]) -> list[Finding]:
    """The findings if a proof's head is not shown to be later than the heads kept elsewhere and those in the proof.

    A head's `previous` shows that it was signed after the one before, not that its trees begin with that one's trees:
    the holder of the key signs both. So each kept head needs a consistency proof of its own.
    """
    findings = _forks([head], kept)
    for consistency in shown:
        findings += consistency.wrong(head)
    told = {finding.head for finding in findings}
    firsts = [consistency.first for consistency in shown]
    findings += check_order([head, *(one for one in (*kept, *firsts) if one.number not in told)])
    told |= {finding.head for finding in findings}
    answered = {head.line, *(first.line for first in firsts)}
    open_ = {one.number for one in kept if one.line not in answered and one.number not in told}
    if open_:
        problem = (
            f"nothing in the proof shows that {_heads(open_)} kept elsewhere came before: make the proof again, with "
            "`placet audit prove --since-head` and the same file"
        )
        findings.append(Finding("not_shown", problem, head=min(open_)))
    return findings


def _heads(numbers: Collection[int]) -> str:
    return "this head" if len(numbers) == 1 else f"this head and {len(numbers) - 1} more"


def _believed(report: Report, keys: Keys | None, own: Keys | None) -> Keys:
    if keys is not None:
        return keys
    if own is None:
        raise Unreadable("The proof contains no keys: give the installation's with --key.")
    report.warnings.append(FIRST_USE)
    return own


def _foreign_keys(where: str, own: Keys, believed: Keys, heads: Sequence[Head]) -> list[Finding]:
    """The findings about the keys that came along: they are not signed, so they must be the trusted ones."""
    if not own.items() <= believed.items():
        kid = min(kid for kid, raw in own.items() if believed.get(kid) != raw)
        if kid in believed:
            problem = f"{where} has a key {kid[:40]} other than the one given"
        else:
            problem = f"{where} has the key {kid[:40]}, which is not given: {ROTATED}"
        return [Finding("forged_signature", problem)]
    for head in heads:
        kid = str(head.body.get("kid"))
        if kid in believed and kid not in own:
            problem = f"{where} lacks the key {kid[:40]} that signed this: {AGAIN[where]}"
            return [Finding("forged_signature", problem, head=head.number)]
    return []


def _signed(report: Report, heads: Sequence[Head], keys: Keys) -> list[Head]:
    """The heads with a good signature; all of them, with a warning, if signatures cannot be checked."""
    good = []
    for head in heads:
        try:
            forged = check_signature(head, keys) if report.signatures else None
        except NoSignatures as error:
            report.signatures = False
            report.warnings.append(str(error))
            forged = None
        if forged is None:
            good.append(head)
        else:
            report.findings.append(forged)
    return good


def _forks(heads: Sequence[Head], kept: Sequence[Head]) -> list[Finding]:
    """The findings about kept heads: another head has the number here, another tenant, or newer than all here."""
    here = {head.number: head for head in heads}
    findings = []
    for head in kept:
        same = here.get(head.number)
        if same is not None and same.line != head.line:
            problem = "the head kept elsewhere is another one of this number"
            findings.append(Finding("broken_chain", problem, head=head.number))
        elif head.tenant != heads[0].tenant:
            problem = f"the head kept elsewhere is of the tenant {head.tenant[:40]}"
            findings.append(Finding("broken_chain", problem, head=head.number))
        elif head.number > heads[-1].number:
            problem = f"the head kept elsewhere is newer than the newest here, head {heads[-1].number}"
            findings.append(Finding("tail_cut", problem, head=head.number))
    return findings
