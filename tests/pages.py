"""The blocks of text in documents that tests run as they stand: a comment above each names its test."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", DOCS / "sdk.md", DOCS / "consume.md", *sorted((DOCS / "hitl").glob("*.md")))
BLOCK = re.compile(r"^(?:<!-- run: (\S+?)::(\w+) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Where the gateway is, in the text of a page.
ADDRESS = "http://127.0.0.1:8000"


class Block(NamedTuple):
    """A block of a page; `file` and `test` are empty if no test is named."""

    page: Path
    file: str
    test: str
    language: str
    text: str

    async def run(self, url: str, **names: Any) -> dict[str, Any]:
        """Run it as Python, also with `await` outside of a function; what it leaves behind."""
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        text = self.text.replace(ADDRESS, url)
        found = eval(compile(text, self.page.name, "exec", flags), names)
        if inspect.iscoroutine(found):
            await found
        return names


def blocks(*pages: Path) -> Iterator[Block]:
    """The blocks of the pages, in order."""
    for page in pages or PAGES:
        for file, test, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            yield Block(page, file, test, language, text)


def blocks_of(file: Path, test: str) -> list[Block]:
    """The blocks that name a test, in order.

    Raises:
        AssertionError: there are none.
    """
    named = file.relative_to(ROOT).as_posix()
    found = [block for block in blocks() if (block.file, block.test) == (named, test)]
    assert found, f"no page names {named}::{test}"
    return found
