"""What deciders carry is believed from their own key, from nobody else, and that key for nothing else."""

from __future__ import annotations

import pytest

from schemas.actor import Actor, decider_actor, system_actor
from schemas.commands import COMMANDS, ExpireDue
from schemas.envelope import BY_DECIDER, DECIDERS_ALONE, Verifier
from schemas.message import Message
from schemas.record import UnreadableRecord
from tests.schemas import samples
from tests.schemas.test_envelope import (
    ANN,
    BOT,
    DECIDER,
    GATEWAY,
    KEYS,
    agent_token,
    assert_unbelievable,
    draft,
    raw_of,
    verifier,
    with_headers,
)
from tests.schemas.token_commands import with_token

CARRIER = decider_actor("acme", "default")
EVERY_COMMAND = [samples.full(model) for model in COMMANDS]


@pytest.mark.parametrize("body", EVERY_COMMAND, ids=lambda body: type(body).__name__)
def test_read_of_a_deciders_signature_is_believed_for_what_deciders_carry_alone(body: Message) -> None:
    raw = raw_of(DECIDER.sign([draft(actor=CARRIER, body=body)])[0])
    if isinstance(body, BY_DECIDER):
        command = verifier().read(raw)
        assert (command.body, command.actor) == (body, CARRIER)
        assert dict(raw.headers)["ce_source"] == b"/placet/decider"
    else:
        assert_unbelievable(raw)


@pytest.mark.parametrize("actor", [ANN, BOT, CARRIER], ids=["person", "agent", "decider"])
@pytest.mark.parametrize("body", EVERY_COMMAND, ids=lambda body: type(body).__name__)
def test_read_of_a_gateways_signature_is_not_believed_for_what_deciders_alone_ask(
    body: Message, actor: Actor
) -> None:
    raw = raw_of(GATEWAY.sign([draft(actor=actor, body=body)])[0])
    # A nudge has no sender: signed, it is nobody's.
    if isinstance(body, (*DECIDERS_ALONE, ExpireDue)) or actor == CARRIER:
        assert_unbelievable(raw)
    else:
        assert verifier().read(raw).body == body


@pytest.mark.parametrize("body", [b for b in EVERY_COMMAND if isinstance(b, BY_DECIDER)])
def test_read_of_a_deciders_command_without_its_key_is_unbelievable(body: Message) -> None:
    carried = draft(actor=CARRIER, body=body)
    assert_unbelievable(raw_of(with_token(carried, "good")))
    unsigned = with_headers(
        DECIDER.sign([carried])[0], placet_signature=None, placet_envelope=None, ce_type=b"placet.ExpireDue"
    )
    assert_unbelievable(unsigned, "unbelievable")
    with pytest.raises(UnreadableRecord):
        Verifier(KEYS.get, agent_token).read(raw_of(DECIDER.sign([carried])[0]))


@pytest.mark.parametrize(
    "actor",
    [
        ANN,
        BOT,
        system_actor("acme", "default"),
        CARRIER.model_copy(update={"roles": ("system", "admin")}),
        CARRIER.model_copy(update={"agent": "bot"}),
    ],
)
def test_read_of_a_deciders_signature_for_somebody_else_is_unbelievable(actor: Actor) -> None:
    for body in EVERY_COMMAND:
        assert_unbelievable(raw_of(DECIDER.sign([draft(actor=actor, body=body)])[0]))
