"""The log's half of the AsyncAPI document: topics, keys, headers, retention and writers, from the Avro registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from gateway.docs_gen.schemas import summary_of
from schemas.codec import SUBJECTS
from schemas.commands import COMMANDS, DefinitionCommand
from schemas.envelope import BY_DECIDER, BY_TOKEN, DECIDERS_ALONE
from schemas.events import EVENTS
from schemas.events.definitions import DEFINITION_EVENTS
from schemas.events.log import LOG_EVENTS
from schemas.events.rules import RULE_EVENTS
from schemas.ids import CLIENT_ID
from schemas.message import Message
from schemas.registry import builtin
from schemas.topics import Topics, TopicSpec
from schemas.trace_context import TRACEPARENT
from schemas.trust import ClassPart, TrustCheckpoint, TrustPart

AVRO = "application/vnd.apache.avro;version=1.9.0"
BINDING = "0.5.0"
JSON_MODELS: tuple[type[BaseModel], ...] = (TrustPart, ClassPart, TrustCheckpoint)

Part = dict[str, Any]

_DEFINITION_COMMANDS: tuple[type[Message], ...] = DefinitionCommand.__args__
_DEFINITION_EVENTS = (*DEFINITION_EVENTS, *RULE_EVENTS)
# Refusals of commands on definitions are in the definitions topic too, and so are the records of its writers.
_EVERYWHERE = ("CommandRefused", "CommandAbandoned")

EXECUTION_KEY = (
    "{tenant}/{project}/{execution_id}, or {tenant}/{project}/rule/{rule_id} for the uses of a standing rule"
)
DEFINITION_KEY = "{tenant}/{kind}/{name}"
TRUST_KEY = (
    "{tenant}/{project}/{agent}/{tool}/{partition} of a TrustPart, "
    "{tenant}/{project}/{agent}/{tool}/{class}/{partition} of a ClassPart, each name percent-encoded, "
    "or _log/{partition} of a TrustCheckpoint"
)
LOG_KEY = "_log/{partition} for records about the log itself"


@dataclass(frozen=True, slots=True)
class _Topic:
    """A topic, as the document describes it."""

    channel: str
    spec: TopicSpec
    title: str
    key: str
    writers: str
    messages: Sequence[type[Message]]


def server() -> Part:
    """The cluster that has the log."""
    return {
        "host": "{bootstrap}",
        "protocol": "kafka-secure",
        "description": (
            "Kafka 3.9 or later, or the embedded broker on loopback. Direct access covers the whole installation."
        ),
        "variables": {"bootstrap": {"default": "127.0.0.1:9092"}},
        "security": [{"$ref": "#/components/securitySchemes/sasl"}],
    }


def channels(topics: Topics, partitions: int) -> Part:
    """Return a channel for each topic that other services read or write.

    Args:
        topics: those of the installation.
        partitions: how many its topics of executions have.
    """
    found = {topic.channel: _channel(topic, partitions) for topic in _topics(topics)}
    trust = _spec(topics, topics.trust)
    found["trust"] = _described(
        "Trust statistics",
        trust,
        partitions,
        TRUST_KEY,
        "the trust processor",
        "Canonical JSON, not framed: statistics that anyone may read, not facts of the log (docs/trust.md).",
    ) | {
        "messages": {
            model.__name__: {"$ref": f"#/components/messages/{model.__name__}"} for model in JSON_MODELS
        }
    }
    return found


def operations() -> Part:
    """Return an operation for each topic, from the installation's side: it receives commands and sends the rest."""
    names = [(topic.channel, _names(topic)) for topic in _topics(Topics())]
    names.append(("trust", [model.__name__ for model in JSON_MODELS]))
    return {
        f"{_action(channel)}_{channel}": {
            "action": _action(channel),
            "channel": {"$ref": f"#/channels/{channel}"},
            "summary": "The commands." if _action(channel) == "receive" else "The records.",
            "messages": [{"$ref": f"#/channels/{channel}/messages/{name}"} for name in found],
        }
        for channel, found in names
    }


def messages() -> Part:
    """Return every message of the log, by its subject, and those of the trust topic."""
    headers = {
        COMMANDS: _headers(_COMMAND_HEADERS, _COMMAND_REQUIRED),
        EVENTS: _headers(_EVENT_HEADERS, _EVENT_REQUIRED),
    }
    found: Part = {}
    for models, said in headers.items():
        for model in models:
            found[SUBJECTS[model]] = _message(model, said)
    for one in JSON_MODELS:
        found[one.__name__] = {
            "name": one.__name__,
            "contentType": "application/json",
            "headers": _headers(_TRUST_HEADERS, sorted(_TRUST_HEADERS)),
            "payload": {"$ref": f"#/components/schemas/{one.__name__}"},
            "bindings": {"kafka": {"key": {"type": "string"}, "bindingVersion": BINDING}},
        }
    return found


def may_send(model: type[Message]) -> list[str]:
    """Return the senders whose signature or token a command is accepted with."""
    senders = [] if model in DECIDERS_ALONE else ["gateway"]
    if model in BY_TOKEN:
        senders.append("agent token")
    if model in BY_DECIDER:
        senders.append("decider")
    return senders


