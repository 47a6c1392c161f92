"""The channel through apprise: a real mail server, one that hangs, and addresses that stay secret."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import pytest

from ops.ports import free_port
from services.processors.notifications.apprise_channel import AppriseChannel, BadAddress, silence_libraries
from services.processors.notifications.channel import Undelivered
from services.processors.notifications.refusal import Secrets
from services.processors.notifications.render import digest, plain, single, trial
from tests.processors.notifications.holds import notice
from tests.processors.notifications.receiver import Mailbox, mail_server, receiving

BASE = "https://p.example.com"
MESSAGE = trial("n/1", "id", 0)
# What a mail program would decode to hidden characters, to a link, to another header, or to nothing at all.
ENCODED_WORDS = (
    "=?utf-8?B?4oCuZXZpbA==?=",
    "=?utf-8?Q?=E2=80=8B?=",
    "=?utf-8?Q?http=3A=2F=2Fevil=2Ecom?=",
    "=?us-ascii?Q?x=0D=0ABcc:_eve@evil.com?=",
    "=?utf-8?B?" + "4oCu" * 40 + "?=",
    "=?utf-8?Q?a?= =?utf-8?Q?b?= =?=?utf-8?Q?c?=",
)
HEADERS = {
    "content-type",
    "content-transfer-encoding",
    "mime-version",
    "x-application",
    "subject",
    "from",
} | {
    "to",
    "message-id",
    "date",
}


async def test_send_mail_arrives_with_title_and_text() -> None:
    mailbox = Mailbox()
    with mail_server(mailbox) as address:
        await AppriseChannel(address, 10.0).send(single(notice(), BASE))
    (mail,) = mailbox.mails
    assert mail["subject"] == "Placet: a call of send_money waits for a decision"
    assert mail["to"] == "ann@example.com"
    body = mail.get_body(("plain", "html"))
    assert body is not None
    assert "https://p.example.com/holds/h1" in body.get_content()


@pytest.mark.parametrize("word", ENCODED_WORDS)
async def test_case_16_encoded_word_in_an_agents_words_is_shown_as_it_was_written(word: str) -> None:
    asked = notice(tool=f"send_x {word}", agent=word, question=word)
    mailbox = Mailbox()
    with mail_server(mailbox) as address:
        for outgoing in (single(asked, BASE), digest("n/1", [asked], BASE), trial(word, "id", 0)):
            for form in ("text", "html"):
                # A channel of its own: apprise waits between two mails of one.
                await AppriseChannel(f"{address}&format={form}", 10.0).send(outgoing)
    for mail in mailbox.mails:
        assert {name.lower() for name in mail} <= HEADERS
        # Another program may decode what was decoded already, and one that knows no RFC 2047 nothing at all.
        shown = [str(mail["subject"]), *(part.get_content() for part in texts(mail))]
        for text in shown:
            assert "=?" not in text
            assert not set(text) & {"\u202e", "\u200b", "\x00"}
    subject = str(mailbox.mails[0]["subject"])
    assert subject == f"Placet: a call of {plain(f'send_x {word}', 128)} waits for a decision"
    assert "send_x \uff1d?" in subject


def texts(mail: EmailMessage) -> list[EmailMessage]:
    """The parts of a mail that are looked at."""
    found = [part for part in mail.walk() if part.get_content_maintype() == "text"]
    assert {part.get_content_type() for part in found} <= {"text/plain", "text/html"}
    return found


async def test_send_mail_refused_tells_the_servers_reason_and_can_be_tried_again(quiet: Printed) -> None:
    mailbox = Mailbox(refuse=1)
    with mail_server(mailbox) as address:
        with pytest.raises(Undelivered, match=r"^451 not now$") as failed:
            await AppriseChannel(address, 10.0).send(MESSAGE)
        assert not failed.value.is_final
        await AppriseChannel(address, 10.0).send(MESSAGE)
    assert len(mailbox.mails) == 1


class Unwelcome(Mailbox):
    """A mail server that repeats to whoever asks what it was told, and hides something in it."""

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        login = "AHMzY3JldC11c2VyAGh1bnRlcjI="
        return f"550 5.1.1 <{address}> is unknown to s3cret-user with hunter2 \x1b[31m or {login}"


async def test_send_mail_to_an_unknown_person_tells_why_and_no_part_of_the_address(quiet: Printed) -> None:
    with mail_server(Unwelcome()) as address:
        signed_in = address.replace("mailto://", "mailto://s3cret-user:hunter2@")
        channel = AppriseChannel(signed_in, 10.0)
        # The server offers no sign-in, and says so; nobody's password is in that either.
        with pytest.raises(Undelivered, match=r"(?i)auth.* not supported") as refused:
            await channel.send(MESSAGE)
        assert "hunter2" not in str(refused.value)
        assert not refused.value.is_final
        channel = AppriseChannel(address, 10.0)
        channel._secrets = Secrets(signed_in)
        with pytest.raises(Undelivered, match=r"^550 5\.1\.1 <…> is unknown to … with … ") as refused:
            await channel.send(MESSAGE)
    assert refused.value.is_final
    for secret in ("ann@example.com", "s3cret", "hunter2", "AHMz", "\x1b"):
        assert secret not in str(refused.value)
        assert secret not in quiet.text


class HalfWelcome(Mailbox):
    """A mail server that knows one person and will know the other later, that knows none, or wants a sign-in."""

    def __init__(self, answers: dict[str, str]) -> None:
        super().__init__()
        self.answers = answers

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        envelope.rcpt_tos.append(address)
        return self.answers[address]


@pytest.mark.parametrize(
    ("ann", "bob", "is_final"),
    [
        ("550 no such person", "550 no such person", True),
        ("550 no such person", "451 later", False),
        ("451 later", "451 later", False),
        ("530 sign in first", "530 sign in first", False),
    ],
)
async def test_send_mail_refused_for_good_is_not_tried_again(
    ann: str, bob: str, is_final: bool, quiet: Printed
) -> None:
    people = "to=ann@example.com"
    with (
        mail_server(HalfWelcome({"ann@example.com": ann, "bob@example.com": bob})) as address,
        pytest.raises(Undelivered) as refused,
    ):
        await AppriseChannel(address.replace(people, f"{people},bob@example.com"), 10.0).send(MESSAGE)
    assert refused.value.is_final is is_final, str(refused.value)


async def test_send_mail_to_nobody_who_listens_says_so(quiet: Printed) -> None:
    address = f"mailto://127.0.0.1:{free_port()}?from=placet@example.com&to=ann@example.com&mode=insecure"
    with pytest.raises(Undelivered, match=r"\[Errno 111\] Connection refused"):
        await AppriseChannel(address, 10.0).send(MESSAGE)


async def test_send_to_a_service_that_refuses_tells_the_status_and_no_token(quiet: Printed) -> None:
    with receiving() as receiver:
        receiver.handle = lambda *_: (403, {})  # type: ignore[method-assign]
        with pytest.raises(Undelivered, match=r"error=403") as refused:
            await AppriseChannel(f"json://bob:hunter2@127.0.0.1:{receiver.port}/t0ken", 10.0).send(MESSAGE)
        assert not {"hunter2", "t0ken"} & set(str(refused.value).split())
    with pytest.raises(Undelivered, match="Connection refused") as refused:
        await AppriseChannel(f"json://bob:hunter2@127.0.0.1:{free_port()}/t0ken", 10.0).send(MESSAGE)
    assert "t0ken" not in str(refused.value)


async def test_send_to_one_who_hangs_ends_in_time_and_does_not_pile_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        people = "from=placet@example.com&to=ann@example.com"
        channel = AppriseChannel(f"mailto://127.0.0.1:{port}?{people}&mode=insecure", 0.3)
        with pytest.raises(Undelivered, match=r"no answer within 0\.3 s"):
            await channel.send(MESSAGE)
        with pytest.raises(Undelivered, match="the previous try has not ended yet"):
            await channel.send(MESSAGE)


async def test_send_redirected_goes_nowhere_else() -> None:
    with receiving() as elsewhere, receiving() as receiver:
        receiver.handle = lambda *_: (307, {"Location": elsewhere.url})  # type: ignore[method-assign]
        with pytest.raises(Undelivered):
            await AppriseChannel(f"json://127.0.0.1:{receiver.port}/", 10.0).send(MESSAGE)
    assert elsewhere.paths == []


@pytest.mark.parametrize("address", ["", "nonsense://s3cret", "slack://s3cret", "mailto://", "s3cret"])
def test_channel_unknown_address_is_refused_without_showing_it(address: str) -> None:
    with pytest.raises(BadAddress) as refused:
        AppriseChannel(address, 1.0)
    assert "s3cret" not in str(refused.value)


async def test_silence_libraries_keeps_addresses_out_of_the_log(quiet: Printed) -> None:
    with receiving() as receiver:
        receiver.handle = lambda *_: (500, {})  # type: ignore[method-assign]
        with pytest.raises(Undelivered):
            await AppriseChannel(f"json://127.0.0.1:{receiver.port}/s3cret", 10.0).send(MESSAGE)
    assert receiver.paths == ["/s3cret"]
    assert "s3cret" not in quiet.text


class Printed(logging.Handler):
    """What a process would print at its most talkative, without the tests' own mail server."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != "mail.log":
            self.text += f"{record.getMessage()}\n"


@pytest.fixture
def quiet() -> Iterator[Printed]:
    """As the notifier's process is: libraries print nothing."""
    names = ("", "httpx", "httpcore", "urllib3", "requests", "apprise")
    before = {name: logging.getLogger(name).level for name in names}
    printed = Printed()
    logging.getLogger().addHandler(printed)
    logging.getLogger().setLevel(logging.DEBUG)
    silence_libraries()
    try:
        yield printed
    finally:
        logging.getLogger().removeHandler(printed)
        logging.getLogger("apprise").propagate = True
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
