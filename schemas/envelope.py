"""The signed envelope of a command: a verifiable identity of its sender.

A gateway signs the commands that it forwards with Ed25519 (RFC 8032). Commands that leave together share one
signature: it is over the size and root of an RFC 6962 tree whose leaves are the commands, and each record carries its
own audit path. One signature costs some 300 µs to make and check; shared by 64 commands it is 5 µs each.

Headers: `placet_envelope` (JSON of the actor), `placet_signature` (`kid.size.index.path.signature`, the last
two base64url without padding), and, not signed, `placet_dwell_ms`: the time that a gateway measured for a decision.
It is not part of the body, because another gateway that receives the same decision measures another time. Nor is
`traceparent` signed, the sender's trace context.

A decider signs in the same way, with a key of its own, the commands that it sends from one partition to another.
Neither key is trusted for the other's commands.

A service that produces to Kafka itself puts its agent's token into `placet_token` instead. The decider checks it, and
permits only an agent's commands. docs/log-contract.md specifies all of this byte for byte.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import ValidationError

from schemas import codec, merkle
from schemas.actor import DECIDER, Actor, system_actor
from schemas.batch_signature import parse_proof, sign_batch
from schemas.commands import (
    COMMANDS,
    ConsumeGrant,
    DecideHold,
    ExpireDue,
    MakeRule,
    ProposeToolCall,
    RenewLease,
    ReportResult,
    RequestHumanInput,
    ReserveRuleUse,
    SettleReservation,
    SuspendRule,
)
from schemas.ed25519 import Verified
from schemas.ids import DECIDER_IDS, TIMER_IDS, is_client_id, split_execution_key
from schemas.limits import COUNT_MAX
from schemas.message import Message
from schemas.record import Command, Headers, OutRecord, RawRecord, UnreadableRecord, headers_by_name
from schemas.trace_context import TRACEPARENT, trace_in

VERIFIED_MAX = 4096
# The commands that a token on a record permits: all that an agent sends itself, and none that a person sends.
BY_TOKEN = (ProposeToolCall, ConsumeGrant, RenewLease, ReportResult, RequestHumanInput)
# The commands that a decider sends between partitions, signed with its own key; people send SuspendRule as well.
BY_DECIDER = (MakeRule, ReserveRuleUse, SettleReservation, SuspendRule)
DECIDERS_ALONE = (MakeRule, ReserveRuleUse, SettleReservation)
NUDGE_TYPE = codec.SUBJECTS[ExpireDue].encode()

# A kid names one key for ever. A token check raises ValueError (or a subclass) for every token that it refuses.
PublicKeys = Callable[[str], Ed25519PublicKey | None]
# The actor of a token at a time (ms): the broker's append time, so that a late reader decides the same.
TokenCheck = Callable[[str, int], Actor]
Signatory = Literal["gateway", "decider", ""]


def no_keys(kid: str) -> Ed25519PublicKey | None:
    """Key lookup that trusts no key."""
    return None


_COMMAND_TYPES = frozenset(COMMANDS)
_COUNT = re.compile(rb"[0-9]{1,16}")


@dataclass(frozen=True, slots=True)
class Draft:
    """A command that is about to be signed.

    `dwell_ms` is how long the gateway showed the hold before a decision; None if unknown. `value` is the body's
    framed bytes, if the caller has encoded them already. `trace` is its trace context; empty if it is not traced.
    """

    body: Message
    actor: Actor
    command_id: str
    key: bytes
    dwell_ms: int | None = None
    value: bytes | None = None
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Signer:
    """A gateway's signing key and its id; with another source, a decider's."""

    kid: str
    private_key: Ed25519PrivateKey = field(repr=False)
    source: bytes = b"/placet/gateway"

    def sign(self, drafts: Sequence[Draft]) -> list[OutRecord]:
        """The drafts as records, under one signature."""
        unsigned = [_unsigned(draft, self.source) for draft in drafts]
        leaves = [_leaf(record.key, dict(record.headers), record.value) for record in unsigned]
        proofs = sign_batch(self.kid, self.private_key, leaves)
        return [
            record._replace(headers=(*record.headers, ("placet_signature", proof)))
            for record, proof in zip(unsigned, proofs, strict=True)
        ]


@dataclass(slots=True)
class Verifier:
    """Turns command records into commands whose sender is verified.

    Attributes:
        public_keys: the gateways' keys.
        check_token: verifies the token of a service that produces to Kafka itself.
        decider_keys: the deciders' keys, trusted only for commands that deciders send.
    """

    public_keys: PublicKeys
    check_token: TokenCheck
    decider_keys: PublicKeys = no_keys
    _verified: Verified = field(default_factory=lambda: Verified(VERIFIED_MAX), init=False)

    def read(self, raw: RawRecord) -> Command:
        """The command in a record.

        Raises:
            UnreadableRecord: unreadable bytes, or a sender that cannot be verified.
        """
        headers = headers_by_name(raw.headers)
        command_id = _command_id(headers)
        actor, signatory = self._actor(raw, headers)
        body = codec.decode(raw.value)
        _check_labels(raw, headers, actor, body)
        _check_scope(headers, actor, body, signatory)
        _check_id(command_id, body, signatory)
        return Command(
            body=_with_dwell(body, headers),
            actor=actor,
            command_id=command_id,
            digest=command_digest(raw.value),
            key=raw.key,
            partition=raw.partition,
            offset=raw.offset,
            at_ms=raw.timestamp_ms,
            by_token=signatory == "" and not isinstance(body, ExpireDue),
            trace=trace_in(headers),
        )

    def _actor(self, raw: RawRecord, headers: Mapping[str, bytes]) -> tuple[Actor, Signatory]:
        if "placet_signature" in headers:
            signatory = self._check_signature(raw, headers)
            return _actor_of(headers["placet_envelope"]), signatory
        if "placet_token" in headers:
            try:
                return self.check_token(headers["placet_token"].decode(), raw.timestamp_ms), ""
            except ValueError as error:
                raise UnreadableRecord("unbelievable", f"the token was refused: {error}") from error
        if _says_nudge(raw, headers):
            return _timer_of(raw.key), ""
        raise UnreadableRecord("unbelievable", "neither signed by a gateway nor sent with a token")

    def _check_signature(self, raw: RawRecord, headers: Mapping[str, bytes]) -> Signatory:
        try:
            proof = parse_proof(headers["placet_signature"])
            signed = proof.signed_bytes(_leaf(raw.key, headers, raw.value))
        except (KeyError, ValueError) as error:
            raise UnreadableRecord("unbelievable", "the gateway's signature is malformed") from error
        # Looked up each time: a key that was withdrawn is no longer trusted.
        key, signatory = self._key_of(proof.kid)
        if key is None or signed is None:
            raise UnreadableRecord("unbelievable", "signed with an unknown key, or not part of its batch")
        if not self._verified.fits(proof.kid, key, proof.signature, signed):
            raise UnreadableRecord("unbelievable", "the gateway's signature is not valid")
        return signatory

    def _key_of(self, kid: str) -> tuple[Ed25519PublicKey | None, Signatory]:
        key = self.public_keys(kid)
        if key is not None:
            return key, "gateway"
        return self.decider_keys(kid), "decider"


def nudge(body: ExpireDue, name: str, key: bytes) -> OutRecord:
    """The timer's nudge, unsigned.

    Nothing depends on its sender, since no other command can have its id: it only makes the writer look at the log's
    time, and any other command expires what is due at that time as well.
    """
    headers: Headers = (
        ("ce_specversion", b"1.0"),
        ("ce_id", f"{TIMER_IDS}{name}".encode()),
        ("ce_type", NUDGE_TYPE),
        ("ce_source", b"/placet/timer"),
        ("ce_subject", key),
    )
    return OutRecord(key, codec.encode(body), headers)


def command_digest(value: bytes) -> str:
    """The digest of a command's body: the first 32 hex characters of its SHA-256."""
    return hashlib.sha256(value).hexdigest()[:32]


