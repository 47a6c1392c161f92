"""The view of a hold: what a person is shown before deciding, as one fixed text made of facts of the log.

It shows the state when the hold opened, so it never changes: an extension, an escalation or an erased secret is not
in it. `view_digest` is the SHA-256 of its UTF-8 bytes; HoldOpened has it, with the version of the text. A text of
another form is another version; every version that was ever shown stays the same byte for byte (tests/golden/views);
`versions` lists what each began to show.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from schemas.adaptive import outcome_from_text
from schemas.call_history import CallHistory, history_from_text
from schemas.canonical import canonical, parse_strict, sha256_hex
from schemas.display.characters import Badge, code_of
from schemas.display.difference import ABSENT, changes
from schemas.display.escape import Badges, escaped, escaped_lines, escaped_value
from schemas.display.judged import Judged, named, unread
from schemas.display.values import lines_of, scalar_text, whole_on_one_line
from schemas.display.versions import (
    READS_OFFER_FROM,
    SHOW_MESSAGE,
    SHOWS_ASKS_FROM,
    SHOWS_ENDS_FROM,
    SHOWS_REQUEST_FROM,
    TELLS_ADAPTIVE_FROM,
    TELLS_NEW_AS_NEW_FROM,
    version_for,
)
from schemas.display.whole import must_be_read_whole
from schemas.headers import rfc3339
from schemas.requirement import requirements_from_text
from schemas.sensitive import placeholders, pointer

# Shown for a fact without a value.
NONE = "(none)"
# What the answer to a question may be, beside one of its options.
_MAY = {
    "allow_custom": "may be answered in one's own words",
    "multiple": "several options may be chosen",
    "remember": "the answer may be for further times",
}
NUL, STORED_AS = "\x00", "\ufffd"
UNKNOWN_OUTCOME = "outcome_unknown"
NO_ARGUMENTS = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The facts of a hold's view, as they were when the hold opened.

    `options`, `fields`, `default_value`, `remember`, `requirements`, `arguments` and `proposed_arguments` are JSON.
    `arguments` is None for a request; `proposed_arguments` are the agent's own if a person has edited them, else
    empty. `asked` is the run's request: what its user asked the agent for. `message` is the message of a conversation
    that the agent was answering; empty if there was none. `asks` is JSON of what the answer to a question can be and
    what it is about; None for a call.
    """

    tenant: str
    project: str
    execution_id: str
    asked: str
    hold_id: str
    call_id: str
    request_id: str
    revision: int
    digest: str
    kind: str
    cause: str
    question: str
    options: str
    fields: str
    decision_type: str
    requester: str
    agent: str
    user: str
    tool: str
    tool_version: str
    reason: str
    arguments: str | None
    proposed_arguments: str
    judged: Judged | None
    roles: Sequence[str]
    reviewers: Sequence[str]
    excluded: Sequence[str]
    quorum: int
    exclude_requester: bool
    opened_at_ms: int
    deadline_at_ms: int | None
    on_timeout: str
    default_value: str | None
    escalate_roles: Sequence[str]
    on_reject: str
    remember: str | None
    requirements: str | None = None
    asks: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Redaction:
    """A sensitive value that is not shown: its path, handle and commitment."""

    path: str
    handle: str
    commitment: str


