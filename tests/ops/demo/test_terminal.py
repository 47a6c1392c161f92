from __future__ import annotations

import asyncio
import os
import pty

from ops.demo.terminal import Lines


async def test_lines_come_whole_and_end_with_the_input() -> None:
    reads, writes = os.pipe()
    try:
        async with Lines(reads) as lines:
            os.write(writes, b"appr")
            os.write(writes, b"ove\nwarum ")
            assert await lines.next() == "approve"
            os.write(writes, "nicht? ü\n".encode())
            assert await lines.next() == "warum nicht? ü"
            os.close(writes)
            assert await lines.next() is None
    finally:
        os.close(reads)


async def test_line_that_was_typed_before_the_question_is_not_its_answer() -> None:
    screen, side = pty.openpty()
    try:
        async with Lines(side) as lines:
            # One line is read already, the other waits at the terminal.
            os.write(screen, b"early\n")
            await asyncio.wait_for(_has_come(lines), 30)
            os.write(screen, b"and more\n")
            answer = asyncio.create_task(lines.next())
            await asyncio.sleep(0)
            os.write(screen, b"late\n")
            assert await answer == "late"
    finally:
        os.close(screen)
        os.close(side)


async def _has_come(lines: Lines) -> None:
    """Until a line that was typed is read."""
    while lines._queue.empty():
        await asyncio.sleep(0)
