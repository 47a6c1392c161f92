"""The channel through apprise: a real mail server, one that hangs, and addresses that stay secret."""

from __future__ import annotations

import logging
import socket

import pytest

from services.processors.notifications.apprise_channel import AppriseChannel, BadAddress, silence_libraries
from services.processors.notifications.channel import Undelivered
from services.processors.notifications.render import single, trial
from tests.processors.notifications.holds import notice
from tests.processors.notifications.receiver import Mailbox, mail_server, receiving

MESSAGE = trial("n/1", "id", 0)


async def test_send_mail_arrives_with_title_and_text() -> None:
    mailbox = Mailbox()
    with mail_server(mailbox) as address:
        await AppriseChannel(address, 10.0).send(single(notice(), "https://p.example.com"))
    (mail,) = mailbox.mails
    assert mail["subject"] == "Placet: a call of send_money waits for a decision"
    assert mail["to"] == "ann@example.com"
    body = mail.get_body(("plain", "html"))
    assert body is not None
    assert "https://p.example.com/holds/h1" in body.get_content()


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
