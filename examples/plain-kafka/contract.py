"""The rules of docs/log-contract.md, for a program with a Kafka client, Avro and Ed25519, and no code of Placet's."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiokafka
import fastavro
import msgspec
from aiokafka.helpers import create_ssl_context
from aiokafka.partitioner import murmur2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

AVRO = Path(__file__).resolve().parents[2] / "schemas" / "avro"
CLAIM = "placet.events.WriterClaimed"


class Schemas:
    """The schema registry, read from the repository; a gateway serves the same at /subjects and /schemas."""

    def __init__(self, directory: Path = AVRO) -> None:
        self._by_id: dict[int, tuple[str, Any]] = {}
        self._newest: dict[str, int] = {}
        for subject, versions in json.loads((directory / "manifest.json").read_text()).items():
            for row in versions:
                schema = fastavro.parse_schema(json.loads((directory / row["file"]).read_text()))
                self._by_id[row["id"]] = subject, schema
                self._newest[subject] = row["id"]

    def frame(self, subject: str, fields: dict[str, Any]) -> bytes:
        """Encode a value: one byte 0, the schema's id, the Avro body. Omitted fields have their defaults."""
        body, number = io.BytesIO(), self._newest[subject]
        fastavro.schemaless_writer(body, self._by_id[number][1], fields, strict_allow_default=True)
        return b"\x00" + number.to_bytes(4, "big") + body.getvalue()

    def unframe(self, value: bytes) -> tuple[str, dict[str, Any]]:
        """Decode a value: its subject and its fields."""
        subject, schema = self._by_id[int.from_bytes(value[1:5], "big")]
        body = io.BytesIO(value[5:])
        fields: Any = fastavro.schemaless_reader(body, schema, None)
        if value[0] != 0 or body.read(1):
            raise ValueError("not one framed Avro body and nothing after it")
        return subject, fields


@dataclass(frozen=True)
class Record:
    """A record of the log, decoded."""

    topic: str
    key: str
    headers: dict[str, str]
    subject: str
    fields: dict[str, Any]

    @property
    def type(self) -> str:
        """The subject without its namespace."""
        return self.subject.rpartition(".")[2]


def client_settings(file: Path) -> dict[str, Any]:
    """Keyword arguments for aiokafka, from a file in the format of --kafka-settings."""
    found = json.loads(file.read_text())
    tls = {name.removeprefix("ssl_"): found.pop(name) for name in list(found) if name.startswith("ssl_")}
    if "SSL" in found["security_protocol"].split("_")[-1]:
        found["ssl_context"] = create_ssl_context(**tls)
    return dict(found)


def partition_of(key: bytes, count: int) -> int:
    """The partition of a key: Kafka's Java default."""
    return int((murmur2(key) & 0x7FFFFFFF) % count)


@dataclass(frozen=True)
class Gateway:
    """A key whose public half is in `gateways.json`: its holder vouches for the callers that it names."""

    kid: str
    key: Ed25519PrivateKey

    @classmethod
    def load(cls, keys: Path) -> Gateway:
        """The installation's own key; another program would have another key, and its own line in the file."""
        key = load_pem_private_key((keys / "gateway.pem").read_bytes(), None)
        assert isinstance(key, Ed25519PrivateKey)
        raw = base64.b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()
        known = json.loads((keys / "gateways.json").read_text())
        return cls(next(kid for kid, public in known.items() if public == raw), key)

    def sign(self, key: bytes, ce_id: str, envelope: bytes, value: bytes) -> str:
        """The header `placet_signature` of a command that is sent alone: a tree of one leaf with an empty path."""
        parts = (key, ce_id.encode(), envelope, value)
        leaf = hashlib.sha256(b"\x00" + b"".join(len(part).to_bytes(4, "big") + part for part in parts))
        signed = b"placet.command-batch.v1\x00" + (1).to_bytes(4, "big") + leaf.digest()
        return f"{self.kid}.1.0..{_b64(self.key.sign(signed))}"


