"""The checker's own model of holds: who may end one, until when, and with how many voices."""

from __future__ import annotations

from collections.abc import Callable

from ops.checker.agreed import REVIEWERS, disagreement
from ops.checker.calls import CallSeen, RunSeen
from ops.checker.facts import Fact
from ops.checker.hold_seen import Handed, HoldSeen, Opened, Voter
from ops.checker.people import PeopleAt
from ops.checker.turns import hold_ended
from schemas.canonical import parse_strict


def hold_event(run: RunSeen, fact: Fact) -> None:
    """Take an event about a hold."""
    if fact.type == "HoldOpened":
        _opened(run, fact)
        return
    hold = run.holds.get(fact.body.hold_id)
    if hold is None:
        run.say("I6", fact, "an event of a hold that was never opened", fact.body.hold_id)
        return
    if hold.state != "open" and fact.type != "RollbackStarted":
        run.say("I4", fact, f"{fact.type} of a hold that is {hold.state}", fact.body.hold_id)
    was_open = hold.state == "open"
    _STEPS[fact.type](run, hold, fact)
    if was_open and hold.state != "open":
        hold_ended(run, fact)
        _planted_call_over(run, hold)


def _planted_call_over(run: RunSeen, hold: HoldSeen) -> None:
    call = run.calls.get(hold.opened.call_id)
    if call is not None and call.planted is not None:
        call.planted.over = True
        run.to_tell = hold.opened.call_id


def _opened(run: RunSeen, fact: Fact) -> None:
    body = fact.body
    if body.hold_id in run.holds:
        run.say("I4", fact, "a hold's id was used twice", body.hold_id)
    opened = Opened(**{name: getattr(body, name) for name in Opened.__dataclass_fields__})
    run.holds[body.hold_id] = HoldSeen(
        opened, body.deadline_at_ms, roles=body.roles, senders=len(run.facts.senders)
    )
    if not body.call_id:
        return
    call = run.calls.get(body.call_id)
    if call is None or (call.revision, call.digest) != (body.revision, body.digest):
        run.say("I1", fact, "a hold on another revision or digest than the call's", body.digest)
        return
    waiting = "outcome_unknown" if body.cause == "outcome_unknown" else "held"
    before = {"outcome_unknown"} if body.cause == "outcome_unknown" else {"proposed", "released"}
    if call.state not in before:
        run.say("I4", fact, f"a hold opened on a call that is {call.state}", body.hold_id)
    if body.cause == "outcome_unknown":
        _check_second_run(run, call, run.holds.get(body.hold_id), fact)
    call.state = waiting


def _check_second_run(run: RunSeen, call: CallSeen, hold: HoldSeen | None, fact: Fact) -> None:
    """Running a call again takes no less than running it did, where people let it run."""
    before = run.holds.get(call.released_by_hold)
    if before is None or hold is None:
        return
    was, now = before.opened, hold.opened
    asks_as_much = (
        now.quorum >= was.quorum
        and now.exclude_requester >= was.exclude_requester
        and set(now.excluded) >= set(was.excluded)
        and _wanted(hold) <= _wanted(before)
        and set(now.reviewers) <= set(was.reviewers)
        and _required(hold) == _required(before)
    )
    if not asks_as_much:
        run.say("I10", fact, "a second run requires less than the first one did", fact.body.hold_id)


def _required(hold: HoldSeen) -> set[tuple[frozenset[str], frozenset[str], int]]:
    """What the rules ask for where several do: roles as they are asked by now, names and a number."""
    return {
        (
            frozenset((*asked["roles"], *(asked["escalate_roles"] if hold.escalated else ()))),
            frozenset(asked["reviewers"]),
            asked["quorum"],
        )
        for asked in parse_strict(hold.opened.requirements or "[]")
    }


