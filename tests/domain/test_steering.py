"""Pausing and resuming a run: what its own agent may end again, and what only a person may."""

from schemas import commands as k
from schemas.actor import Actor
from schemas.events.executions import ExecutionPaused
from schemas.message import Message
from schemas.record import Event, EventMeta
from tests.domain.steps import code, started
from tests.domain.world import ANNA, BOT, OLGA, OTHER_BOT, PROJECT, RITA, TENANT, World, names, the

SERVICE = Actor(subject="scheduler", tenant=TENANT, project=PROJECT, roles=("operator",))
# A token for one agent that also names a reviewer's role: it stays that agent's.
MIGHTY_BOT = Actor(
    subject="mighty", tenant=TENANT, project=PROJECT, roles=("agent", "reviewer"), agent="bot-2"
)


def paused(world: World, by: Actor) -> list[Message]:
    return world.ask(k.PauseExecution(reason="look"), by)


def resumed(world: World, by: Actor) -> list[Message]:
    return world.ask(k.ResumeExecution(), by)


def test_resume_by_the_agent_of_what_a_person_or_service_paused_is_refused_and_it_stays_paused() -> None:
    for person in (RITA, OLGA, SERVICE):
        world = started()
        assert the(paused(world, person), "ExecutionPaused").agent is None

        refused = the(resumed(world, BOT), "CommandRefused")

        assert (refused.code, world.state().lifecycle) == ("not_authorised", "paused")
        assert "reviewer or operator must resume" in refused.detail
        assert names(resumed(world, RITA)) == ["ExecutionResumed"], "any person who may steer ends it"


def test_resume_by_the_agent_of_its_own_pause_goes_through() -> None:
    world = started()
    assert the(paused(world, BOT), "ExecutionPaused").agent == "bot"

    assert names(resumed(world, BOT)) == ["ExecutionResumed"]
    assert world.state().paused_by_agent == ""
    paused(world, RITA)
    assert code(resumed(world, BOT)) == "not_authorised", (
        "an earlier pause of its own gives it no right to this"
    )


def test_resume_by_a_person_of_the_agents_pause_goes_through() -> None:
    world = started()
    paused(world, BOT)

    assert names(resumed(world, RITA)) == ["ExecutionResumed"]


def test_pause_by_a_person_of_what_the_agent_paused_takes_the_pause_over() -> None:
    """Told that it is paused already, a person relies on it: the agent may not end it behind their back."""
    world = started()
    paused(world, BOT)

    assert names(paused(world, RITA)) == ["ExecutionPaused"]
    assert code(resumed(world, BOT)) == "not_authorised"
    assert code(paused(world, OLGA)) == "duplicate"


def test_pause_by_the_agent_of_what_a_person_paused_changes_nothing() -> None:
    world = started()
    paused(world, RITA)

    assert code(paused(world, BOT)) == "duplicate"
    assert code(resumed(world, BOT)) == "not_authorised"


def test_steer_by_another_agents_token_is_refused_whatever_roles_it_names() -> None:
    world = started()
    for stranger in (OTHER_BOT, MIGHTY_BOT, ANNA):
        assert code(paused(world, stranger)) == "not_authorised"
        assert code(world.ask(k.CancelExecution(), stranger)) == "not_authorised"
    paused(world, BOT)
    assert code(resumed(world, MIGHTY_BOT)) == "not_authorised"


def test_resume_of_a_run_that_is_not_paused_or_over_says_so() -> None:
    world = started()
    assert code(resumed(world, BOT)) == "not_open"
    paused(world, RITA)
    world.ask(k.CancelExecution(), BOT)

    assert code(resumed(world, BOT)) == "execution_closed"


def test_pause_recorded_before_it_named_an_agent_counts_as_a_persons() -> None:
    world = started()
    meta = EventMeta("e", world.now_ms, 0, 2, "old", "", TENANT, 0)
    world.partition.apply(Event(ExecutionPaused(reason="", by="bot"), meta, world.key(), 0, 1))

    assert code(resumed(world, BOT)) == "not_authorised"
    assert names(resumed(world, RITA)) == ["ExecutionResumed"]