@dataclass(frozen=True)
class Deciders:
    """Verifies which records of an events topic a decider signed for their offset."""

    keys: dict[str, Ed25519PublicKey]
    signed_from: dict[str, list[int | list[int]]]

    @classmethod
    def load(cls, keys: Path) -> Deciders:
        """Read the files `deciders.json` and `signed-from.json`."""
        rows = json.loads((keys / "deciders.json").read_text()).items()
        publics = {kid: Ed25519PublicKey.from_public_bytes(base64.b64decode(raw)) for kid, raw in rows}
        return cls(publics, json.loads((keys / "signed-from.json").read_text()))

    def signed(self, record: Any) -> bool:
        """The four steps of the log contract."""
        since = self.signed_from.get(record.topic, [])
        entry = since[record.partition] if record.partition < len(since) else 0
        # Signed from the first offset on, not signed from the second on, signed again from the third on.
        places = entry if isinstance(entry, list) else [entry]
        if sum(place <= record.offset for place in places) % 2 == 0:
            return True
        try:
            *labels, (name, proof) = record.headers
            kid, size, index, path, signature = proof.decode().rsplit(".", 4)
            if name != "placet_signature":
                return False
            leaf = msgspec.msgpack.encode([record.key, labels, record.value])
            root = _root(hashlib.sha256(b"\x00" + leaf).digest(), int(index), int(size), _unb64(path))
            base = -1 if ("ce_type", CLAIM.encode()) in labels else record.offset - int(index)
            topic = record.topic.encode()
            place = len(topic).to_bytes(2, "big") + topic + record.partition.to_bytes(4, "big")
            place += base.to_bytes(8, "big", signed=True)
            signed = b"placet.event-batch.v1\x00" + place + int(size).to_bytes(4, "big") + root
            self.keys[kid].verify(_unb64(signature), signed)
        except (ValueError, KeyError, OverflowError, InvalidSignature):
            return False
        return True


async def counting(
    consumer: aiokafka.AIOKafkaConsumer,
    partition: aiokafka.TopicPartition,
    schemas: Schemas,
    deciders: Deciders,
) -> AsyncIterator[Record]:
    """The events of a partition that count, from its first on without end.

    A service that runs for long stores offset, claim and event id together with the result of an event, and continues
    from there.
    """
    consumer.assign([partition])
    await consumer.seek_to_beginning(partition)
    claim = -1
    async for raw in consumer:
        try:
            headers = {name: value.decode() for name, value in raw.headers}
            subject, fields = schemas.unframe(raw.value)
            term = int(headers["placet_term"])
        except (LookupError, ValueError, TypeError, EOFError):
            continue  # Not an event. A reader that must miss none stops here, or sets it aside and alerts.
        if (fields["after"] if subject == CLAIM else term) != claim or (claim == -1 and subject != CLAIM):
            continue
        if not deciders.signed(raw):
            continue
        if subject == CLAIM:
            claim = raw.offset
        else:
            yield Record(raw.topic, raw.key.decode(), headers, subject, fields)


def _root(hash_: bytes, index: int, size: int, path: bytes) -> bytes:
    """The root to which an audit path leads (RFC 9162, 2.1.3.2)."""
    node, last = index, size - 1
    if not 0 <= index < size or len(path) % 32:
        raise ValueError("no place in a tree")
    for start in range(0, len(path), 32):
        sibling = path[start : start + 32]
        if last == 0:
            raise ValueError("the path is too long")
        if node & 1 or node == last:
            hash_ = hashlib.sha256(b"\x01" + sibling + hash_).digest()
            while node and not node & 1:
                node, last = node >> 1, last >> 1
        else:
            hash_ = hashlib.sha256(b"\x01" + hash_ + sibling).digest()
        node, last = node >> 1, last >> 1
    if last:
        raise ValueError("the path is too short")
    return hash_


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
