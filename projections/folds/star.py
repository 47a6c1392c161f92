"""Rows of the star for analysts (docs/analysis.md): one for each edit, and one for each rule that a verdict cites."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from projections.folds.edits import patch_of
from projections.folds.effects import New, new
from projections.folds.rows import json_text, owner_of, source_of
from projections.tables.calls import CallRow
from projections.tables.star import EDIT_PATCHES, RULE_VERDICTS, EditPatchRow, RuleVerdictRow
from schemas.canonical import parse_strict
from schemas.events.calls import PolicyVerdictIssued
from schemas.events.holds import DecisionRecorded
from schemas.record import Event
from schemas.standing_rule import IN_EXECUTION

# Before the id of a standing rule, where a verdict cites it.
STANDING = "rule:"


class Cited(NamedTuple):
    """A rule that a verdict cites; `policy` without its version, None of a remembered decision."""

    kind: str
    policy: str | None
    policy_version: int | None
    rule_id: str


@lru_cache(maxsize=4096)
def cited(rule: str) -> Cited:
    """The parts of a rule's citation: `policy@version/rule`, `project/policy@version/rule`, or a remembered decision.

    A citation of another form is a policy's rule of this name, without policy.
    """
    if rule.startswith(STANDING):
        return Cited("standing", None, None, rule.removeprefix(STANDING))
    if rule.startswith(IN_EXECUTION):
        return Cited("execution", None, None, rule.removeprefix(IN_EXECUTION))
    label, _, rule_id = rule.rpartition("/")
    policy, _, version = label.rpartition("@")
    if not (policy and version.isascii() and version.isdecimal()):
        return Cited("policy", None, None, rule)
    return Cited("policy", policy, int(version), rule_id)


def rule_verdict_rows(body: PolicyVerdictIssued, event: Event, call: CallRow | None) -> Iterator[New]:
    """A row for each rule that a verdict cites, in its order."""
    if call is None:
        return
    for number, rule in enumerate(body.rules, 1):
        one = cited(rule)
        row: RuleVerdictRow = {
            **owner_of(event),
            **source_of(event),
            "number": number,
            "rule": rule,
            "kind": one.kind,
            "policy": one.policy,
            "policy_version": one.policy_version,
            "rule_id": one.rule_id,
            "effect": body.effect,
            "reason": body.reason,
            "risk_level": body.risk_level,
            "agent": call["agent"],
            "tool": call["tool"],
            "call_id": body.call_id,
            "revision": body.revision,
        }
        yield new(RULE_VERDICTS, row)


def edit_patch_rows(body: DecisionRecorded, event: Event, call: CallRow | None) -> Iterator[New]:
    """The row of an edit, with the JSON Patch from what the agent proposed; none for another decision."""
    if call is None or body.decision != "edit" or body.edited_arguments is None:
        return
    proposed = call["arguments"] if call["proposed_arguments"] is None else call["proposed_arguments"]
    before: Any = parse_strict(proposed)
    patch = patch_of(before, parse_strict(body.edited_arguments))
    row: EditPatchRow = {
        **owner_of(event),
        **source_of(event),
        "call_id": call["call_id"],
        "revision": call["revision"] + 1,
        "agent": call["agent"],
        "tool": call["tool"],
        "hold_id": body.hold_id,
        "decision_id": body.decision_id,
        "subject": body.by,
        "proposed_arguments": proposed,
        "arguments": body.edited_arguments,
        "patch": json_text(patch),
        "operations": len(patch),
        "feedback": body.feedback,
    }
    yield new(EDIT_PATCHES, row)