@dataclass(frozen=True, slots=True)
class Difference:
    """The change of one value by an edit, both sides as they are shown; None for a missing side."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class View:
    """The rendered view."""

    text: str
    badges: tuple[Badge, ...]
    redactions: tuple[Redaction, ...]
    difference: tuple[Difference, ...]
    must_read: bool
    version: int

    @property
    def digest(self) -> str:
        """SHA-256 of the text, as hex: the `view_digest`."""
        return sha256_hex(self.text)


def texts_of(version: int, asked: str, message: str, *words: str) -> tuple[str, ...]:
    """The texts beside the arguments that a view checks for hidden characters.

    Args:
        version: the view's.
        asked: the run's request.
        message: the message that the agent was answering, or empty.
        words: the texts that every version shows.
    """
    if version in SHOW_MESSAGE:
        return (*words, asked, message)
    return (*words, asked) if version >= SHOWS_REQUEST_FROM else words


def words_of_asks(version: int, asks: str | None) -> tuple[str, ...]:
    """The texts of what a question is about."""
    if asks is None or version < SHOWS_ASKS_FROM:
        return ()
    told = parse_strict(asks)
    return told["tool"], told["action"]


def offer_of(
    version: int, options: str, fields: str, decision_type: str, default: str | None
) -> tuple[str, ...]:
    """What a question offers as its answer, as canonical JSON: it is checked like the arguments of a call.

    Args:
        version: the view's; those before version 7 do not check it.
        options: JSON, as in the hold.
        fields: JSON, as in the request.
        decision_type: the request's, or empty.
        default: JSON of the answer that counts without one, or None.
    """
    if version < READS_OFFER_FROM:
        return ()
    # Each by itself: together they could be nested deeper than JSON can be here.
    offered = [parse_strict(text) for text in (options, fields, default) if text is not None]
    return tuple(map(canonical, (decision_type, *offered)))


def view_of(held: Held, version: int | None = None) -> View:
    """Render the view of a hold in a version; None for that in which it would open now."""
    version = version_for(held.message) if version is None else version
    badges = Badges(version)
    body = _Body(held, version, badges)
    body.write()
    found = badges.sorted()
    head = [f"placet-view {version}", f"badges: {', '.join(found) or 'none'}"]
    words = [held.agent, held.tool, held.reason, held.question, *words_of_asks(version, held.asks)]
    texts = texts_of(version, held.asked, held.message, *words)
    return View(
        "\n".join([*head, *body.lines, ""]),
        found,
        tuple(body.redactions),
        tuple(body.difference),
        must_be_read_whole(_checked(held, version), texts, version),
        version,
    )


def _checked(held: Held, version: int) -> tuple[str, ...]:
    if held.call_id:
        return (held.arguments or NO_ARGUMENTS,)
    return offer_of(version, held.options, held.fields, held.decision_type, held.default_value)


class _Body:
    """The part of the view below the badges, which are known only after it is written."""

    def __init__(self, held: Held, version: int, badges: Badges) -> None:
        self._held = held
        self._version = version
        self._badges = badges
        self.lines: list[str] = []
        self.redactions: list[Redaction] = []
        self.difference: list[Difference] = []

    def write(self) -> None:
        held = self._held
        if self._version in SHOW_MESSAGE:
            self._text("asked of the agent", held.message)
            self._text("asked first in the conversation", held.asked)
        elif self._version >= SHOWS_REQUEST_FROM:
            self._text("asked of the agent", held.asked)
        self._line("hold", held.hold_id)
        self._line("execution", f"{held.tenant}/{held.project}/{held.execution_id}")
        self._line("kind", held.kind)
        self._line("cause", held.cause)
        self._line("agent", held.agent)
        self._line("user", held.user)
        self._line("requester", held.requester)
        self._text("question", held.question)
        if held.call_id:
            self._call()
        else:
            self._request()
        self._verdict()
        self._authority()

    def _line(self, name: str, value: str) -> None:
        self.lines.append(f"{name}: {self._shown(value) if value else NONE}")

    def _shown(self, value: str) -> str:
        # The views cannot store U+0000 in a text that is not JSON. The text made here must equal the one made there.
        stored = value.replace(NUL, STORED_AS)
        if self._version < SHOWS_ENDS_FROM:
            return escaped(stored, self._badges)
        return escaped_value(stored, self._badges) if value != NONE else code_of(NONE[0]) + NONE[1:]

    def _text(self, name: str, value: str) -> None:
        if "\n" not in value:
            self._line(name, value)
            return
        shown = escaped_lines(value.replace(NUL, STORED_AS), self._badges)
        self.lines.append(f"{name}: text of {value.count(chr(10)) + 1} lines")
        self.lines += [f"  | {line}".rstrip(" ") for line in shown]

    def _names(self, name: str, values: Sequence[str]) -> None:
        shown = ", ".join(scalar_text(value.replace(NUL, STORED_AS), self._badges) for value in values)
        self.lines.append(f"{name}: {shown or '(none)'}")

    def _json(self, name: str, text: str) -> None:
        self.lines += lines_of(parse_strict(text), self._badges, head=f"{name}: ")

    def _json_line(self, name: str, value: Any) -> None:
        self.lines.append(f"{name}: {whole_on_one_line(value, self._badges)}")

    def _call(self) -> None:
        held = self._held
        self._line("call", held.call_id)
        self.lines.append(f"revision: {held.revision}")
        self._line("tool", held.tool)
        self._line("tool version", held.tool_version)
        self._line("digest", held.digest)
        self._text("reason", held.reason)
        arguments = parse_strict(held.arguments or "{}")
        self._arguments(arguments)
        if held.proposed_arguments:
            self._edits(parse_strict(held.proposed_arguments), arguments)

    def _arguments(self, arguments: dict[str, Any]) -> None:
        if not arguments:
            self.lines.append("arguments: {}")
        else:
            self.lines.append("arguments:")
            for name, value in arguments.items():
                head = f"{scalar_text(name, self._badges)}: "
                self.lines += lines_of(value, self._badges, indent="  ", head=head)
        self.redactions = [
            Redaction(pointer(path), handle, commitment)
            for path, handle, commitment in placeholders(arguments)
        ]
        self.lines.append(f"redactions: {len(self.redactions) or 'none'}")
        for one in self.redactions:
            path = scalar_text(one.path, self._badges)
            self.lines.append(f"  {path}: sha256:{one.commitment} {one.handle}")

    def _edits(self, proposed: dict[str, Any], arguments: dict[str, Any]) -> None:
        self.difference = [
            Difference(pointer(change.path), self._side(change.before), self._side(change.after))
            for change in changes(proposed, arguments)
        ]
        self.lines.append(f"edited: {len(self.difference)} differences from what the agent proposed")
        for one in self.difference:
            path = scalar_text(one.path, self._badges)
            if one.before is not None:
                self.lines.append(f"  - {path}: {one.before}")
            if one.after is not None:
                self.lines.append(f"  + {path}: {one.after}")

    def _side(self, value: Any) -> str | None:
        return None if value is ABSENT else whole_on_one_line(value, self._badges)

    def _request(self) -> None:
        held = self._held
        self._line("request", held.request_id)
        self._line("digest", held.digest)
        self._line("decision type", held.decision_type)
        if self._version >= SHOWS_ASKS_FROM:
            self._asks(parse_strict(held.asks or "{}"))
        self._json("options", held.options)
        self._json("fields", held.fields)

    def _asks(self, asks: dict[str, Any]) -> None:
        # The others say nothing of a question of this kind.
        for name in ("tool", "action"):
            if asks.get(name):
                self._text(name, asks[name])
        if asks.get("risk"):
            self._line("risk, by the agent's own word", asks["risk"])
        for name, shown in _MAY.items():
            if asks.get(name):
                self.lines.append(f"{shown}: yes")

    def _verdict(self) -> None:
        judged = self._held.judged
        if judged is None:
            self.lines.append("verdict: (none)")
            return
        self.lines.append(f"verdict: {judged.effect}")
        self._names("rules", judged.rules)
        self._line("policy", judged.policy_version)
        self._line("because", judged.reason)
        self._text("detail", judged.detail)
        parts = ", ".join(judged.risk_parts) or "none"
        self.lines.append(f"risk: {judged.risk_level} {judged.risk_score:.4f}, of {parts}")
        self.lines.append(f"trust required: {judged.risk_required:.4f}")
        outcome = None
        if judged.adaptive is not None and self._version >= TELLS_ADAPTIVE_FROM:
            outcome = outcome_from_text(judged.adaptive)
            # The risk above is the tool's, by which rules decide; new values add to what trust must outweigh.
            if outcome.required != judged.risk_required:
                self.lines.append(f"trust required with new values: {outcome.required:.4f}")
        self._json_line("trust", _without_sources(parse_strict(judged.trust or "null")))
        if outcome is not None and outcome.result == "asked":
            self._text("not released by trust", outcome.why)
        self._history(history_from_text(judged.history))

    def _history(self, history: CallHistory) -> None:
        self.lines += [f"values: {said}" for said in unread(history)]
        before = self._version < TELLS_NEW_AS_NEW_FROM
        for name, values in named(history, tells_new_as_apart=before):
            self._names(name, values)

    def _authority(self) -> None:
        held = self._held
        if held.call_id:
            self._json("options", held.options)
        self._names("roles", held.roles)
        self._names("reviewers", held.reviewers)
        self._names("excluded", held.excluded)
        self.lines.append(f"people needed: {held.quorum}")
        for one in requirements_from_text(held.requirements):
            self.lines.append(f"among them: {one.quorum}")
            self._names("  asked by", one.rules)
            self._names("  of the roles", one.roles)
            self._names("  or reviewers", one.reviewers)
        self.lines.append(f"another person than the requester: {'yes' if held.exclude_requester else 'no'}")
        self._names("escalates to", held.escalate_roles)
        self.lines.append(f"opened: {rfc3339(held.opened_at_ms)}")
        deadline = "(none)" if held.deadline_at_ms is None else rfc3339(held.deadline_at_ms)
        self.lines.append(f"deadline: {deadline}")
        self.lines.append(f"without a decision: {held.on_timeout}")
        if held.default_value is not None:
            self._json("default", held.default_value)
        self.lines.append(f"after a rejection: {held.on_reject}")
        self._json_line("may be remembered for", parse_strict(held.remember or "null"))


def _without_sources(trust: Any) -> Any:
    # The offsets up to which each partition was counted prove the figures, but are of no use to a reviewer.
    return (
        {name: value for name, value in trust.items() if name != "through"}
        if isinstance(trust, dict)
        else trust
    )
