"""The channel through apprise: a real mail server, one that hangs, and addresses that stay secret."""

from __future__ import annotations

import logging
import socket
from email.message import EmailMessage

import pytest

from services.processors.notifications.apprise_channel import AppriseChannel, BadAddress, silence_libraries
from services.processors.notifications.channel import Undelivered
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


async def test_send_mail_refused_can_be_tried_again() -> None:
    mailbox = Mailbox(refuse=1)
    with mail_server(mailbox) as address:
        channel = AppriseChannel(address, 10.0)
        with pytest.raises(Undelivered, match="apprise could not deliver it") as failed:
            await channel.send(MESSAGE)
        assert not failed.value.is_final
        await channel.send(MESSAGE)
    assert len(mailbox.mails) == 1


async def test_send_to_one_who_hangs_ends_in_time_and_does_not_pile_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        people = "from=placet@example.com&to=ann@example.com"
        channel = AppriseChannel(f"mailto://127.0.0.1:{port}?{people}&mode=insecure", 0.3)
        with pytest.raises(Undelivered, match=r"no answer within 0\.3 s"):
            await channel.send(MESSAGE)
        with pytest.raises(Undelivered, match="the try before still hangs"):
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


async def test_silence_libraries_keeps_addresses_out_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    names = ("httpx", "httpcore", "urllib3", "requests", "apprise")
    before = {name: logging.getLogger(name).level for name in names}
    silence_libraries()
    try:
        with caplog.at_level(logging.DEBUG), receiving() as receiver:
            receiver.handle = lambda *_: (500, {})  # type: ignore[method-assign]
            with pytest.raises(Undelivered):
                await AppriseChannel(f"json://127.0.0.1:{receiver.port}/s3cret", 10.0).send(MESSAGE)
        assert receiver.paths == ["/s3cret"]
        assert "s3cret" not in caplog.text
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
