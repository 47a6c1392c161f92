from __future__ import annotations

import os

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
