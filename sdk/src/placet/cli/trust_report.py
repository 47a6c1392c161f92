"""`placet trust report`: what adaptive approval saves, and what people made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli import safe
from placet.cli.choices import a_time, agent_names
from placet.cli.lines import print_rows
from placet.cli.near_names import naming_near_agent
from placet.cli.session import JsonFlag, connect, console, local_time, print_json, print_line
from placet.cli.times import is_ahead
from placet.errors import Unavailable

if TYPE_CHECKING:
    from placet.sync import Placet

UNSAID = {
    "withdrawn": "withdrawn with their run, which counts against the agent",
    "expired": "expired",
    "waiting": "waiting",
}


def report(
    context: typer.Context,
    agent: Annotated[
        str | None, typer.Option(help="Only the calls of this agent.", autocompletion=agent_names)
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only from this time on; by default the last 30 days.", callback=a_time)
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what adaptive approval saves, what its sample found, and what people regretted."""
    with connect(context) as placet, naming_near_agent(placet, agent or ""):
        found = _found(placet, agent, since)
    if since is not None and is_ahead(since):
        console(stderr=True).print(safe.text(f"{since} is in the future: no call is from then on."))
    if as_json:
        print_json(found)
        return
    print_rows(
        ("agent", "weighed", "released by trust", "sampled", "asked", "interruptions saved"),
        [
            (
                one["agent"],
                one["held"],
                one["released"],
                one["sampled"],
                one["asked"],
                "" if one["saved"] is None else f"{one['saved']:.1%}",
            )
            for one in found["agents"]
        ],
        "Trust was weighed for no call in this time.",
    )
    _print_saved(found)
    _print_sample(found["sample"])
    _print_regret(found["regret"])
    _print_time(found)


def _found(placet: Placet, agent: str | None, since: str | None) -> Any:
    """The counts of all that the gateway had read when it was asked: its own views are behind that for a moment."""
    path = "/metrics/approval"
    found = placet.fetch(path, agent=agent, since=since)
    if "cursor" not in found:
        return found
    try:
        return placet.fetch(path, agent=agent, since=since, after=found["cursor"])
    except Unavailable:
        said = "The views are behind: what was proposed and decided last is not counted yet."
        console(stderr=True).print(safe.text(said))
        return found


def _print_saved(found: Mapping[str, Any]) -> None:
    """What a saved interruption is, and how many of them people regretted."""
    if not found["released"]:
        return
    saved, of = found["released"], found["held"]
    said = f"An interruption is saved where trust released a call and nobody was asked about it: {saved} of {of}."
    if regretted := found["regret"]["revoked"] + found["regret"]["harmful"]:
        those = "the one that was" if regretted == 1 else f"the {regretted} that were"
        kept = saved - regretted
        said += f" Without {those} taken back or did harm afterwards: {kept} of {of}, {kept / of:.1%}."
    print_line(safe.text(said, lines=True))


def _print_sample(sample: Mapping[str, Any]) -> None:
    contrary = sample["contrary"]
    said = f"{contrary} of {sample['decided']} sampled calls {_was(contrary)} not approved unchanged"
    _print_share(said, sample)
    if unsaid := [f"{sample[name]} {said}" for name, said in UNSAID.items() if sample.get(name)]:
        print_line(safe.text(f"On other sampled calls nobody decided: {', '.join(unsaid)}.", lines=True))


def _print_regret(regret: Mapping[str, Any]) -> None:
    revoked = regret["revoked"]
    said = (
        f"Of {regret['released']} calls that nobody was asked about, {revoked} {_was(revoked)} taken back and "
        f"{regret['harmful']} did harm, together"
    )
    _print_share(said, regret)


def _print_share(said: str, share: Mapping[str, Any]) -> None:
    """A sentence, and the interval of the share behind it; nothing if there was no case."""
    if share["share"] is not None:
        lower, upper = share.get("lower", 0.0), share["upper"]
        bound = f"{lower:.1%} to {upper:.1%} with {share['confidence']:.0%} confidence"
        print_line(safe.text(f"{said}: {share['share']:.1%}, {bound}.", lines=True))


def _print_time(found: Mapping[str, Any]) -> None:
    """The time that is counted."""
    if "since" in found and "until" in found:
        said = f"From {local_time(found['since'])} to {local_time(found['until'])}."
        print_line(safe.text(said))


def _was(number: int) -> str:
    return "was" if number == 1 else "were"
