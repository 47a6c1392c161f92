"""The notifier as a process on a real Kafka, with a real receiver: what people are told, whatever ends it."""

from __future__ import annotations

import shutil
import socket
import sqlite3
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from host.errors import EXIT_FAILED, EXIT_USAGE
from ops.ports import free_port
from ops.topics import ensure_topics
from tests.processors.history import History
from tests.processors.notifications import holds as facts
from tests.processors.notifications.receiver import Mailbox, Receiver, mail_server, receiving
from tests.processors.notifications.role import LINK_BASE, NotifierRole, to_webhook
from tests.processors.role import wait_until

pytestmark = pytest.mark.broker


def until_told(role: NotifierRole, receiver: Receiver, *wanted: tuple[str, str]) -> None:
    """Wait for messages; those of one partition come in the order of the log."""
    wait_until(lambda: set(wanted) <= set(receiver.types()), 30, lambda: (receiver.types(), role.log[-4000:]))


async def test_notifier_hold_from_opening_to_decision_is_told_in_order_and_signed(role: NotifierRole) -> None:
    log = facts.history()
    with receiving() as receiver:
        role.tell(to_webhook(receiver.url))
        role.start_ready()
        key = facts.hold_call(log, "h1")
        log.add(key, facts.delegated("h1"))
        log.add(key, facts.escalated("h1"))
        await role.produce(log)
        until_told(role, receiver, ("hold_opened", "h1"), ("hold_delegated", "h1"), ("hold_escalated", "h1"))
        log.add(key, facts.decided("h1"))
        await role.produce(log)
        until_told(role, receiver, ("hold_resolved", "h1"))
        assert role.stop() == 0
    kinds = [kind for kind, _ in receiver.types()]
    assert kinds == ["hold_opened", "hold_delegated", "hold_escalated", "hold_resolved"]
    assert receiver.forged == []
    body = receiver.taken[0].body
    assert body | {"tool": "send_money", "risk": "high", "agent": "billing-bot", "tenant": "acme"} == body
    assert body["link"] == f"{LINK_BASE}/holds/h1"
    assert "arguments" not in body
    assert len(receiver.requests) == len(receiver.taken), "a healthy endpoint is told once"


async def test_notifier_first_start_is_silent_about_the_past_and_knows_it(role: NotifierRole) -> None:
    log = facts.history()
    old = facts.hold_call(log, "old")
    await role.produce(log)
    with receiving() as receiver:
        role.tell(to_webhook(receiver.url))
        role.start_ready()
        log.add(old, facts.escalated("old"))
        facts.hold_call(log, "new")
        await role.produce(log)
        until_told(role, receiver, ("hold_escalated", "old"), ("hold_opened", "new"))
        assert ("hold_opened", "old") not in receiver.types()
        assert receiver.taken[0].body["tool"] == "send_money"


async def test_notifier_zombie_writes_and_nobody_is_told(role: NotifierRole) -> None:
    log = facts.history()
    with receiving() as receiver:
        role.tell(to_webhook(receiver.url))
        role.start_ready()
        deposed = log.term
        key = facts.hold_call(log, "h1")
        log.claim()
        facts.hold_call(log, "zombie", term=deposed)
        log.add(key, facts.decided("h1", "reject"), deposed)
        log.add(key, facts.expired("h1"), deposed)
        log.poison()
        facts.hold_call(log, "h2")
        await role.produce(log)
        until_told(role, receiver, ("hold_opened", "h1"), ("hold_opened", "h2"))
    assert receiver.types() == [("hold_opened", "h1"), ("hold_opened", "h2")]


async def test_notifier_two_tenants_each_hears_of_its_own_only(role: NotifierRole) -> None:
    log = facts.history()
    with receiving() as acme, receiving() as globex:
        role.tell(
            to_webhook(acme.url, "a", when={"tenant": "acme"}),
            to_webhook(globex.url, "g", when={"tenant": "globex", "risk": ["high"]}),
        )
        role.start_ready()
        facts.hold_call(log, "h1", "acme")
        facts.hold_call(log, "h2", "globex")
        facts.hold_call(log, "h3", "globex", risk="low")
        facts.hold_call(log, "h4", "acme", risk="low")
        await role.produce(log)
        until_told(role, acme, ("hold_opened", "h1"), ("hold_opened", "h4"))
        until_told(role, globex, ("hold_opened", "h2"))
    assert {hold_id for _, hold_id in acme.types()} == {"h1", "h4"}
    assert {hold_id for _, hold_id in globex.types()} == {"h2"}


