"""Requests to a broker over a bare socket: no event loop, so that a supervisor can ask between two of its steps.

Requests and answers are those of Kafka's protocol guide; what aiokafka can encode is encoded by it.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import NamedTuple, Self

from aiokafka.conn import ScramAuthenticator

SASL_HANDSHAKE = (17, 1)
SASL_AUTHENTICATE = (36, 0)
PLAIN, SCRAM = "PLAIN", "SCRAM-SHA-512"
_HEADER = struct.Struct(">hhih")
_CORRELATION_ID = 1
_CLIENT = b"placet"


class SignIn(NamedTuple):
    """Who asks: SASL mechanism, user and password."""

    mechanism: str
    user: str
    password: str


class SignInFailed(ConnectionError):
    """The broker did not accept the user's password."""


class Connection:
    """One connection to one broker; requests are answered one by one.

    Raises:
        OSError, EOFError: nobody answers, in any method.
    """

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._socket = socket.create_connection((host, port), timeout_s)
        self._socket.settimeout(timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def ask(self, request: tuple[int, int], body: bytes, *, is_flexible: bool = False) -> bytes:
        """The body of the answer to a request.

        Args:
            request: its key and version.
            body: after the header.
            is_flexible: whether this version of it has tagged fields in its headers.
        """
        tags = b"\x00" if is_flexible else b""
        message = _HEADER.pack(*request, _CORRELATION_ID, len(_CLIENT)) + _CLIENT + tags + body
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        size = struct.unpack(">i", self._read(4))[0]
        return self._read(size)[4 + len(tags) :]

    def sign_in(self, who: SignIn) -> None:
        """Say who asks from here on.

        Raises:
            SignInFailed: the broker does not take it, or does not know the password itself.
        """
        name = who.mechanism.encode()
        self._check(self.ask(SASL_HANDSHAKE, struct.pack(">h", len(name)) + name), who)
        if who.mechanism == PLAIN:
            self._authenticate(f"\0{who.user}\0{who.password}".encode(), who)
        else:
            self._sign_in_by_scram(who)

    def _sign_in_by_scram(self, who: SignIn) -> None:
        # RFC 5802; the last step checks that the broker knows the password.
        steps = ScramAuthenticator(
            loop=None,
            sasl_plain_username=who.user,
            sasl_plain_password=who.password,
            sasl_mechanism=who.mechanism,
        ).authenticator_scram()
        try:
            said, _ = next(steps)
            while True:
                said, _ = steps.send(self._authenticate(said, who))
        except StopIteration:
            return
        except ValueError as error:
            raise SignInFailed(f"{who.user}: {error}") from error

    def _authenticate(self, said: bytes, who: SignIn) -> bytes:
        answer = self.ask(SASL_AUTHENTICATE, struct.pack(">i", len(said)) + said)
        self._check(answer, who)
        message = struct.unpack_from(">h", answer, 2)[0]
        rest = answer[4 + max(message, 0) :]
        size = struct.unpack_from(">i", rest)[0]
        return rest[4 : 4 + size]

    def _check(self, answer: bytes, who: SignIn) -> None:
        code = struct.unpack_from(">h", answer)[0]
        if code:
            raise SignInFailed(f"the broker does not let {who.user} in (error {code})")

    def _read(self, size: int) -> bytes:
        content = b""
        while len(content) < size:
            chunk = self._socket.recv(size - len(content))
            if not chunk:
                raise EOFError("the broker closed the connection")
            content += chunk
        return content
