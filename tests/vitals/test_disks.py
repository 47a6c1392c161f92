"""Disks without room, on real small file systems in a mount namespace of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from vitals.heartbeat import READY
from vitals.process_status import process_status_of

PROGRAM = """
import json, pathlib, subprocess, sys
from tests.integration.full_disk import full
from vitals.process_status import process_status_of
from vitals.heartbeat import observed_state

root, said = pathlib.Path(sys.argv[1]), {}
for name in ("data", "views", "heads"):
    (root / name).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=66m", "tmpfs", root / name], check=True)
settings = {"data_dir": str(root / "data"), "database_url": f"sqlite:///{root}/views/v/views.sqlite"}
settings["audit_heads_dir"] = str(root / "heads" / "h")
for role in ("projector", "decider"):
    status = process_status_of(settings, role)
    status.set_state("ready")
    found = {"before": status.heartbeat()}
    for name in ("data", "views", "heads"):
        with full(root / name):
            found[name] = status.heartbeat()
    said[role] = {name: [observed_state(word, 0.1), word.reason, word.disk] for name, word in found.items()}
print(json.dumps(said))
"""


def test_a_projector_whose_views_or_heads_have_no_room_is_not_ready(tmp_path: Path) -> None:
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *as_root, "--mount", sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    data, views, heads = (
        f"the disk of {what} is full: free space"
        for what in ("the data directory", "the views", "the audit heads")
    )
    assert said["projector"] == {
        "before": ["ready", "", ""],
        "data": ["ready", "", data],
        "views": ["stalled", views, views],
        "heads": ["stalled", heads, heads],
    }
    assert said["decider"] == {
        "before": ["ready", "", ""],
        "data": ["ready", "", data],
        "views": ["ready", "", ""],
        "heads": ["ready", "", ""],
    }


def test_a_word_of_a_process_without_disks_says_nothing_of_them() -> None:
    status = process_status_of({}, "decider")
    status.set_state(READY)
    assert (status.heartbeat().reason, status.heartbeat().disk) == ("", "")
