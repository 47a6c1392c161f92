"""A payment from start to end over plain Kafka; prints each record that is sent, and each that answers it.

python payment.py TENANT EXECUTION_ID    with PLACET_KAFKA, PLACET_DATA_DIR and PLACET_TOKEN (of the agent `billing`)

Two programs in one: a *service* that proposes, consumes and reports with its agent's token, and a *door* with a
gateway's key, which starts and ends the execution and vouches for the person who decides there.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import textwrap
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rfc8785
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from contract import Deciders, Gateway, Record, Schemas, client_settings, counting, partition_of

COMMANDS, EVENTS = "placet.commands", "placet.executions"
PROJECT, AGENT = "default", "billing"
REFUSALS = ("CommandRefused", "DecisionRefused")
WITHIN_S = 60


@dataclass
class Conversation:
    """Commands about one execution, and the events that answer them."""

    tenant: str
    execution_id: str
    schemas: Schemas
    producer: AIOKafkaProducer
    partition: int
    events: AsyncIterator[Record]

    @property
    def key(self) -> str:
        """The key of every record about the execution."""
        return f"{self.tenant}/{PROJECT}/{self.execution_id}"

    async def ask(
        self, ce_id: str, command: str, fields: dict[str, Any], proof: Token | Voucher, until: str
    ) -> dict[str, Any]:
        """Send a command, read on to the event that it must cause, and return that event's fields."""
        value = self.schemas.frame(f"placet.commands.{command}", fields)
        headers = {
            "ce_specversion": "1.0",
            "ce_id": ce_id,
            "ce_type": f"placet.commands.{command}",
            "ce_source": "/examples/plain-kafka",
            "ce_subject": self.key,
            "placet_tenant": self.tenant,
        }
        headers |= proof.headers(self.key.encode(), ce_id, value)
        wire = [(name, text.encode()) for name, text in headers.items()]
        # If the outcome is unknown, send the same again, under the same ce_id.
        await self.producer.send_and_wait(COMMANDS, value, self.key.encode(), self.partition, headers=wire)
        show(Record(COMMANDS, self.key, headers, *self.schemas.unframe(value)))
        digest = hashlib.sha256(value).hexdigest()[:32]
        async with asyncio.timeout(WITHIN_S):
            return await self._answer(ce_id, digest, until)

    async def _answer(self, ce_id: str, digest: str, until: str) -> dict[str, Any]:
        async for record in self.events:
            if record.key != self.key:
                continue
            show(record)
            cause = record.headers["placet_command_id"], record.headers["placet_command_digest"]
            # Under one ce_id one value was decided; the digest shows whether it was this one.
            if cause == (ce_id, digest) and record.type == until:
                return record.fields
            if cause == (ce_id, digest) and record.type in REFUSALS:
                sys.exit(f"{ce_id} was refused: {record.fields['code']}")
        raise ConnectionError("the log ended")


@dataclass(frozen=True)
class Token:
    """A service's proof: its agent's token."""

    token: str

    def headers(self, key: bytes, ce_id: str, value: bytes) -> dict[str, str]:
        """The headers to add to a command."""
        return {"placet_token": self.token}


@dataclass(frozen=True)
class Voucher:
    """A gateway's proof: the caller that it has authenticated, and its signature over that and the command."""

    gateway: Gateway
    envelope: dict[str, Any]

    def headers(self, key: bytes, ce_id: str, value: bytes) -> dict[str, str]:
        """The headers to add to a command."""
        envelope = json.dumps(self.envelope, separators=(",", ":"))
        signature = self.gateway.sign(key, ce_id, envelope.encode(), value)
        return {"placet_envelope": envelope, "placet_signature": signature}


async def pay(log: Conversation, service: Token, gateway: Gateway) -> None:
    """Run the sequence that docs/log-contract.md shows."""
    scope = {"tenant": log.tenant, "project": PROJECT}
    bot = Voucher(gateway, {"subject": "billing-bot", **scope, "roles": ["agent"], "agent": AGENT})
    anna = Voucher(gateway, {"subject": "anna", **scope, "roles": ["reviewer"], "agent": None})

    started = {"agent": AGENT, "request": "Pay the March invoice"}
    await log.ask("start", "StartExecution", started, bot, until="ExecutionStarted")

    arguments = canonical({"recipient": "GB29NWBK60161331926819", "amount": 98.7})
    proposal = {"call_id": "pay-1", "tool": "send_money", "arguments": arguments, "reason": "due on Friday"}
    hold = await log.ask("propose", "ProposeToolCall", proposal, service, until="HoldOpened")

    # Here a person is shown the call, and approves exactly this digest and this view.
    word = {name: hold[name] for name in ("hold_id", "digest", "view_digest")} | {"decision": "approve"}
    released = await log.ask("approve", "DecideHold", word, anna, until="ToolCallReleased")

    attempt = {"call_id": "pay-1", "attempt_id": str(uuid.uuid4())}
    consume = {**attempt, "digest": released["digest"]}
    await log.ask(f"consume-{attempt['attempt_id']}", "ConsumeGrant", consume, service, until="GrantConsumed")

    # Only now, only once, and only what was released: an edit can have changed it.
    print("pay", released["arguments"], "\n")
    report = {**attempt, "outcome": "succeeded", "output": canonical({"paid": True}), "duration_ms": 120}
    await log.ask("report", "ReportResult", report, service, until="ToolCallSucceeded")
    await log.ask("complete", "CompleteExecution", {}, bot, until="ExecutionCompleted")


@asynccontextmanager
async def conversation(
    servers: str, data_dir: Path, tenant: str, execution_id: str
) -> AsyncIterator[Conversation]:
    """Connect everything that a conversation needs."""
    settings = client_settings(data_dir / "kafka" / "clients" / "gateway.json")
    schemas, deciders = Schemas(), Deciders.load(data_dir / "keys")
    producer = AIOKafkaProducer(bootstrap_servers=servers, acks="all", enable_idempotence=True, **settings)
    reader = AIOKafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="none", enable_auto_commit=False, **settings
    )
    async with producer, reader:
        count = len(await producer.partitions_for(COMMANDS))
        number = partition_of(f"{tenant}/{PROJECT}/{execution_id}".encode(), count)
        events = counting(reader, TopicPartition(EVENTS, number), schemas, deciders)
        yield Conversation(tenant, execution_id, schemas, producer, number, events)


def canonical(value: Any) -> str:
    """JSON as RFC 8785 writes it, the form of JSON in text fields."""
    return rfc8785.dumps(value).decode()


def show(record: Record) -> None:
    """Print a record: its topic and key, its headers, its type and fields."""
    headers = "  ".join(f"{name}={value}" for name, value in record.headers.items())
    print(f"{record.topic}  {record.key}")
    for text in (headers, f"{record.type} {json.dumps(record.fields, ensure_ascii=False)}"):
        print(
            textwrap.indent(textwrap.fill(text, 104, break_long_words=False, break_on_hyphens=False), "    ")
        )
    print(flush=True)


async def main(tenant: str, execution_id: str) -> None:
    """Connect, and pay."""
    data_dir = Path(os.environ["PLACET_DATA_DIR"])
    service, gateway = Token(os.environ["PLACET_TOKEN"]), Gateway.load(data_dir / "keys")
    async with conversation(os.environ["PLACET_KAFKA"], data_dir, tenant, execution_id) as log:
        await pay(log, service, gateway)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
