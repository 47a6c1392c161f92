"""`make setup` behind a proxy that ends TLS: an index whose certificate only the system, or a named file, knows."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.servers.authority import make_authority
from tests.servers.threaded import serving

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SCRIPT = ROOT / "ops" / "setup" / "certificates.sh"
WHEEL = "small_thing-1.0-py3-none-any.whl"


@dataclass(frozen=True)
class Index:
    """A package index behind TLS, and the authority that vouches for it."""

    url: str
    authority: Path


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    home = tmp_path_factory.mktemp("index")
    (home / "simple" / "small-thing").mkdir(parents=True)
    wheel = _wheel()
    (home / "simple" / "small-thing" / WHEEL).write_bytes(wheel)
    page = f'<a href="{WHEEL}#sha256={hashlib.sha256(wheel).hexdigest()}">{WHEEL}</a>'
    (home / "simple" / "small-thing" / "index.html").write_text(page)
    authority = make_authority(home)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(home)))
    server.socket = authority.server_context().wrap_socket(server.socket, server_side=True)
    with serving(server):
        yield Index(f"https://127.0.0.1:{server.server_port}/simple", authority.ca_file)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002


def _wheel() -> bytes:
    buffer = io.BytesIO()
    info = "small_thing-1.0.dist-info"
    files = {
        "small_thing.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: small-thing\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD")))
    return buffer.getvalue()


def installed(
    index: Index, target: Path, command: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """What an installer does in the script's environment, with no other word on certificates than the given."""
    plain = {"PATH": "/usr/bin:/bin", "HOME": str(target), "UV_CACHE_DIR": str(target / "cache")}
    line = (
        f". {SCRIPT}; {command} --target {target / 'there'} --index-url {index.url} small-thing"
        " || { about_certificates; exit 1; }"
    )
    return subprocess.run(
        ["/bin/sh", "-euc", line],
        env={**plain, "NO_PROXY": "*", "PIP_CONFIG_FILE": "/dev/null", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    "command",
    [
        f"{BIN}/python -m pip install --quiet --no-cache-dir --retries 0",
        f"{BIN}/uv pip install --python {BIN}/python",
    ],
    ids=["pip", "uv"],
)
def test_package_of_an_index_that_a_companys_authority_vouches_for(
    index: Index, tmp_path: Path, command: str
) -> None:
    done = installed(index, tmp_path, command, SSL_CERT_FILE=str(index.authority))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "there" / "small_thing.py").exists()

    refused = installed(index, tmp_path / "other", command, UV_HTTP_RETRIES="0")
    assert refused.returncode == 1
    assert "SSL_CERT_FILE=/path/to/authority.pem make setup" in refused.stderr


def test_system_certificates_are_used_by_everything_that_installs(tmp_path: Path) -> None:
    said = subprocess.run(
        ["/bin/sh", "-euc", f". {SCRIPT}; env"],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert "UV_SYSTEM_CERTS=1" in said
    bundles = {
        line.partition("=")[2] for line in said if line.startswith(("PIP_CERT=", "REQUESTS_CA_BUNDLE="))
    }
    assert len(bundles) == 1
    assert Path(bundles.pop()).read_text("utf-8").count("BEGIN CERTIFICATE") > 20
    for script in ("environment.sh", "tools.sh", "lock.sh"):
        assert ". ops/setup/certificates.sh" in (SCRIPT.parent / script).read_text("utf-8")


def test_choice_of_whoever_installs_stands() -> None:
    given = {"PATH": "/usr/bin:/bin", "PIP_CERT": "/own.pem", "UV_SYSTEM_CERTS": "0"}
    said = subprocess.run(
        ["/bin/sh", "-euc", f". {SCRIPT}; env"], env=given, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {"PIP_CERT=/own.pem", "UV_SYSTEM_CERTS=0"} <= set(said)
    assert not [line for line in said if line.startswith("REQUESTS_CA_BUNDLE=")]
