"""Who is let in by the embedded broker: a password for each principal, in files of mode 600, and what it may do.

Two kinds of users:

* `kafka` is the broker itself, which is its own controller and its own only peer. Its password is created again
  at each start and stored in server.properties (600). With it, the supervisor creates the other users.
* the principals of `ops.kafka.acl` sign in by SCRAM-SHA-512, which tells nobody a password: neither who listens on
  the port while the broker is down, nor who reads what passes.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aiokafka.protocol.admin import CreateAclsRequest_v1
from aiokafka.protocol.types import (
    CompactArray,
    CompactBytes,
    CompactString,
    Int8,
    Int16,
    Int32,
    TaggedFields,
)

from ops.errors import KafkaFailedError
from ops.files import damaged, read_json, write_text
from ops.kafka.acl import INSTALLATION, PRINCIPALS, Grant, grants
from ops.kafka.settings import BROKER_USER
from ops.kafka.wire import PLAIN, SCRAM, Connection, SignIn, SignInFailed
from schemas.topics import Topics

CREATE_ACLS = (30, 1)
ALTER_SCRAM = (51, 0)
SHA_512 = 2
ITERATIONS = 8192
ALLOW = 3
TIMEOUT_S = 10.0
KNOWN_WITHIN_S = 15.0
POLL_S = 0.02

_UPSERTIONS = CompactArray(
    ("name", CompactString("utf-8")),
    ("mechanism", Int8),
    ("iterations", Int32),
    ("salt", CompactBytes),
    ("salted_password", CompactBytes),
    ("tags", TaggedFields),
)
_RESULTS = CompactArray(
    ("user", CompactString("utf-8")),
    ("error_code", Int16),
    ("error_message", CompactString("utf-8")),
    ("tags", TaggedFields),
)


@dataclass(frozen=True)
class Access:
    """The principals of one broker.

    Attributes:
        directory: where their settings are, a file each (`log.kafka.settings`).
        topics: what they are let in for.
    """

    directory: Path
    topics: Topics

    def file(self, principal: str) -> Path:
        """The client settings of a principal."""
        return self.directory / f"{principal}.json"

    def sign_in(self, principal: str) -> SignIn:
        """The mechanism, user and password of a principal.

        Raises:
            UsageError: its file is damaged.
        """
        file = self.file(principal)
        password = (read_json(file) or {}).get("sasl_plain_password")
        if not isinstance(password, str):
            raise damaged(file, "it has no sasl_plain_password")
        return SignIn(SCRAM, principal, password)

    def make_files(self) -> None:
        """Have a password for each principal, and the owner's own in the words of other clients.

        Raises:
            UsageError: a principal's file is damaged.
        """
        for principal in PRINCIPALS:
            if not self.file(principal).is_file():
                write_text(self.file(principal), _settings(principal, secrets.token_urlsafe(32)))
            # Before a broker is started for it.
            self.sign_in(principal)
        owner = self.sign_in(INSTALLATION)
        write_text(self.directory / "client.properties", _java_properties(owner))
        write_text(self.directory / "librdkafka.properties", _librdkafka_properties(owner))

    def install(self, host: str, port: int, password: str) -> None:
        """Tell a fresh broker of the principals, and wait until it knows them.

        Args:
            host: its address.
            port: its port.
            password: of the broker's own user, in this life of it.

        Raises:
            KafkaFailedError: it does not take them.
        """
        try:
            with Connection(host, port, TIMEOUT_S) as connection:
                connection.sign_in(SignIn(PLAIN, BROKER_USER, password))
                _create_acls(connection, grants(self.topics))
                _upsert_passwords(connection, [self.sign_in(principal) for principal in PRINCIPALS])
            self._wait_known(host, port)
        except (OSError, EOFError) as error:
            raise KafkaFailedError(
                f"The embedded Kafka accepts no users ({error}): read kafka/kafka.log in the data directory."
            ) from error

    def _wait_known(self, host: str, port: int) -> None:
        # What the controller has written reaches the broker's own eyes a moment later. Each is tried: the password of
        # one may be new, while those of the others are of an earlier life of the broker.
        deadline = time.monotonic() + KNOWN_WITHIN_S
        for principal in PRINCIPALS:
            while not self._is_known(host, port, principal, is_last=time.monotonic() > deadline):
                time.sleep(POLL_S)

    def _is_known(self, host: str, port: int, principal: str, *, is_last: bool) -> bool:
        try:
            with Connection(host, port, TIMEOUT_S) as connection:
                connection.sign_in(self.sign_in(principal))
        except SignInFailed:
            if is_last:
                raise
            return False
        return True


def _create_acls(connection: Connection, rows: Sequence[Grant]) -> None:
    creations = [
        (
            row.resource_type,
            row.resource_name,
            row.pattern,
            f"User:{row.principal}",
            "*",
            row.operation,
            ALLOW,
        )
        for row in rows
    ]
    answer = connection.ask(CREATE_ACLS, CreateAclsRequest_v1(creations).encode())
    for code, message in CreateAclsRequest_v1.RESPONSE_TYPE.decode(io.BytesIO(answer)).creation_responses:
        _check(code, message)


def _upsert_passwords(connection: Connection, users: Sequence[SignIn]) -> None:
    rows: list[tuple[str, int, int, bytes, bytes, dict[int, bytes]]] = []
    for user in users:
        salt = secrets.token_bytes(32)
        salted = hashlib.pbkdf2_hmac("sha512", user.password.encode(), salt, ITERATIONS)
        rows.append((user.user, SHA_512, ITERATIONS, salt, salted, {}))
    no_deletions = b"\x01"
    body = no_deletions + _UPSERTIONS.encode(rows) + TaggedFields.encode({})
    answer = io.BytesIO(connection.ask(ALTER_SCRAM, body, is_flexible=True))
    struct.unpack(">i", answer.read(4))  # how long the broker throttles us
    for _, code, message, _ in _RESULTS.decode(answer) or ():
        _check(code, message)


def _check(code: int, message: str | None) -> None:
    if code:
        raise SignInFailed(f"error {code}: {message or 'no reason given'}")


def _settings(principal: str, password: str) -> str:
    settings = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": SCRAM,
        "sasl_plain_username": principal,
        "sasl_plain_password": password,
    }
    return json.dumps(settings, indent=2) + "\n"


def _java_properties(owner: SignIn) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return (
        "security.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism={owner.mechanism}\n"
        f'sasl.jaas.config={module} required username="{owner.user}" password="{owner.password}";\n'
    )


def _librdkafka_properties(owner: SignIn) -> str:
    return (
        "security.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism={owner.mechanism}\n"
        f"sasl.username={owner.user}\n"
        f"sasl.password={owner.password}\n"
    )
