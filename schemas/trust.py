"""The records on `placet.trust`: statistics of one source partition, and the offset that they reach.

Three kinds of record, all compacted by key, on the partition of the same number as their source:

* `TrustPart`, key `{tenant}/{project}/{agent}/{tool}/{partition}`: the statistics of one partition of the log on how
  an agent of a project uses a tool;
* `ClassPart`, key `{tenant}/{project}/{agent}/{tool}/{class}/{partition}`: the newest facts in one partition of the
  log about the agent's calls of one class, which the score is made from (`schemas.trust_score`);
* `TrustCheckpoint`, key `_log/{partition}`: written after the parts of its round, which it closes. The parts
  of its partition are complete if none reaches beyond it and their evidence adds up to its own: the six counts
  of every `TrustPart` and the `counted` of every `ClassPart`.

Values are canonical JSON (RFC 8785), because they are statistics that anyone can read, not facts of the log.
Readers ignore unknown fields.
"""

from typing import Annotated, Literal
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schemas.canonical import MalformedJson, canonical, parse_strict
from schemas.headers import rfc3339
from schemas.ids import LOG_KEYS, derived_id
from schemas.record import OutRecord, RawRecord, UnreadableRecord

SOURCE = b"/placet/trust"
# The form of the count: a checkpoint of another form is not continued, and everything is counted again.
COUNT_FORM = 5

# Stands for the class of contrary facts about calls in none: only what they say of values counts.
UNCLASSED = "~"

FactKind = Literal[
    "approval", "edit", "rejection", "correction", "withdrawal", "revocation", "failure", "impact"
]


NumberRange = Annotated[tuple[str, float, float], Field(strict=False)]
# What RFC 3339 can write: the years 1 to 9999, in ms since the epoch.
EARLIEST_MS, LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
TimeMs = Annotated[int, Field(ge=EARLIEST_MS, le=LATEST_MS)]
# More facts than any log has; sums over thousands of partitions are still numbers that JSON can carry.
COUNT_MAX = 2**40
Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]
# The digest of a value, what facts against it were worth together when the newest of them was new, and its time.
AgainstValue = Annotated[
    tuple[str, Annotated[float, Field(ge=0, le=COUNT_MAX, allow_inf_nan=False)], TimeMs], Field(strict=False)
]
# Stands for every value.
ANY = ""


