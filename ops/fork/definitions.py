"""What judges a fork: the version of the policy that judged the original, and the tools of the original's project.

A project's own policy goes before the tenant's of the same scope, so a copy in the fork's project judges there as it
judged the original, also if a newer version is in force by now.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ops.fork.access import Access
from ops.fork.errors import ForkError, PolicyLostError
from ops.fork.recorded import Run
from placet import AsyncPlacet, NotFound, PlacetError
from placet.models import Published
from placet.tool_models import Tool
from schemas.ids import TENANT_WIDE

# What the API adds to a tool's definition.
ADDED = ("project", "version", "tool_version", "published_by", "published_at", "cursor")


@dataclass(frozen=True)
class Copied:
    """What was published in the fork's project.

    Attributes:
        policy: the original's policy as verdicts cite it (`name@version`); empty if none judged it.
        others: other versions and policies that judged calls of the original.
        tools: the tools of the original's project.
        changed: tools that have another definition now than when the original proposed them.
    """

    policy: str
    others: tuple[str, ...]
    tools: tuple[str, ...]
    changed: tuple[str, ...]


async def copy_definitions(access: Access, project: str, into: AsyncPlacet, run: Run, label: str) -> Copied:
    """Publish in the fork's project what judged the original.

    Args:
        access: its reader reads the definitions.
        project: the original's.
        into: the person's client in the fork's project.
        run: the original.
        label: the policy that judged the replaced call.

    Raises:
        PolicyLostError: that version of the policy is not known any more.
        ForkError: not all partitions have taken over what was published.
        PlacetError: reading or publishing was refused.
    """
    async with access.of_reader(project) as reader:
        known = [tool async for tool in _tools(reader)]
    versions = {call.tool: call.proposed.tool_version for call in run.calls.values()}
    used = [tool for tool in known if tool.name in versions]
    own = [tool for tool in used if tool.raw["project"] != TENANT_WIDE]
    for tool in own:
        _check_adopted(await into.tools.put(tool.name, definition_of(tool.raw)))
    if label:
        name, document = await _policy(access, project, label)
        _check_adopted(await into.policies.publish(name, document))
    labels = dict.fromkeys(call.verdict.policy_version for call in run.calls.values() if call.verdict)
    seen = {tool.name: str(tool.raw["tool_version"]) for tool in used}
    return Copied(
        label,
        tuple(one for one in labels if one not in ("", label)),
        tuple(tool.name for tool in own),
        tuple(sorted(name for name, version in versions.items() if seen.get(name, "") != version)),
    )


async def retire_policy(into: AsyncPlacet, project: str, label: str) -> None:
    """Take the copy of a policy out of force, if there is one: who looks for the name means the original.

    Raises:
        ForkError: it may still be in force, and how to retire it.
    """
    if not label:
        return
    _, name, _ = place_of(label)
    try:
        with suppress(NotFound):
            await into.policies.retire(name, reason="the fork has ended")
    except PlacetError as error:
        raise ForkError(
            f"The policy {name} may still be in force in the fork's project ({error}): retire it with"
            f" `placet --project {project} policy retire {name}`."
        ) from error


def definition_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's definition as it was published, without what the API adds."""
    return {name: value for name, value in raw.items() if name not in ADDED and value is not None}


def document_for(document: Mapping[str, Any]) -> dict[str, Any]:
    """A policy as it can be published in another project: a project's own policy is for that project anyway."""
    scope = {name: pattern for name, pattern in document.get("scope", {}).items() if name != "project"}
    rest = {name: value for name, value in document.items() if name != "scope"}
    return {**rest, **({"scope": scope} if scope else {})}


def place_of(label: str) -> tuple[str | None, str, int]:
    """The project (None for the tenant), the name and the version in `name@version` or `project/name@version`.

    Raises:
        PolicyLostError: it is no such label.
    """
    place, _, version = label.rpartition("@")
    project, slash, name = place.rpartition("/")
    if not name or not version.isdecimal():
        raise PolicyLostError(f"The original was judged by {label}, which names no published policy.")
    return (project if slash else None), name, int(version)


async def _policy(access: Access, project: str, label: str) -> tuple[str, dict[str, Any]]:
    owner, name, version = place_of(label)
    async with access.of_reader(owner) as reader:
        try:
            found = await reader.policies.get(name, version)
        except NotFound as error:
            raise PolicyLostError(
                f"The policy {label}, by which the original was judged, cannot be read: {error}"
            ) from error
    return name, document_for(found["document"])


async def _tools(reader: AsyncPlacet) -> AsyncIterator[Tool]:
    cursor: str | None = None
    while True:
        page = await reader.tools.list(cursor=cursor)
        for tool in page.items:
            yield tool
        if page.next_cursor in (None, cursor):
            return
        cursor = page.next_cursor


def _check_adopted(published: Published) -> None:
    if not published.raw.get("adopted", True):
        raise ForkError(
            f"{published.name} is published for the fork, and partitions have not taken it over yet: fork again once"
            " `placet status` says that all is ready."
        )
