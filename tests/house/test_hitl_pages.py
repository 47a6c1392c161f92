"""Every block of text in docs/hitl is run by the test that the comment above it names."""

from __future__ import annotations

import ast

import pytest

from schemas import limits
from schemas.questions.rules import DEFAULT_TIMEOUT_MS
from tests.house.sources import ROOT
from tests.pages import PAGES, Block, blocks

HITL = tuple(page for page in PAGES if page.parent.name == "hitl")
NAMED = [block for block in blocks() if block.test]


def test_pages_are_there() -> None:
    names = {page.stem for page in HITL}
    assert names >= {
        "README",
        "api-reference",
        "architecture",
        "frontend-guide",
        "integration",
        "request-types",
        "troubleshooting",
    }


def test_every_block_names_its_test() -> None:
    assert [f"{block.page.name}: {block.text[:60]}" for block in blocks(*HITL) if not block.test] == []


@pytest.mark.parametrize("block", NAMED, ids=lambda block: f"{block.page.stem}-{block.test}")
def test_test_of_a_block_is_there_and_takes_it(block: Block) -> None:
    module = ast.parse((ROOT / block.file).read_text(encoding="utf-8"))
    (test,) = (
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == block.test
    )
    assert "page_blocks" in {argument.arg for argument in test.args.args}


def test_page_on_request_types_has_the_figures_of_the_code() -> None:
    page = next(page for page in HITL if page.stem == "request-types").read_text(encoding="utf-8")
    assert page.count(f"{DEFAULT_TIMEOUT_MS // 1000} s") == 3
    assert f"at most {limits.DEADLINE_MAX_S // 86_400} days" in page
    assert limits.SECRETS_LEASE_MS == 5 * 60_000
    assert limits.ARGUMENTS_MAX_BYTES == 256 * 1024
