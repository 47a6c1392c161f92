"""The processes of an export end with it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.house.sources import ROOT

# Less than what a client of Kafka waits for an answer.
WITHIN_S = 4.0
EXPORTING = """
from pathlib import Path
from log.places import TopicPartition
from ops.export.folder import Folder
from ops.export.layout import Format
from ops.export.reading import Stretch, Work
from ops.export.run import Growth
from ops.export.state import Position
from ops.export.workers import Job, export_by

folder = Folder(Path({out!r}), Format.JSONL, verified=False)
settings = {{"bootstrap_servers": {servers!r}, "topic_prefix": "placet", "kafka_settings": ""}}
work = Work(folder.stage(), Format.JSONL, None)
jobs = [
    Job(settings, work, [Stretch(TopicPartition("placet.executions", number), "executions", Position(), 9)])
    for number in range(2)
]
export_by(jobs, Growth(folder, 18, lambda done, of: None))
"""


def test_workers_end_when_the_export_is_killed(tmp_path: Path) -> None:
    """A server that never answers holds the workers; their connections close when they end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        servers = f"127.0.0.1:{server.getsockname()[1]}"
        text = EXPORTING.format(out=str(tmp_path), servers=servers)
        with subprocess.Popen([sys.executable, "-c", text], cwd=ROOT, stderr=subprocess.PIPE) as exporting:
            try:
                connections = [server.accept()[0] for _ in range(2)]
            finally:
                exporting.send_signal(signal.SIGKILL)
        for connection in connections:
            with connection:
                connection.settimeout(WITHIN_S)
                while connection.recv(4096):
                    continue