def _says_nudge(raw: RawRecord, headers: Mapping[str, bytes]) -> bool:
    """Returns True if a record is marked as a nudge: by `ce_type`, or without that header by its schema id."""
    said = headers.get("ce_type")
    return codec.is_of(raw.value, ExpireDue) if said is None else said == NUDGE_TYPE


def _timer_of(key: bytes) -> Actor:
    try:
        tenant, project, _ = split_execution_key(key)
    except ValueError as error:
        raise UnreadableRecord("wrong_key", "not an execution's key") from error
    return system_actor(tenant, project)


def _unsigned(draft: Draft, source: bytes) -> OutRecord:
    headers = (*_labels(draft, source), ("placet_envelope", _envelope_of(draft.actor)))
    if draft.dwell_ms is not None:
        headers = (*headers, ("placet_dwell_ms", b"%d" % draft.dwell_ms))
    if draft.trace:
        headers = (*headers, (TRACEPARENT, draft.trace.encode()))
    return OutRecord(draft.key, codec.encode(draft.body) if draft.value is None else draft.value, headers)


@lru_cache(maxsize=1024)
def _envelope_of(actor: Actor) -> bytes:
    # Without a user it is what deciders of earlier versions accept, too.
    return actor.model_dump_json(exclude=None if actor.user else {"user"}).encode()