def _decided(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    body = fact.body
    if (body.revision, body.digest) != (hold.opened.revision, hold.opened.digest):
        run.say("I1", fact, "a decision on another revision or digest than the hold's", body.digest)
    if hold.deadline_at_ms is not None and fact.at_ms >= hold.deadline_at_ms:
        run.say("I5", fact, "a decision after the deadline", hold.deadline_at_ms, fact.at_ms)
    people = run.published.people.at(run.tenant, run.project, run.adopted_through)
    if people.person(body.by) in {people.person(one.by) for one in hold.voters if people.may_act(one.by)}:
        run.say("I10", fact, "one person counted twice", body.by)
    _check_authority(run, hold, fact, people)
    asked = (body.scope, body.remember or "")
    hold.voters.append(Voter(body.by, frozenset(body.roles), body.person, len(hold.handed), asked))
    if body.resolves and body.decision == "approve":
        barred = _barred(run, hold, people)
        _check_quorum(run, hold, fact, people, barred, "resolved")
        _check_agreement(run, hold, fact, people, barred)
    if body.decision == "edit" and (call := run.calls.get(body.call_id)) is not None:
        hands = _hands(hold, body.by, frozenset(body.roles), len(hold.handed), people)
        call.proposers.extend(one.by for one in hands)
    if body.resolves:
        hold.state = "resolved"
    run.decided(fact)


def check_consumed(run: RunSeen, fact: Fact) -> None:
    """Look whether those who released a call may still decide it as it runs, unless the policy lets it by then."""
    call = run.calls.get(fact.body.call_id)
    hold = None if call is None else run.holds.get(call.released_by_hold)
    if call is None or hold is None or call.state != "released" or call.allowed_by == fact.command_id:
        return
    people = run.published.people.at(run.tenant, run.project, run.adopted_through)
    _check_quorum(run, hold, fact, people, _barred(run, hold, people), "consumed")


def _check_quorum(
    run: RunSeen, hold: HoldSeen, fact: Fact, people: PeopleAt, barred: set[str], done: str
) -> None:
    """Look for fewer different people than are asked for, or where several rules ask, than each asks for."""
    voices = _voices(hold, people, barred)
    if len(voices) < hold.opened.quorum:
        run.say("I10", fact, f"{done} without its quorum", hold.opened.quorum, *sorted(voices))
    for asked in parse_strict(hold.opened.requirements or "[]"):
        roles = {*asked["roles"], *(asked["escalate_roles"] if hold.escalated else ())}
        heard = {
            person
            for voter in hold.voters
            for person, had in _speaking(hold, voter, people)
            if had & roles or person in people.named(asked["reviewers"])
        }
        if len(heard & voices) < asked["quorum"]:
            run.say("I10", fact, f"{done} without the people whom a rule asks for", *asked["rules"])


def _check_agreement(run: RunSeen, hold: HoldSeen, fact: Fact, people: PeopleAt, barred: set[str]) -> None:
    """What is remembered is what every voice that counts has asked for."""
    counted = [voter for voter in hold.voters if _counts(hold, voter, people, barred)]
    *others, last = counted or hold.voters[-1:]
    run.facts.makers = tuple(voter.by for voter in (*others, last))
    if last.asked[0] == "once":
        return
    document = parse_strict(last.asked[1] or "{}") if last.asked[0] == "execution" else None
    if problem := disagreement(last.asked, document, [voter.asked for voter in others]):
        run.say("I10", fact, "remembered something that not all who approved had requested", problem)


def _speaking(hold: HoldSeen, voter: Voter, people: PeopleAt) -> list[tuple[str, frozenset[str]]]:
    """For whom a word may speak, with their roles then: who gave it, and who had handed the hold on to them."""
    hands = [(one.by, one.roles) for one in _hands(hold, voter.by, voter.roles, voter.handed, people)]
    return [(people.person(by), had) for by, had in ((voter.by, voter.roles), *hands)]


def _hands(hold: HoldSeen, by: str, had: frozenset[str], before: int, people: PeopleAt) -> list[Handed]:
    """Through whose hands a hold came to who spoke, the nearest first; none for who was asked themselves."""
    if _is_named(hold, people.person(by), people) or _wanted(hold) & had or not before:
        return []
    last = hold.handed[before - 1]
    if people.person(by) not in people.named([last.to]):
        return []
    return [last, *_hands(hold, last.by, last.roles, before - 1, people)]


def _wanted(hold: HoldSeen) -> set[str]:
    """The roles that may decide; none where only named reviewers may."""
    return set(hold.roles) or (set() if hold.opened.reviewers else set(REVIEWERS))


def _voices(hold: HoldSeen, people: PeopleAt, barred: set[str]) -> set[str]:
    """The people whose word counts: not of an account that lost the role by which it spoke, or may do nothing.

    Nor of one that was taken from its person, or that is barred. Who spoke by delegation only spoke for who had
    handed the hold on, and as long as that one may.
    """
    counted = [voter for voter in hold.voters if _counts(hold, voter, people, barred)]
    return {_speaking(hold, voter, people)[-1][0] for voter in counted}


def _counts(hold: HoldSeen, voter: Voter, people: PeopleAt, barred: set[str]) -> bool:
    hands = _hands(hold, voter.by, voter.roles, voter.handed, people)
    if not _is_same(voter.by, voter.person, people):
        return False
    if people.person(voter.by) in barred or _is_any_barred(hands, barred, people):
        return False
    return _stands(hold, hands, people) if hands else _keeps(hold, voter.by, voter.roles, people)


def _stands(hold: HoldSeen, hands: list[Handed], people: PeopleAt) -> bool:
    """Whether all through whose hands a hold came are who they were, and the first of them may still decide it."""
    first = hands[-1]
    return all(_is_same(one.by, one.person, people) for one in hands) and _keeps(
        hold, first.by, first.roles, people
    )


def _is_same(by: str, person: str, people: PeopleAt) -> bool:
    return person in ("", people.person(by)) and people.may_act(by)


def _keeps(hold: HoldSeen, by: str, had: frozenset[str], people: PeopleAt) -> bool:
    """Whether an account has now what it had to be asked; of one that is not published nobody sees a loss."""
    roles = people.roles(by)
    if roles is None or _is_named(hold, people.person(by), people):
        return True
    return bool(_wanted(hold) & had) and bool(_wanted(hold) & roles)


def _is_named(hold: HoldSeen, person: str, people: PeopleAt) -> bool:
    return person in people.named(hold.opened.reviewers)


def _barred(run: RunSeen, hold: HoldSeen, people: PeopleAt) -> set[str]:
    """The people whose word counts for nothing by what is known here: excluded, or it is their own request."""
    requesters = _requesters(run, hold, people) if hold.opened.exclude_requester else set()
    return requesters | set(map(people.meant, hold.opened.excluded))


def _is_any_barred(hands: list[Handed], barred: set[str], people: PeopleAt) -> bool:
    return any(people.person(one.by) in barred for one in hands)


def _requesters(run: RunSeen, hold: HoldSeen, people: PeopleAt) -> set[str]:
    """Whose own request a hold is about: also everybody who wrote to the agent before it asked."""
    call = run.calls.get(hold.opened.call_id)
    senders = run.facts.senders[: call.senders if call else hold.senders]
    accounts = {
        hold.opened.requester,
        *senders,
        run.facts.started_by,
        run.facts.user,
        *(call.proposers if call else ()),
    } - {""}
    requesters = {people.person(by) for by in accounts} | people.behind(run.facts.agent)
    return requesters | {people.meant(name) for name in (*senders, run.facts.user)} - {""}


def _check_authority(run: RunSeen, hold: HoldSeen, fact: Fact, people: PeopleAt) -> None:
    body = fact.body
    person, published = people.person(body.by), people.roles(body.by)
    if published is not None and published != set(body.roles):
        run.say("I10", fact, "decided with roles other than the published ones", body.by, *body.roles)
    if hold.opened.exclude_requester and person in _requesters(run, hold, people):
        run.say("I10", fact, "the requester decided where another person is asked for", body.by)
    if person in map(people.meant, hold.opened.excluded):
        run.say("I10", fact, "decided by somebody whom the rule excludes", body.by)
    if _is_named(hold, person, people) or _wanted(hold) & set(body.roles):
        return
    hands = _hands(hold, body.by, frozenset(body.roles), len(hold.handed), people)
    if not hands:
        run.say("I10", fact, "decided without a role that the hold asks for", body.by, *body.roles)
    elif not _stands(hold, hands, people) or _is_any_barred(hands, _barred(run, hold, people), people):
        run.say("I10", fact, "decided for somebody who can no longer decide", body.by, hands[-1].by)


def _expired(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    if hold.deadline_at_ms is None or fact.at_ms < hold.deadline_at_ms:
        run.say("I5", fact, "a hold expired early", hold.deadline_at_ms, fact.at_ms)
    hold.state = "expired"


def _cancelled(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    hold.state = "cancelled"


def _escalated(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    hold.roles = (*_wanted(hold), *fact.body.roles)
    hold.escalated = True
    hold.deadline_at_ms = fact.body.deadline_at_ms


def _reminded(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    at_ms = hold.opened.remind_at_ms
    if at_ms is None or fact.at_ms < at_ms or hold.reminded:
        run.say("I5", fact, "people were reminded early, or more than once", at_ms, fact.at_ms)
    hold.reminded = True


def _extended(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    hold.deadline_at_ms = fact.body.deadline_at_ms


def _delegated(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    body = fact.body
    hold.handed.append(Handed(body.by, body.to, frozenset(body.roles), body.person))


def _rolled_back(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    """The rejection itself stands in the same batch; what it names must have succeeded."""
    for call_id in fact.body.calls:
        if (call := run.calls.get(call_id)) is None or call.state != "succeeded":
            run.say("I4", fact, "a rollback names a call that has not succeeded", call_id)


def _noted(run: RunSeen, hold: HoldSeen, fact: Fact) -> None:
    """Who is on it binds nobody."""


_STEPS: dict[str, Callable[[RunSeen, HoldSeen, Fact], None]] = {
    "DecisionRecorded": _decided,
    "HoldExpired": _expired,
    "HoldCancelled": _cancelled,
    "HoldEscalated": _escalated,
    "HoldExtended": _extended,
    "HoldReminded": _reminded,
    "HoldDelegated": _delegated,
    "HoldClaimed": _noted,
    "HoldUnclaimed": _noted,
    "RollbackStarted": _rolled_back,
}
HOLD_EVENTS = frozenset({"HoldOpened", *_STEPS})
