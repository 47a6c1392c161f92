"""One webhook: its signature, what it sends, and what it makes of an answer."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from services.processors.notifications.channel import Undelivered
from services.processors.notifications.render import RenderedMessage
from services.processors.notifications.webhook import (
    BadSecret,
    WebhookChannel,
    read_retry_after,
    read_secret,
    sign,
)
from tests.processors.notifications.receiver import SECRET, Receiver, receiving, verifies

MESSAGE = RenderedMessage("evt-1", "title", "text", {"id": "evt-1", "type": "test", "question": "größer?"})


def channel(url: str, timeout_s: float = 5.0) -> WebhookChannel:
    return WebhookChannel(url, read_secret(SECRET), timeout_s)


@pytest.mark.parametrize("prefix", ["", "whsec_"])
def test_sign_vector_of_standard_webhooks_is_met(prefix: str) -> None:
    # standard-webhooks/standard-webhooks, libraries/javascript/src/webhook.test.ts, "sign function works".
    key = read_secret(prefix + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_c2hvcnQ=", "not base64 at all!", "whsec_" + "A" * 88])
def test_read_secret_that_is_none_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(BadSecret) as refused:
        read_secret(text)
    assert not text.removeprefix("whsec_") or text.removeprefix("whsec_") not in str(refused.value)


async def test_send_is_signed_and_carries_the_document_as_signed() -> None:
    with receiving() as receiver:
        await channel(receiver.url).send(MESSAGE)
    (taken,) = receiver.requests
    assert receiver.forged == []
    assert taken.id == "evt-1"
    assert taken.body == MESSAGE.document
    assert taken.headers["content-type"] == "application/json"


async def test_send_replayed_later_or_changed_no_longer_verifies() -> None:
    with receiving() as receiver:
        await channel(receiver.url).send(MESSAGE)
    (taken,) = receiver.requests
    assert verifies(taken.headers, taken.raw)
    assert not verifies(taken.headers, taken.raw, now_s=time.time() + 301)
    assert not verifies(taken.headers, taken.raw + b" ")
    assert not verifies({**taken.headers, "webhook-id": "evt-2"}, taken.raw)


@pytest.mark.parametrize(
    ("status", "is_final"),
    [
        (400, True),
        (401, True),
        (404, True),
        (410, True),
        (408, False),
        (429, False),
        (500, False),
        (503, False),
    ],
)
async def test_send_refused_is_final_only_where_asking_again_is_in_vain(status: int, is_final: bool) -> None:
    refusing = Receiver(answer=lambda _: (status, {"Retry-After": "7"}))
    with receiving(refusing) as receiver, pytest.raises(Undelivered, match=f"HTTP {status}") as failed:
        await channel(receiver.url).send(MESSAGE)
    assert failed.value.is_final is is_final
    assert failed.value.retry_after_s == 7.0


async def test_send_redirected_goes_nowhere_else() -> None:
    with receiving() as elsewhere:
        redirecting = Receiver(answer=lambda _: (307, {"Location": elsewhere.url}))
        with receiving(redirecting) as receiver, pytest.raises(Undelivered, match="HTTP 307"):
            await channel(receiver.url).send(MESSAGE)
    assert elsewhere.paths == []


async def test_send_does_not_read_the_answer_s_body() -> None:
    with receiving(Receiver(long_body=b"x" * 200_000_000)) as receiver:
        started_s = time.monotonic()
        await channel(receiver.url).send(MESSAGE)
        assert time.monotonic() - started_s < 4.0
        assert receiver.hung_up.wait(10)


async def test_send_to_one_who_never_answers_ends_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # One byte now and then keeps any limit on single reads from being met.
        thread = threading.Thread(target=_trickle, args=(silent,), daemon=True)
        thread.start()
        started_s = time.monotonic()
        with pytest.raises(Undelivered, match="no answer within 1 s"):
            await channel(f"http://127.0.0.1:{silent.getsockname()[1]}/", 1.0).send(MESSAGE)
        assert time.monotonic() - started_s < 3.0
        thread.join(10)


async def test_send_to_nobody_says_so_and_not_where() -> None:
    with pytest.raises(Undelivered) as failed:
        await channel("http://127.0.0.1:1/token-in-the-path").send(MESSAGE)
    assert not failed.value.is_final
    assert "token" not in str(failed.value)
    assert failed.value.__cause__ is None


def test_channel_repr_shows_neither_address_nor_key() -> None:
    shown = repr(channel("https://example.com/token-in-the-path"))
    assert "token" not in shown
    assert "0123456789abcdef" not in shown


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        ("120", 120.0),
        ("-5", None),
        ("soon", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 10.0),
        ("Wed, 21 Oct 2015 07:00:00 GMT", 0.0),
        ("99999999999", None),
    ],
)
def test_read_retry_after_reads_both_forms(text: str | None, seconds: float | None) -> None:
    assert read_retry_after(text, 1445412470.0) == seconds


def _trickle(silent: socket.socket) -> None:
    caller, _ = silent.accept()
    with caller:
        try:
            for letter in b"HTTP/1.1 200 OK\r\nx-slow: " + b"y" * 100:
                caller.sendall(bytes([letter]))
                time.sleep(0.05)
        except OSError:
            return