async def test_notifier_killed_between_outbox_and_answer_tells_again_under_the_same_id(
    role: NotifierRole,
) -> None:
    log = facts.history()

    def kill_at_first(number: int) -> tuple[int, dict[str, str]]:
        if number == 0:
            role.kill()
        return 204, {}

    with receiving(Receiver(answer=kill_at_first)) as receiver:
        role.tell(to_webhook(receiver.url))
        role.start_ready()
        for number in range(5):
            facts.hold_call(log, f"h{number}")
        await role.produce(log)
        wait_until(lambda: role.process is not None and role.process.poll() is not None, 20)
        role.start_ready()
        until_told(role, receiver, *[("hold_opened", f"h{number}") for number in range(5)])
        assert role.stop() == 0
    assert [hold_id for _, hold_id in receiver.types()] == [f"h{number}" for number in range(5)]
    assert receiver.requests[0].id == receiver.requests[1].id
    assert receiver.requests[0].raw == receiver.requests[1].raw


async def test_notifier_killed_again_and_again_loses_nothing(role: NotifierRole) -> None:
    logs = [facts.history(partition) for partition in range(2)]
    with receiving() as receiver:
        role.tell(to_webhook(receiver.url, delivery={"per_minute": 600}))
        role.start_ready()
        for life in range(3):
            for log in logs:
                for number in range(20):
                    facts.hold_call(log, f"h{log.partition}-{life}-{number}")
            await role.produce(*logs)
            seen = len(receiver.requests)
            wait_until(lambda seen=seen: len(receiver.requests) > seen, 30, lambda: role.log[-4000:])
            role.kill()
            role.start_ready()
        wanted = [
            ("hold_opened", f"h{p}-{life}-{n}") for p in range(2) for life in range(3) for n in range(20)
        ]
        until_told(role, receiver, *wanted)
    for log in logs:
        mine = [hold_id for _, hold_id in receiver.types() if hold_id.startswith(f"h{log.partition}-")]
        assert mine == [f"h{log.partition}-{life}-{n}" for life in range(3) for n in range(20)]


async def test_notifier_endpoint_down_for_a_while_gets_all_and_the_other_waits_for_nothing(
    role: NotifierRole,
) -> None:
    log, port = facts.history(), free_port()
    slow = to_webhook(f"http://127.0.0.1:{port}/", "slow", delivery={"tries": 20, "within_seconds": 60})
    with receiving() as healthy:
        role.tell(slow, to_webhook(healthy.url, "healthy"))
        role.start_ready()
        for number in range(4):
            facts.hold_call(log, f"h{number}")
        await role.produce(log)
        wanted = [("hold_opened", f"h{number}") for number in range(4)]
        until_told(role, healthy, *wanted)
        wait_until(lambda: "slow/1: try 2 of 20 failed" in role.log, 20)
        with receiving(port=port) as receiver:
            until_told(role, receiver, *wanted)
        assert receiver.types() == wanted
    assert await role.dead_letters() == []


async def test_notifier_endpoint_dead_for_good_leaves_dead_letters_without_secrets(
    role: NotifierRole,
) -> None:
    log = facts.history(1)
    with receiving(Receiver(answer=lambda _: (503, {}))) as dead, receiving() as healthy:
        gives_up = to_webhook(dead.url + "/s3cret", "dead", delivery={"tries": 3, "within_seconds": 5})
        role.tell(gives_up, to_webhook(healthy.url, "healthy"))
        role.start_ready()
        facts.hold_call(log, "h1", question="secret plan")
        offset = len(log.records) - 1
        await role.produce(log)
        until_told(role, healthy, ("hold_opened", "h1"))
        wait_until(lambda: "undeliverable: dead/1" in role.log, 20, lambda: role.log[-3000:])
    assert [found.id for found in dead.requests] == [dead.requests[0].id] * 3
    (letter,) = await role.dead_letters()
    assert letter["placet_topic"] == role.topics.executions
    assert (letter["placet_partition"], letter["placet_offset"]) == ("1", str(offset))
    assert letter["placet_reason"] == "undeliverable"
    assert letter["placet_detail"] == "dead/1 (webhook): try 3 was the last one (HTTP 503)"
    assert "s3cret" not in role.log
    assert "whsec" not in role.log


