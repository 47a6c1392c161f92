"""What documents, comments and messages refer to is there: files, headings, decisions, commands, options, routes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from gateway.rest.routers import ROUTERS
from placet.cli import app as command_line
from tests.house.sources import ROOT, name, tracked_files

TEXTS = (".md", ".py", ".sh", ".yaml", ".yml", ".toml", ".ts", ".mjs", ".js")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PAGE = re.compile(r"(?<![\w/.{*:-])[\w./-]*\w\.md\b")
DECISION = re.compile(r"\b(?:[Dd]ecisions?[ /]|docs/decisions/)(\d{1,4})\b")
# Documents that stand in no tree of ours: what they said is in docs/ or nowhere.
ELSEWHERE = re.compile(r"\(design\b|\b[Tt]he design (says|asks|wants|has)\b|\bdesign, section")
ROUTE = re.compile(r"(?<![\w.-])(/v1(?:/(?:\{[\w.]*\}|[A-Za-z0-9_.:-]+))+)")
CALLED = re.compile(r"\b(?:GET|POST|PUT|DELETE) (/(?:\{[^{}/\n]*\}|[A-Za-z0-9_.:/-]+)+)")
NAMED = re.compile(r"`placet ((?![-{])[^`\n]+)`")
TYPED = re.compile(r"^(?: {4,}|\$ )placet ((?!-)[^\n&]+)", re.MULTILINE)
WORD = re.compile(r"[a-z][a-z-]*")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
# Served beside the application's own routers.
MOUNTED = ("/v1/ws", "/metrics", "/healthz", "/readyz")


@cache
def texts() -> tuple[tuple[Path, str], ...]:
    """The tracked texts that people write."""
    found = [path for path in tracked_files() if path.suffix in TEXTS or path.name == "Makefile"]
    return tuple((path, path.read_text(encoding="utf-8")) for path in found if path != Path(__file__))


def pages() -> list[tuple[Path, str]]:
    return [(path, text) for path, text in texts() if path.suffix == ".md"]


def headings(text: str) -> set[str]:
    """The anchors that a page's headings have."""
    found = (match.group(1).strip().lower() for match in re.finditer(r"^#+ (.+)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in found}


def test_every_link_of_a_page_leads_somewhere() -> None:
    dead = []
    for path, text in pages():
        for link in LINK.findall(text):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = path.parent / file if file else path
            if not target.exists() or (anchor and anchor not in headings(target.read_text(encoding="utf-8"))):
                dead.append(f"{name(path)}: {link}")
    assert dead == []


def test_every_page_and_decision_that_is_named_is_there() -> None:
    dead = []
    numbers = {path.name[:4] for path in (ROOT / "docs" / "decisions").iterdir()}
    for path, text in texts():
        for page in PAGE.findall(text):
            places = (ROOT / page, path.parent / page, ROOT / "docs" / page, ROOT / "docs/decisions" / page)
            if not any(place.exists() for place in places):
                dead.append(f"{name(path)}: {page}")
        for number in DECISION.findall(text):
            if f"{int(number):04d}" not in numbers:
                dead.append(f"{name(path)}: decision {number}")
    assert dead == []


def test_nothing_refers_to_a_document_that_stands_elsewhere() -> None:
    dead = [f"{name(path)}: {match.group(0)}" for path, text in texts() for match in ELSEWHERE.finditer(text)]
    assert dead == []


@cache
def routes() -> tuple[list[str], ...]:
    """The paths that are served, in parts."""
    paths = [getattr(route, "path", "") for router in ROUTERS for route in router.routes]
    return tuple(path.strip("/").split("/") for path in (*paths, *MOUNTED))


def served(path: str) -> bool:
    """Whether a path, or a group of them that it is the beginning of, is served."""
    parts = path.rstrip(".:-").strip("/").split("/")
    return any(
        len(parts) <= len(route)
        and all("{" in own or "{" in part or part == own for part, own in zip(parts, route, strict=False))
        for route in routes()
    )


def test_every_route_that_is_named_is_served() -> None:
    dead = [
        f"{name(path)}: {route}"
        for path, text in texts()
        if not name(path).startswith("tests/")
        for route in ROUTE.findall(text) + (CALLED.findall(text) if path.suffix == ".md" else [])
        if not served(route)
    ]
    assert dead == []


def commands_of(path: Path, text: str) -> Iterator[str]:
    """What is typed behind `placet`, without comments."""
    for pattern in (NAMED, TYPED) if path.suffix in (".md", ".sh") else (NAMED,):
        for match in pattern.finditer(text):
            yield match.group(1).split("   ")[0].split(" #")[0]


@cache
def root() -> Any:
    return typer.main.get_command(command_line.app)


def wrong(typed: str) -> list[str]:
    """The words and options of one line that no command knows.

    What follows `|` or a comma is another command of the same group, or another value of the same argument.
    """
    found: list[str] = []
    group = at = root()
    bare, another = True, False
    for token in re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", typed).replace(",", " , ").replace("|", " | ").split():
        word = token.strip("[]()`.;:")
        if word in ("|", ","):
            another = True
            continue
        if word == "placet":
            group, at, bare = root(), root(), True
        elif word.startswith("--"):
            option = OPTION.match(word)
            if option and option[0] not in {name for parameter in at.params for name in parameter.opts}:
                found.append(f"{typed!r}: no {word}")
            bare = False
        elif another or hasattr(at, "commands"):
            within = group if another else at
            below = within.get_command(typer.Context(within), word) if WORD.fullmatch(word) else None
            if below is not None:
                group, at, bare = within, below, True
            elif bare:
                found.append(f"{typed!r}: no command {word}")
        else:
            bare = False
        another = False
    return found


def test_every_command_and_option_that_is_named_is_there() -> None:
    dead = [
        f"{name(path)}: {problem}"
        for path, text in texts()
        for typed in commands_of(path, text)
        for problem in wrong(typed)
    ]
    assert dead == []


@pytest.mark.parametrize(
    "typed", ["inbxo", "inbox --my", "audit fetsh --out X", "claim | relaese ID", "policy check | tset FILE"]
)
def test_command_that_is_not_there_is_found(typed: str) -> None:
    assert wrong(typed)


def test_route_that_is_not_there_is_found() -> None:
    assert served("/v1/holds/{hold_id}/view")
    assert not served("/v1/openapi.json")
