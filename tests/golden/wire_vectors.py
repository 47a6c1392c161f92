"""Test vectors of the wire for clients in other languages: `python -m tests.golden.wire_vectors` writes them once.

`wire.3.json` holds inputs and what they must come to: partitions, derived ids, digests, an event's record and a
batch of signed commands. docs/log-contract.md explains each. Once written it is never written over: where a message
of it gains a field, a file of the next number is added, and the records of all of them stay readable.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from schemas import codec
from schemas.actor import Actor
from schemas.canonical import call_digest, canonical, tool_version_of
from schemas.commands import DecideHold, ProposeToolCall
from schemas.envelope import Draft, Signer, command_digest
from schemas.events.holds import HoldClaimed
from schemas.headers import event_record
from schemas.ids import derived_id, event_id
from schemas.message import Message
from schemas.record import EventMeta, OutRecord
from schemas.topics import murmur2, partition_of

FILE = Path(__file__).parent / "wire.3.json"
EVER_SHIPPED = (*(Path(__file__).parent / name for name in ("wire.json", "wire.2.json")), FILE)
KEY = b"acme/default/invoice-march"
KEYS = [KEY, "acme/default/größer".encode(), b"a", b"abcdefg"]
ID_PARTS: list[list[str | int]] = [
    ["hold", "acme", "default", "invoice-march", "call-1", 1],
    ["hold", "acme", "default", "invoice-march", "request", "ask-1"],
    ["event", "6f1c1f0e-7c3e-4d3c-9d0c-0d4c8d3c1a11", 55, 0],
    [],
    ["größer"],
]
ARGUMENTS = {"recipient": "GB29 größer", "amount": 98.70, "dates": [1, -0.0, 1e21], "€": None, "😀": True}
TOOL = {"name": "send_money", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": True}}
SEED = bytes(range(32))
ANN = Actor(subject="ann", tenant="acme", project="default", roles=("reviewer",))
BOT = Actor(subject="bot-token", tenant="acme", project="default", roles=("agent",), agent="billing-bot")


def vectors() -> dict[str, Any]:
    """What today's code makes of the inputs."""
    return {
        "partitions_of_12": [
            {"key": key.decode(), "murmur2": murmur2(key), "partition": partition_of(key, 12)} for key in KEYS
        ],
        "derived_ids": [{"parts": parts, "id": derived_id(*parts)} for parts in ID_PARTS],
        "digest": _digest(),
        "event": _event(),
        "signed_batch": _signed_batch(),
    }


def _digest() -> dict[str, Any]:
    version, arguments = tool_version_of(TOOL), canonical(ARGUMENTS)
    return {
        "definition": TOOL,
        "tool_version": version,
        "arguments": arguments,
        "tenant": "acme",
        "agent": "billing-bot",
        "tool": "send_money",
        "digest": call_digest("acme", "billing-bot", "send_money", version, arguments),
        "digest_when_the_tool_is_unknown": call_digest("acme", "billing-bot", "send_money", "", arguments),
    }


def _event() -> dict[str, Any]:
    command_id = "6f1c1f0e-7c3e-4d3c-9d0c-0d4c8d3c1a11"
    meta = EventMeta(event_id(command_id, 55, 0), 1_760_000_000_123, 55, 3, command_id, "d" * 32, "acme", 17)
    body = HoldClaimed(hold_id="h-1", by="ann")
    return {"body": body.model_dump(mode="json"), "record": _as_text(event_record(body, meta, KEY))}


def _signed_batch() -> dict[str, Any]:
    key = Ed25519PrivateKey.from_private_bytes(SEED)
    bodies: list[tuple[Message, Actor]] = [
        (ProposeToolCall(call_id="call-1", tool="send_money", arguments=canonical(ARGUMENTS)), BOT),
        (DecideHold(hold_id="h-1", decision="approve", digest="d" * 64), ANN),
        (DecideHold(hold_id="h-2", decision="edit", edited_arguments="{}"), ANN),
    ]
    drafts = [Draft(body, actor, f"command-{at}", KEY) for at, (body, actor) in enumerate(bodies)]
    return {
        "kid": "gateway-1",
        "private_key": SEED.hex(),
        "public_key": key.public_key().public_bytes_raw().hex(),
        "commands": [
            {
                "body": draft.body.model_dump(mode="json"),
                "command_digest": command_digest(codec.encode(draft.body)),
                "record": _as_text(record),
            }
            for draft, record in zip(drafts, Signer("gateway-1", key).sign(drafts), strict=True)
        ],
    }


def _as_text(record: OutRecord) -> dict[str, Any]:
    headers = {name: value.decode() for name, value in record.headers}
    return {"key": record.key.decode(), "value_hex": record.value.hex(), "headers": headers}


if __name__ == "__main__":
    if FILE.exists():
        raise SystemExit(
            f"{FILE.name} is there, and is never written over: other people's clients rest on it."
        )
    FILE.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