async def test_notifier_back_after_an_outage_is_silent_about_holds_that_are_closed(
    role: NotifierRole,
) -> None:
    log = facts.history()
    with receiving() as receiver:
        role.tell(to_webhook(receiver.url))
        role.start_ready()
        facts.hold_call(log, "h0")
        await role.produce(log)
        until_told(role, receiver, ("hold_opened", "h0"))
        role.kill()
        gone = facts.hold_call(log, "gone")
        facts.hold_call(log, "still")
        log.add(gone, facts.escalated("gone"))
        log.add(gone, facts.decided("gone"))
        await role.produce(log)
        role.start_ready()
        until_told(role, receiver, ("hold_opened", "still"), ("hold_resolved", "gone"))
    assert ("hold_opened", "gone") not in receiver.types()
    assert ("hold_escalated", "gone") not in receiver.types()
    assert "2 messages were not sent, their holds are closed" in role.log


async def test_notifier_more_than_fit_into_a_minute_become_one_digest(role: NotifierRole) -> None:
    log = facts.history()
    with receiving() as receiver:
        role.tell(to_webhook(receiver.url, delivery={"per_minute": 4}))
        role.start_ready()
        for number in range(20):
            facts.hold_call(log, f"h{number}")
        with role.frozen():
            await role.produce(log)
        wait_until(lambda: len(receiver.requests) >= 4, 20)
    kinds = [found.body["type"] for found in receiver.requests]
    assert kinds == ["hold_opened"] * 3 + ["digest"]
    digest = receiver.requests[-1].body
    # What it had read of them when the minute's last message went out: at least what came with the first ones.
    count = digest["count"]
    assert count == digest["holds_waiting"] > 1
    assert [one["hold_id"] for one in digest["messages"]] == [f"h{number}" for number in range(3, 3 + count)]


async def test_notifier_by_mail_refused_once_arrives_as_text_without_markup(role: NotifierRole) -> None:
    log, mailbox = facts.history(), Mailbox(refuse=1)
    with mail_server(mailbox) as address:
        role.variables["MAIL"] = address
        delivery = {"tries": 5, "within_seconds": 5}
        target: dict[str, Any] = {"to": [{"apprise": {"url_env": "MAIL"}}], "delivery": delivery}
        role.tell({"id": "mail", "when": {"events": ["hold_opened"]}, **target})
        role.start_ready()
        facts.hold_call(log, "h1", question='<b>Pay</b> <a href="https://evil.com">here</a> @channel')
        await role.produce(log)
        wait_until(lambda: mailbox.mails, 30, lambda: role.log[-3000:])
    (mail,) = mailbox.mails
    assert mailbox.refused == 1
    assert mail["subject"] == "Placet: a call of send_money waits for a decision"
    body = mail.get_body(("plain",))
    text = body.get_content() if body else ""
    assert f"{LINK_BASE}/holds/h1" in text
    whole = "".join(part.get_content() for part in mail.walk() if part.get_content_maintype() == "text")
    for harmful in ("<b>", "evil.com", "https://", "@channel"):
        assert harmful not in whole.replace("</body>", ""), whole
    assert address not in role.log


async def test_notifier_recreated_topic_stops_it_with_what_to_do(role: NotifierRole) -> None:
    log = facts.history()
    with receiving() as receiver:
        role.tell(to_webhook(receiver.url))
        role.start_ready()
        facts.hold_call(log, "h1")
        await role.produce(log)
        until_told(role, receiver, ("hold_opened", "h1"))
        assert role.stop() == 0
        await recreate(role)
        await role.produce(History(0, log.rng))
        role.start()
        assert role.wait_end() == EXIT_USAGE
    assert "The log is not the one that notifications were read from" in role.log


