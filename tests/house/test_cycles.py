"""No import goes round in a circle: not among modules, nor among the folders of any room.

A circle inside functions or under TYPE_CHECKING is one as well: its parts can only be understood together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

ROOMS = ("host", "schemas", "vitals", "log", "services", "projections", "gateway", "ops", "placet")

Arrows = Mapping[str, set[str]]


@pytest.fixture(scope="module")
def imports() -> Arrows:
    """Each module of ours with those that it imports."""
    graph = grimp.build_graph(*ROOMS)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def circle(arrows: Arrows) -> list[str]:
    """The members of a circle, the first one at both ends; empty without one."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def among_siblings(arrows: Arrows) -> dict[str, dict[str, set[str]]]:
    """For each folder, which of its members imports which other one, with all that is inside them."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for importer, imported in ((one, other) for one, others in arrows.items() for other in others):
        here, there = importer.split("."), imported.split(".")
        shared = len(common_prefix(here, there))
        # A folder's own module and what is inside it are no siblings.
        if shared < min(len(here), len(there)):
            folder = ".".join(here[:shared])
            found[folder][".".join(here[: shared + 1])].add(".".join(there[: shared + 1]))
    return found


def common_prefix(one: Iterable[str], other: Iterable[str]) -> list[str]:
    """The first parts that two paths share."""
    shared = []
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        shared.append(left)
    return shared


def test_modules_import_in_no_circle(imports: Arrows) -> None:
    assert len(imports) > 600
    assert circle(imports) == []


def test_folders_import_in_no_circle(imports: Arrows) -> None:
    siblings = among_siblings(imports)
    assert {"", "gateway", "services.domain", "projections"} <= set(siblings)
    assert {folder: found for folder, arrows in siblings.items() if (found := circle(arrows))} == {}


def test_circle_of_three_is_found() -> None:
    arrows = {"a.one": {"b.two"}, "b.two": {"c.three"}, "c.three": {"a.other"}, "a.other": set()}
    assert circle(arrows) == []
    assert set(circle(among_siblings(arrows)[""])) == {"a", "b", "c"}
