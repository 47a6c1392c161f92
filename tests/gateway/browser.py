"""A real browser, and pages for it that a server of their own origin serves."""

from __future__ import annotations

import shutil
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from playwright.async_api import Page, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """Where the browser is.

    Raises:
        AssertionError: it is not installed.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found is not None, "Chromium is not installed: run make chromium"
    return found


@asynccontextmanager
async def open_page(address: str) -> AsyncIterator[Page]:
    """A page in the browser; an error of a script in it fails the test."""
    errors: list[str] = []
    async with async_playwright() as playwright:
        # Where tests run as root, Chromium cannot make its sandbox; it is shown our own pages alone.
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = await browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        await page.goto(address)
        yield page
        await browser.close()
    assert errors == []


@contextmanager
def served(pages: Mapping[str, bytes]) -> Iterator[str]:
    """The origin of a server with these pages, by path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page or b"")

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