def _labels(draft: Draft, source: bytes) -> Headers:
    return (
        ("ce_specversion", b"1.0"),
        ("ce_id", draft.command_id.encode()),
        ("ce_type", codec.SUBJECTS[type(draft.body)].encode()),
        ("ce_source", source),
        ("ce_subject", draft.key),
        ("placet_tenant", draft.actor.tenant.encode()),
    )


def _leaf(key: bytes, headers: Mapping[str, bytes], value: bytes) -> bytes:
    parts = (key, headers["ce_id"], headers["placet_envelope"], value)
    return merkle.leaf_hash(b"".join(len(part).to_bytes(4, "big") + part for part in parts))


def _command_id(headers: Mapping[str, bytes]) -> str:
    try:
        command_id = headers["ce_id"].decode("ascii")
    except (KeyError, UnicodeDecodeError) as error:
        raise UnreadableRecord("malformed", "no readable ce_id header") from error
    if not is_client_id(command_id):
        raise UnreadableRecord("malformed", "ce_id must be 1 to 128 of A-Za-z0-9._:-")
    return command_id


@lru_cache(maxsize=1024)
def _actor_of(envelope: bytes) -> Actor:
    try:
        return Actor.model_validate_json(envelope)
    except ValidationError as error:
        raise UnreadableRecord("unbelievable", "the envelope is not an actor") from error


def _check_labels(raw: RawRecord, headers: Mapping[str, bytes], actor: Actor, body: Message) -> None:
    """Refuse a record if the headers that others route and filter by contradict the record itself."""
    if type(body) not in _COMMAND_TYPES:
        raise UnreadableRecord("malformed", "an event is on a commands topic")
    labels = {
        "ce_type": codec.SUBJECTS[type(body)].encode(),
        "ce_subject": raw.key,
        "placet_tenant": actor.tenant.encode(),
    }
    for name, expected in labels.items():
        if headers.get(name, expected) != expected:
            raise UnreadableRecord("malformed", f"{name} does not match the record")


def _with_dwell(body: Message, headers: Mapping[str, bytes]) -> Message:
    """A decision with the time that its gateway measured; earlier gateways wrote it into the body.

    The time is advisory: a malformed one counts as unknown, and the decision is kept.
    """
    text = headers.get("placet_dwell_ms", b"")
    if not isinstance(body, DecideHold) or body.dwell_ms is not None or not _COUNT.fullmatch(text):
        return body
    dwell_ms = int(text)
    return body if dwell_ms > COUNT_MAX else body.model_copy(update={"dwell_ms": dwell_ms})


def _check_scope(headers: Mapping[str, bytes], actor: Actor, body: Message, signatory: Signatory) -> None:
    if signatory == "decider":
        _check_carried(actor, body)
        return
    if isinstance(body, DECIDERS_ALONE):
        raise UnreadableRecord("unbelievable", f"only a decider's key may sign {type(body).__name__}")
    # Not actor.has(), which gives an admin every role: an admin is not the timer.
    if "system" in actor.roles and not isinstance(body, ExpireDue):
        raise UnreadableRecord("unbelievable", "the timer may only send expiries")
    if "placet_signature" in headers or "placet_token" not in headers:
        return
    if actor.agent is None or not isinstance(body, BY_TOKEN):
        raise UnreadableRecord(
            "unbelievable",
            "a record may carry only an agent's token, and only to propose, consume, renew, report or request",
        )


def _check_id(command_id: str, body: Message, signatory: Signatory) -> None:
    """Refuse a predictable id from another sender, whose trace would then be taken for the answer to that id."""
    if isinstance(body, ExpireDue) != command_id.startswith(TIMER_IDS):
        raise UnreadableRecord(
            "unbelievable", f"ids {TIMER_IDS}… are for the timer's nudges only, and a nudge has no other id"
        )
    if command_id.startswith(DECIDER_IDS) and signatory != "decider":
        raise UnreadableRecord("unbelievable", f"only a decider's key may sign ids {DECIDER_IDS}…")


def _check_carried(actor: Actor, body: Message) -> None:
    if (actor.subject, actor.roles, actor.agent) != (DECIDER, ("system",), None):
        raise UnreadableRecord("unbelievable", "a decider's key may sign only for deciders")
    if not isinstance(body, BY_DECIDER):
        raise UnreadableRecord("unbelievable", f"a decider's key may not sign {type(body).__name__}")