def _topics(topics: Topics) -> tuple[_Topic, ...]:
    of_executions = [model for model in COMMANDS if model not in _DEFINITION_COMMANDS]
    facts = [model for model in EVENTS if model not in _DEFINITION_EVENTS]
    definitions = [
        m for m in EVENTS if m in _DEFINITION_EVENTS or m in LOG_EVENTS[:2] or m.__name__ in _EVERYWHERE
    ]
    senders = (
        "gateways; services with an agent token and deciders, only for messages whose x-sent-by names them"
    )
    return (
        _Topic(
            "commands",
            _spec(topics, topics.commands),
            "Commands on executions",
            EXECUTION_KEY,
            senders,
            of_executions,
        ),
        _Topic(
            "executions",
            _spec(topics, topics.executions),
            "Events of executions",
            f"{EXECUTION_KEY}; {LOG_KEY}",
            "deciders, each partition by the one whose claim is in force",
            facts,
        ),
        _Topic(
            "definition-commands",
            _spec(topics, topics.definition_commands),
            "Commands on definitions",
            DEFINITION_KEY,
            "gateways; deciders, only for messages whose x-sent-by names them",
            list(_DEFINITION_COMMANDS),
        ),
        _Topic(
            "definitions",
            _spec(topics, topics.definitions),
            "Events of definitions",
            f"{DEFINITION_KEY}; {LOG_KEY}",
            "the decider whose claim is in force",
            definitions,
        ),
    )


def _channel(topic: _Topic, partitions: int) -> Part:
    text = f"{topic.title}. Confluent framing (a zero byte, the schema id), then Avro (docs/log-contract.md)."
    found = _described(topic.title, topic.spec, partitions, topic.key, topic.writers, text)
    found["messages"] = {name: {"$ref": f"#/components/messages/{name}"} for name in _names(topic)}
    return found


def _described(title: str, spec: TopicSpec, partitions: int, key: str, writers: str, text: str) -> Part:
    retention = (
        "kept for ever" if spec.retention_ms < 0 else f"kept for {spec.retention_ms // 86_400_000} days"
    )
    clean_up = "compacted by key" if spec.cleanup_policy == "compact" else retention
    return {
        "address": spec.name,
        "title": title,
        "description": f"{text} Key: {key}. Written by {writers}; {clean_up}.",
        "servers": [{"$ref": "#/servers/kafka"}],
        "bindings": {
            "kafka": {
                "topic": spec.name,
                "partitions": spec.partitions or partitions,
                "topicConfiguration": {
                    "cleanup.policy": [spec.cleanup_policy],
                    "retention.ms": spec.retention_ms,
                },
                "bindingVersion": BINDING,
            }
        },
        "x-written-by": writers,
    }


def _message(model: type[Message], headers: Part) -> Part:
    entry = builtin().latest(SUBJECTS[model])
    found: Part = {
        "name": entry.subject,
        "title": model.__name__,
        "summary": summary_of(model),
        "contentType": "application/avro",
        "headers": headers,
        "payload": {"schemaFormat": AVRO, "schema": entry.schema},
        "bindings": {
            "kafka": {
                "key": {"type": "string"},
                "schemaIdLocation": "payload",
                "schemaIdPayloadEncoding": "4",
                "schemaLookupStrategy": "RecordNameStrategy",
                "bindingVersion": BINDING,
            }
        },
        "x-schema-id": entry.schema_id,
    }
    if model in COMMANDS:
        found["x-sent-by"] = may_send(model)
    return found


_TEXT = {"type": "string"}
_NUMBER = {"type": "string", "pattern": "^-?[0-9]{1,18}$"}
TRACE: Part = {
    "type": "string",
    "description": "W3C trace context, version 00: a part of the sender's trace; a malformed one is ignored",
}
_COMMON: Part = {
    "ce_id": _TEXT,
    "ce_type": _TEXT,
    "ce_subject": _TEXT,
    "ce_specversion": {"const": "1.0"},
    "ce_source": _TEXT,
}
_COMMAND_HEADERS: Part = {
    **_COMMON,
    "ce_id": {
        "type": "string",
        "pattern": f"^{CLIENT_ID}$",
        "description": "the command id, the same for every repeat",
    },
    "placet_tenant": _TEXT,
    "placet_envelope": {
        "type": "string",
        "description": "the sender as JSON; with placet_signature, from a gateway or decider",
    },
    "placet_signature": {"type": "string", "description": "kid.size.index.path.signature"},
    "placet_token": {
        "type": "string",
        "description": "instead of these two, from a service: its agent token",
    },
    "placet_dwell_ms": {
        "type": "string",
        "pattern": "^[0-9]{1,16}$",
        "description": "with a DecideHold from a gateway: how long it had shown the hold, in ms; not signed",
    },
    TRACEPARENT: TRACE,
}
_EVENT_HEADERS: Part = {
    **_COMMON,
    "ce_time": {"type": "string", "format": "date-time", "description": "the log's time"},
    "placet_term": _NUMBER,
    "placet_version": _NUMBER,
    "placet_command_id": _TEXT,
    "placet_command_digest": _TEXT,
    "placet_command_offset": _NUMBER,
    "placet_tenant": _TEXT,
    TRACEPARENT: TRACE,
    "placet_signature": {
        "type": "string",
        "description": "the decider's signature of the record at its position, always the last header; absent from a "
        "log that is not signed",
    },
}
_TRUST_HEADERS: Part = {**_COMMON, "ce_time": {"type": "string", "format": "date-time"}}
# The log contract says which of the other headers of a command can be left out, and for which sender.
_COMMAND_REQUIRED = ("ce_id",)
_EVENT_REQUIRED = tuple(sorted(_EVENT_HEADERS.keys() - {"placet_signature", TRACEPARENT}))


def _headers(properties: Part, required: Sequence[str]) -> Part:
    return {"type": "object", "properties": properties, "required": list(required)}


def _names(topic: _Topic) -> list[str]:
    return [SUBJECTS[model] for model in topic.messages]


def _spec(topics: Topics, name: str) -> TopicSpec:
    return next(spec for spec in topics.specs() if spec.name == name)


def _action(channel: str) -> str:
    return "receive" if channel.endswith("commands") else "send"
