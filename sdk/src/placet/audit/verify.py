"""Verifying a directory of `placet audit fetch`, or one proof, against keys and heads that were kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from placet.audit.bundle import Bundle, Unreadable, keys_of, read_heads, read_keys, read_proof
from placet.audit.findings import Finding, Report
from placet.audit.heads import MALFORMED, Head, NoSignatures, TreeName, check_chain, check_signature, head_of
from placet.audit.leaf import header_of, leaf_of
from placet.audit.merkle import is_consistent, root_of_path
from placet.audit.tree import Anchor, examine

FIRST_USE = "the keys came with what they are to vouch for: give those of an earlier day with --key"

Keys = Mapping[str, bytes]
Told = Callable[[int, int], None]


def verify_path(
    path: Path, keys: Keys | None = None, kept: Sequence[Head] = (), told: Told = lambda done, of: None
) -> Report:
    """Verify a directory or a proof file.

    Args:
        path: of either.
        keys: public keys that are believed; None takes those that came with it, and warns.
        kept: heads that were kept elsewhere.
        told: is called with how many leaves were looked at, of how many.

    Raises:
        Unreadable: a file is not what it should be.
    """
    if path.is_dir():
        return verify_bundle(Bundle(path), keys, kept, told)
    return verify_proof(read_proof(path), keys, kept)


def verify_bundle(
    bundle: Bundle, keys: Keys | None = None, kept: Sequence[Head] = (), told: Told = lambda done, of: None
) -> Report:
    """Verify everything in a directory; arguments and errors as `verify_path`."""
    bundle.check()
    report = Report()
    believed = _believed(report, keys, lambda: read_keys(bundle.keys_file))
    heads = read_heads(bundle.heads_file)
    if not heads:
        raise Unreadable(f"{bundle.heads_file} holds no head: there is nothing to verify against.")
    report.heads = len(heads)
    good = _signed(report, [*heads, *kept], believed)
    report.findings += check_chain(heads)
    report.findings += _forks(heads, kept)
    newest: Mapping[TreeName, Any] = heads[-1].trees
    trees = sorted({name for head in good for name in head.trees} | set(newest))
    report.leaves = total = sum(state.size for state in newest.values())
    done = 0
    for name in trees:
        lists, records = bundle.lists(name)
        report.records += records
        anchors = [Anchor(head.trees[name], head.number) for head in good if name in head.trees]
        report.findings += examine(lists, anchors)
        done += len(lists.made)
        told(min(done, total), total)
    return report


def verify_proof(proof: Mapping[str, Any], keys: Keys | None = None, kept: Sequence[Head] = ()) -> Report:
    """Verify one proof; arguments and errors as `verify_path`."""
    report = Report(heads=1, leaves=1, records=1)
    try:
        head = head_of(proof["head"])
        record, index, size = proof["record"], int(proof["leaf_index"]), int(proof["tree_size"])
        path = [bytes.fromhex(step) for step in proof["path"]]
        leaf = leaf_of(record)
        name = (str(record["topic"]), int(record["partition"]))
        says = header_of(record, "ce_id")
        offset = int(record["offset"])
    except MALFORMED as error:
        raise Unreadable(f"This is no proof ({error!r}): make one with placet audit prove.") from error
    believed = _believed(report, keys, lambda: _own_keys(proof))
    _signed(report, [head, *kept], believed)
    tree = f"{name[0]}/{name[1]}"
    if says != proof.get("event_id"):
        report.findings.append(
            Finding("edited", "the record is of another event", tree, index, offset=offset)
        )
    state = head.trees.get(name)
    if state is None or state.size != size or root_of_path(leaf, index, size, path) != state.root:
        problem = "the path does not lead from this record to the signed root"
        report.findings.append(
            Finding("not_the_signed_root", problem, tree, index, None, offset, head.number)
        )
    report.findings += _forks([head], kept)
    for other in kept:
        if other.number != head.number:
            report.findings += _inconsistent(proof, head, other)
    return report


def _believed(report: Report, keys: Keys | None, own: Callable[[], Keys]) -> Keys:
    if keys is not None:
        return keys
    report.warnings.append(FIRST_USE)
    return own()


def _own_keys(proof: Mapping[str, Any]) -> Keys:
    try:
        return keys_of(proof.get("keys"))
    except ValueError as error:
        raise Unreadable("The proof has no keys with it: give the installation's with --key.") from error


def _signed(report: Report, heads: Sequence[Head], keys: Keys) -> list[Head]:
    """The heads with a good signature; all of them where signatures cannot be checked, and then it is said."""
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
    """Heads kept elsewhere that have another's number here, or are of another tenant."""
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


def _inconsistent(proof: Mapping[str, Any], head: Head, kept: Head) -> list[Finding]:
    """What keeps a head kept elsewhere from being an earlier one of the proof's."""
    first: Head | None = None
    second: Head | None = None
    steps: dict[TreeName, list[bytes]] = {}
    try:
        shown = proof["consistency"]
        first, second = head_of(shown["first"]), head_of(shown["second"])
        steps = {
            (str(one["topic"]), int(one["partition"])): [bytes.fromhex(step) for step in one["path"]]
            for one in shown["proofs"]
        }
    except MALFORMED:
        first = None
    if first is None or second is None or first.line != kept.line or second.line != head.line:
        problem = "nothing shows that the head kept elsewhere came before: fetch the proof with --since-head"
        return [Finding("broken_chain", problem, head=kept.number)]
    findings = []
    for name, old in kept.trees.items():
        new = head.trees.get(name)
        if new is None or not is_consistent(old.size, old.root, new.size, new.root, steps.get(name, [])):
            problem = "this is not the tree that the head kept elsewhere was signed for"
            findings.append(Finding("not_the_signed_root", problem, f"{name[0]}/{name[1]}", head=kept.number))
    return findings