async def test_notifier_second_one_on_the_same_outbox_is_refused(role: NotifierRole) -> None:
    with receiving() as receiver:
        role.tell(to_webhook(receiver.url))
        role.start_ready()
        first, role.process = role.process, None
        try:
            role.start()
            assert role.wait_end() == 1
            assert "end the other process that uses it" in role.log
        finally:
            assert first is not None
            first.kill()
            first.wait()


async def test_notifier_position_and_messages_stand_in_one_transaction(role: NotifierRole) -> None:
    log, port = facts.history(), free_port()
    role.tell(to_webhook(f"http://127.0.0.1:{port}/"))
    role.start_ready()
    facts.hold_call(log, "h1")
    await role.produce(log)
    wait_until(lambda: "try 1 of 6 failed" in role.log, 30)
    role.kill()
    with sqlite3.connect(role.directory / "data" / "run" / "notifier" / "outbox.db") as outbox:
        through = outbox.execute("SELECT through_offset FROM positions WHERE partition = 0").fetchone()[0]
        waiting = outbox.execute("SELECT hold_id FROM messages").fetchall()
    assert through == len(log.records) - 1
    assert waiting == [("h1",)]


async def test_notifier_that_lost_its_outbox_goes_on_where_the_group_was(role: NotifierRole) -> None:
    log = facts.history()
    with receiving() as receiver:
        role.tell(to_webhook(receiver.url))
        role.start_ready()
        key = facts.hold_call(log, "h1")
        await role.produce(log)
        until_told(role, receiver, ("hold_opened", "h1"))
        assert role.stop() == 0
        shutil.rmtree(role.directory / "data" / "run" / "notifier")
        facts.hold_call(log, "h2")
        log.add(key, facts.escalated("h1"))
        await role.produce(log)
        role.start_ready()
        until_told(role, receiver, ("hold_opened", "h2"), ("hold_escalated", "h1"))
    assert [found.id for found in receiver.requests].count(receiver.requests[0].id) == 1


async def test_notifier_frozen_for_longer_than_its_session_ends_and_loses_nothing(
    role: NotifierRole,
) -> None:
    log = facts.history()
    with receiving() as receiver:
        role.tell(to_webhook(receiver.url))
        role.start_ready()
        facts.hold_call(log, "h1")
        await role.produce(log)
        until_told(role, receiver, ("hold_opened", "h1"))
        facts.hold_call(log, "h2")
        await role.produce(log)
        role.freeze(role.session_timeout_s + 2.0)
        assert role.wait_end() == EXIT_FAILED
        assert "The processor was stopped for" in role.log
        facts.hold_call(log, "h3")
        await role.produce(log)
        role.start_ready()
        until_told(role, receiver, *[("hold_opened", name) for name in ("h1", "h2", "h3")])
    assert receiver.types() == [("hold_opened", name) for name in ("h1", "h2", "h3")]


async def recreate(role: NotifierRole) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=role.bootstrap_servers)
    await admin.start()
    try:
        await admin.delete_topics([role.topics.executions])
    finally:
        await admin.close()
    await ensure_topics(role.bootstrap_servers, topics=role.topics, partitions=role.partitions)


async def test_notifier_stopped_while_a_mail_hangs_ends_in_peace(role: NotifierRole) -> None:
    log = facts.history()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        people = "from=placet@example.com&to=ann@example.com&mode=insecure&cto=2"
        role.variables = {"MAIL": f"mailto://127.0.0.1:{silent.getsockname()[1]}?{people}"}
        mail = {"id": "m", "when": {"events": ["hold_opened"]}, "to": [{"apprise": {"url_env": "MAIL"}}]}
        role.tell(mail)
        role.start_ready()
        facts.hold_call(log, "h1")
        await role.produce(log)
        silent.settimeout(30)
        with silent.accept()[0]:
            assert role.stop() == 0
    for word in ("Event loop is closed", "Traceback", "never awaited", "exception calling callback"):
        assert word not in role.log, role.log[-4000:]
