"""The modules that protoc made of the .proto files are those of the files as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.house.sources import ROOT, name, tracked_files


def test_modules_of_the_protos_are_up_to_date(tmp_path: Path) -> None:
    protos = [name(path) for path in tracked_files() if path.suffix == ".proto"]
    assert protos
    outputs = [f"--{kind}_out={tmp_path}" for kind in ("python", "pyi", "grpc_python")]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", ".", *outputs, *protos]
    subprocess.run(command, cwd=ROOT, check=True)
    made = {path.relative_to(tmp_path): path.read_text("utf-8") for path in tmp_path.rglob("*_pb2*")}
    assert made
    assert {path: (ROOT / path).read_text("utf-8") for path in made} == made, "make protos"