class _Statistics(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class TrustPart(_Statistics):
    """Counts of one agent's calls of one tool in one source partition.

    Attributes:
        project: The project of the calls. Empty in parts of earlier versions, which had no trust per project: these
            count for nobody, and only add up to the evidence of their checkpoint.
        successes: Calls that ran and succeeded; likewise `failures`.
        unknowns: Calls with an unknown outcome.
        approvals: Holds that people resolved by approving as proposed; likewise `edits` and `rejections`.
        last_evidence_at_ms: The log's time of the newest fact, from which its weight decays.
        through_offset: Offset of the newest fact; nothing up to it is counted again.
        record_id: Identity of that record.
        term: The claim in force there.
        topic_id: The id of the topic of the facts; a topic recreated under the same name has another.
    """

    type: Literal["TrustPart"] = "TrustPart"
    tenant: str
    agent: str
    tool: str
    project: str = ""
    partition: int
    successes: Count = 0
    failures: Count = 0
    unknowns: Count = 0
    approvals: Count = 0
    edits: Count = 0
    rejections: Count = 0
    last_evidence_at_ms: TimeMs
    through_offset: int
    record_id: str
    term: int
    topic_id: str

    @property
    def evidence(self) -> int:
        """The number of facts that it counts."""
        outcomes = self.successes + self.failures + self.unknowns
        return outcomes + self.approvals + self.edits + self.rejections

    @property
    def key(self) -> bytes:
        """Its Kafka key."""
        return part_key(self.tenant, self.project, self.agent, self.tool, self.partition)


class ClassFact(_Statistics):
    """One fact about a call of a class.

    Attributes:
        offset: Its record in the part's source partition.
        at_ms: The log's time of that record.
        kind: What it says. A `correction` is the edit of a call that trust would have released unchanged, a
            `withdrawal` is its cancellation before people had decided.
        by: The accounts whose word it is; none for a failure.
        requester: The account that proposed the call.
        values: Of an approval or a contrary fact, the digests of the call's identifying values
            (`schemas.call_history`).
        numbers: Of an approval, each path of the arguments with numbers, and the least and the greatest of them.
    """

    offset: int
    at_ms: TimeMs
    kind: FactKind
    by: Annotated[tuple[str, ...], Field(strict=False)] = ()
    requester: str = ""
    values: Annotated[tuple[str, ...], Field(strict=False)] = ()
    numbers: Annotated[tuple[NumberRange, ...], Field(strict=False)] = ()


class ClassPart(_Statistics):
    """The newest facts about one agent's calls of one class in one source partition.

    Attributes:
        trust_class: The class, as verdicts record it (`trust_class`).
        facts: At least one, in the order of their offsets; of many, the newest of each group
            (`schemas.trust_score.kept`).
        begins_at: Offset of its first fact, which is no failure; no failure before it counts for the class.
        counted: How many facts it was given so far, of which `facts` may be the newest only.
        against: The values of the contrary facts that are not in `facts` any more
            (`schemas.trust_score.against_of`); `ANY` if they were too many to keep.

    The other fields are those of `TrustPart`.
    """

    type: Literal["ClassPart"] = "ClassPart"
    tenant: str
    project: str
    agent: str
    tool: str
    trust_class: str
    partition: int
    facts: Annotated[tuple[ClassFact, ...], Field(strict=False, min_length=1)]
    begins_at: int
    counted: Count
    against: Annotated[tuple[AgainstValue, ...], Field(strict=False)] = ()
    through_offset: int
    record_id: str
    term: int
    topic_id: str

    @property
    def evidence(self) -> int:
        """The number of facts that it counts."""
        return self.counted

    @property
    def last_evidence_at_ms(self) -> int:
        """The log's time of the newest fact."""
        return self.facts[-1].at_ms

    @property
    def key(self) -> bytes:
        """Its Kafka key."""
        return class_key(self.tenant, self.project, self.agent, self.tool, self.trust_class, self.partition)


class TrustCheckpoint(_Statistics):
    """How far a source partition has been counted, and where counting can resume.

    Attributes:
        through_offset: Offset of the last record read.
        record_id: Identity of that record.
        term: The claim in force after it.
        topic_id: See `TrustPart`.
        at_ms: The log's time of the newest record that counted, of the types that trust follows.
        evidence: What was counted up to there: the sum, over all parts of the partition, of the six counts of each
            `TrustPart` and of `counted` of each `ClassPart`. A fact that counts for the tool and for its class is
            in it twice.
        unreadable: Records that could not be read, up to there.
        resume_offset: Where reading must resume so that it covers every call still open: the proposal of the
            oldest one, or the offset after `through_offset`.
        resume_term: The claim in force before the record at `resume_offset`.
        form: The form of the count (`COUNT_FORM`); 1 in checkpoints of versions that did not count by class.
    """

    type: Literal["TrustCheckpoint"] = "TrustCheckpoint"
    partition: int
    through_offset: int
    record_id: str
    term: int
    topic_id: str
    at_ms: TimeMs
    evidence: Count
    unreadable: Count
    resume_offset: int
    resume_term: int
    form: int = 1

    @property
    def key(self) -> bytes:
        """Its Kafka key."""
        return checkpoint_key(self.partition)


AnyPart = TrustPart | ClassPart
TrustRecord = AnyPart | TrustCheckpoint
_MODELS: dict[object, type[TrustRecord]] = {
    "TrustPart": TrustPart,
    "ClassPart": ClassPart,
    "TrustCheckpoint": TrustCheckpoint,
}


def part_key(tenant: str, project: str, agent: str, tool: str, partition: int) -> bytes:
    """`{tenant}/{project}/{agent}/{tool}/{partition}`, each percent-encoded so that keys are unique.

    Without a project it is the key of earlier versions: `{tenant}/{agent}/{tool}/{partition}`.
    """
    return _key((tenant, project, agent, tool) if project else (tenant, agent, tool), partition)


def class_key(tenant: str, project: str, agent: str, tool: str, trust_class: str, partition: int) -> bytes:
    """`{tenant}/{project}/{agent}/{tool}/{class}/{partition}`, each percent-encoded."""
    return _key((tenant, project, agent, tool, trust_class), partition)


def _key(names: tuple[str, ...], partition: int) -> bytes:
    return "/".join([*(quote(name, safe=":") for name in names), str(partition)]).encode()


def names_of_key(key: bytes) -> tuple[str, ...]:
    """The names in a part's key, without its partition."""
    return tuple(unquote(name.decode("utf-8", "replace")) for name in key.split(b"/")[:-1])


def checkpoint_key(partition: int) -> bytes:
    """The key of a source partition's checkpoint."""
    return LOG_KEYS + b"%d" % partition


def encode(record: TrustRecord) -> bytes:
    """A record's value: canonical JSON."""
    return canonical(record.model_dump()).encode()


def decode(value: bytes) -> TrustRecord:
    """The record in a value.

    Raises:
        UnreadableRecord: foreign bytes, or not one of the three records.
    """
    try:
        fields = parse_strict(value)
        model = _MODELS[fields["type"]]
        return model.model_validate(fields)
    except (MalformedJson, ValidationError, KeyError, TypeError) as error:
        raise UnreadableRecord("malformed", f"not a trust record: {str(error)[:200]}") from error


def trust_record(record: TrustRecord) -> OutRecord:
    """A record as Kafka carries it; the same content always has the same id."""
    at_ms = record.at_ms if isinstance(record, TrustCheckpoint) else record.last_evidence_at_ms
    record_id = derived_id("trust", record.topic_id, record.key.decode(), record.through_offset)
    headers = (
        ("ce_specversion", b"1.0"),
        ("ce_id", record_id.encode()),
        ("ce_type", f"placet.trust.{record.type}".encode()),
        ("ce_source", SOURCE),
        ("ce_subject", record.key),
        ("ce_time", rfc3339(at_ms).encode()),
        ("content-type", b"application/json"),
        ("placet_term", b"%d" % record.term),
    )
    return OutRecord(record.key, encode(record), headers)


def read_trust(raw: RawRecord) -> TrustRecord:
    """The statistics in a record of `placet.trust`.

    Raises:
        UnreadableRecord: see `decode`; or the record has another key or partition than its value says.
    """
    record = decode(raw.value)
    if (record.key, record.partition) != (raw.key, raw.partition):
        raise UnreadableRecord("malformed", f"a record of {record.key!r} is stored under {raw.key!r}")
    return record
