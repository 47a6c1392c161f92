"""Standing rules as the log tells them: what was in force where, every use that was given, and who ran on it.

A model of its own, like the rest of the checker: the documents are read as plain JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ops.checker.agreed import who_may_no_more
from ops.checker.arguments import is_about
from ops.checker.facts import Fact
from ops.checker.people import TENANTS, PeopleAt
from ops.checker.scratch import Scratch, Shelf, short
from ops.checker.violations import Violation

Report = Callable[[Violation], None]
Name = tuple[str, str]  # tenant and rule id
Use = tuple[str, str, int]  # rule id, call id and revision that a use was given to

USES = "rule"
OF_RUN = "execution:"
STATUS = {"RuleActivated": "active", "RuleSuspended": "suspended", "RuleRevoked": "revoked"}


def is_uses_key(key: str) -> bool:
    """Whether a key is that of the uses of a standing rule."""
    parts = key.split("/")
    return len(parts) == 4 and parts[2] == USES


@dataclass(slots=True)
class RuleSeen:
    """One rule: its document, and its status from each offset of the definitions on."""

    document: Any
    statuses: list[tuple[int, str]] = field(default_factory=list)
    activated: list[tuple[int, str]] = field(default_factory=list)

    def activators(self, through_offset: int) -> list[str]:
        """Who activated it last, as the definitions up to an offset have it."""
        return [by for offset, by in self.activated if offset <= through_offset][-1:]

    def status(self, through_offset: int) -> str:
        """The status as the definitions up to an offset have it; empty before it was made."""
        found = [status for offset, status in self.statuses if offset <= through_offset]
        return found[-1] if found else ""

    def is_own(self, by: str, people: PeopleAt) -> bool:
        """Whether an account is of its maker, or of whose request it is about, where it takes another person."""
        four_eyes, terms = self.document["four_eyes"], self.document["terms"]
        makers = {maker["by"] for maker in self.document.get("makers", ())} | {self.document["made_by"]}
        accounts = makers if four_eyes else set()
        if four_eyes or terms.get("exclude_requester"):
            accounts |= set(self.document["requesters"])
        return people.person(by) in {who(name) for name in accounts for who in (people.person, people.meant)}


@dataclass
class RulesSeen:
    """All rules, with every use and every release by one, across the partitions."""

    scratch: Scratch = field(default_factory=Scratch)
    rules: dict[Name, RuleSeen] = field(default_factory=dict)
    _alone: list[Fact] = field(default_factory=list)
    _numbered: Counter[str] = field(default_factory=Counter)
    _released: Counter[Name] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._reserved: Shelf[Use] = Shelf(self.scratch, "use", Use)
        self._answered: Shelf[bool] = Shelf(self.scratch, "answered", bool)

    def project_of(self, fact: Fact) -> str:
        """The project of the rule that a fact of the definitions is about; `*` for none."""
        rule = self.rules.get((fact.tenant, getattr(fact.body, "rule_id", "")))
        return TENANTS if rule is None else str(rule.document["project"])

    def published(self, fact: Fact, people: PeopleAt) -> None:
        """Take a fact of the definitions, with the people as they stood then."""
        if fact.type == "RuleMade":
            rule = RuleSeen(json.loads(fact.body.document), [(fact.offset, fact.body.status)])
            self.rules.setdefault((fact.tenant, fact.body.rule_id), rule)
        elif fact.type in STATUS:
            rule = self.rules[fact.tenant, fact.body.rule_id]
            rule.statuses.append((fact.offset, STATUS[fact.type]))
            if fact.type == "RuleActivated":
                rule.activated.append((fact.offset, fact.body.by))
                if rule.is_own(fact.body.by, people):
                    self._alone.append(fact)

    def use(self, fact: Fact, adopted_through: int, report: Report) -> None:
        """Take a fact of the uses of a rule."""
        if fact.type not in ("RuleUseReserved", "RuleUseRefused"):
            return
        if self._answered.get(fact.body.reservation_id) is not None:
            _say(report, "I2", fact, "one reservation is answered twice", fact.body.reservation_id)
        self._answered.put(fact.body.reservation_id, True)
        if fact.type == "RuleUseReserved":
            self._given(fact, adopted_through, report)

    def _given(self, fact: Fact, adopted_through: int, report: Report) -> None:
        body, rule = fact.body, self.rules.get((fact.tenant, fact.body.rule_id))
        if not fact.key.endswith(f"/{USES}/{body.rule_id}"):
            _say(report, "I1", fact, "a use is counted under the key of another rule", body.rule_id)
        if rule is None or rule.status(adopted_through) != "active":
            _say(report, "I5", fact, "a use of a rule that is not active here", body.rule_id)
        elif fact.at_ms >= rule.document["expires_at_ms"]:
            _say(report, "I5", fact, "a use of a rule that has expired", body.rule_id)
        elif (rule.document["uses"] or 0) < body.number:
            _say(report, "I2", fact, "more uses of a rule than it has", rule.document["uses"], body.number)
        given = self._numbered[fact.key]
        if body.number != given + 1:
            _say(report, "I2", fact, "the uses of a rule are not counted one by one", given, body.number)
        self._numbered[fact.key] += self._reserved.get(body.reservation_id) is None
        self._reserved.put(body.reservation_id, (body.rule_id, body.call_id, body.revision))

    def settled(self, fact: Fact) -> None:
        """Take an answer as its call got it."""
        if fact.body.granted:
            body, where = fact.body, (fact.where, fact.key)
            asked = (body.rule_id, body.call_id, body.revision)
            row = (_call_of(fact), body.reservation_id, msgspec.msgpack.encode((*where, asked)))
            self.scratch.add("INSERT INTO uses VALUES (?, ?, ?)", [row])

    def released(
        self,
        fact: Fact,
        tenant: str,
        call: Any,
        adopted_through: int,
        report: Report,
        people: PeopleAt,
    ) -> None:
        """Take a release by a standing rule: it must be in force, and be about this very call."""
        name = (tenant, fact.body.rule_id)
        rule = self.rules.get(name)
        self._released[name] += 1
        if rule is None or rule.status(adopted_through) != "active":
            _say(report, "I5", fact, "released by a rule that is not active here", fact.body.rule_id)
            return
        document = rule.document
        if gone := who_may_no_more(document, rule.activators(adopted_through), people):
            _say(report, "I10", fact, "released by a rule of somebody who can no longer decide", *gone)
        if fact.at_ms >= document["expires_at_ms"]:
            _say(report, "I5", fact, "released by a rule that has expired", fact.body.rule_id)
        about = (document["agent"], document["tool"], document["tool_version"])
        if about != (call.agent, call.tool, call.tool_version):
            _say(report, "I1", fact, "released by a rule about other calls", *about)
        elif not is_about(document["arguments"], json.loads(fact.body.arguments)):
            _say(report, "I1", fact, "released with other arguments than the rule names", fact.body.arguments)
        if fact.key.split("/")[1] != document["project"]:
            _say(report, "I9", fact, "released by a rule of another project", document["project"])
        if document["uses"] is not None and not self._has_use(fact):
            _say(report, "I2", fact, "released by a rule with a limit, but without a use", fact.body.rule_id)

    def end(self, report: Report) -> None:
        """Compare what was given with what was used, once every partition was read."""
        for fact in self._alone:
            _say(report, "I10", fact, "a rule activated by one of those who requested it", fact.body.by)
        for reservation_id, value in self.scratch.rows(
            "SELECT reservation_id, value FROM uses ORDER BY rowid"
        ):
            where, key, asked = msgspec.msgpack.decode(value)
            if self._reserved.get(reservation_id) != tuple(asked):
                what = "a use that was never given to this call"
                report(Violation("I2", where, what, (key, reservation_id)))
        for name, count in self._released.items():
            limit = self.rules[name].document["uses"] if name in self.rules else None
            if limit is not None and count > limit:
                where = f"rule {name[1]}"
                report(
                    Violation("I2", where, "more calls were released than the rule has uses", (str(count),))
                )

    def _has_use(self, fact: Fact) -> bool:
        return self.scratch.one("SELECT 1 FROM uses WHERE call = ?", (_call_of(fact),)) is not None


def _call_of(fact: Fact) -> bytes:
    body = fact.body
    return short("\n".join((fact.key, body.call_id, str(body.revision), body.rule_id)))


def _say(report: Report, invariant: str, fact: Fact, what: str, *evidence: object) -> None:
    report(Violation(invariant, fact.where, what, (fact.key, *map(str, evidence))))
