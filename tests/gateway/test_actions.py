"""A verb is said once: every door, and what is published of it, is made of what stands in `gateway.actions`."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.actions import calls, executions, holds, standing_rules
from gateway.actions.verb import Action
from gateway.sockets.protocol import CLIENT_MESSAGES, HoldChanged, type_of
from gateway.sockets.verbs import VERBS as OF_SOCKETS
from schemas.events import holds as h
from tests.clients.documents import document

ROUTES = (
    *(("/v1/executions/{execution_id}/tool-calls/{call_id}", verb) for verb in calls.VERBS),
    *(("/v1/executions/{execution_id}", verb) for verb in executions.VERBS),
    *(("/v1/holds/{hold_id}", verb) for verb in holds.VERBS),
    *(("/v1/standing-rules/{rule_id}", verb) for verb in standing_rules.VERBS),
)
OF_MESSAGES = [verb for verb in (*calls.VERBS, *holds.VERBS) if verb.message is not None]


@pytest.mark.parametrize(("subject", "verb"), ROUTES, ids=[verb.operation for _, verb in ROUTES])
def test_every_verb_has_its_route_with_its_words_and_body(subject: str, verb: Action[Any]) -> None:
    operation = document()["paths"][f"{subject}/{verb.name}"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]

    assert (operation["operationId"], operation["description"]) == (verb.operation, verb.says)
    assert schema == {"$ref": f"#/components/schemas/{verb.body.__name__}"}


@pytest.mark.parametrize("verb", OF_MESSAGES, ids=[verb.operation for verb in OF_MESSAGES])
def test_verb_with_a_message_is_taken_by_the_socket_and_published(verb: Action[Any]) -> None:
    assert verb.message in CLIENT_MESSAGES
    assert type_of(verb.message) in OF_SOCKETS


def test_reader_is_told_of_every_verb_by_a_word_that_is_published() -> None:
    told = {verb.notified.word for verb in holds.VERBS if verb.notified is not None}
    assert len(told) == len(holds.VERBS)
    assert told < set(HoldChanged.model_json_schema()["properties"]["change"]["enum"])


def test_of_several_changes_of_one_command_the_highest_rank_is_told() -> None:
    assert list(holds.CHANGES)[-1] is h.DecisionRecorded
    assert list(holds.CHANGES).index(h.HoldExpired) > list(holds.CHANGES).index(h.HoldEscalated)


def test_no_two_verbs_of_a_subject_are_told_with_one_rank() -> None:
    ranks = [verb.notified.rank for verb in holds.VERBS if verb.notified is not None]
    assert len(set(ranks)) == len(ranks)
