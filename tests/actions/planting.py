"""A call to plant, and a world in which it is planted."""

from __future__ import annotations

from typing import Any

from schemas.probe_commands import PlantProbe
from tests.domain.world import OLGA, World, the

NOTE = "nobody pays this account"
ARGUMENTS = '{"amount":5,"to":"mallory"}'


def plant(**changes: Any) -> PlantProbe:
    fields = {"agent": "bot", "call_id": "c", "tool": "pay", "arguments": ARGUMENTS, "note": NOTE} | changes
    return PlantProbe(**fields)


def planted(world: World | None = None, **changes: Any) -> tuple[World, Any]:
    """A world with one planted call, and its HoldOpened."""
    world = world or World()
    return world, the(world.ask(plant(**changes), OLGA), "HoldOpened")
