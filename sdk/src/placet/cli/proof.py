"""`placet audit fetch`, `prove` and `verify`: download the audit trail and verify it against signed heads."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import TimeElapsedColumn

from placet.audit.bundle import Unreadable, read_heads, read_keys
from placet.audit.consistency import MEMBERS as CONSISTENCY_MEMBERS
from placet.audit.findings import Report, counted
from placet.audit.verify import PROOF_MEMBERS, verify_path
from placet.cli import safe
from placet.cli.fetching import Fetch
from placet.cli.impact import impact
from placet.cli.lists import audit_app
from placet.cli.progress import bar
from placet.cli.session import JsonFlag, connect, console, print_json
from placet.errors import Unavailable
from placet.ids import check_id, segment
from placet.sync import Placet

# These commands are in the same group as the list of that name.
app = audit_app
app.command()(impact)
NOT_VERIFIED, USAGE = 1, 2
TRIES = 3
# Each needs a request; for a longer file there is `fetch`.
SINCE_MAX = 100
# A head is signed some seconds after the records that it covers: the command waits for it.
HEAD_WITHIN_S, LOOK_EVERY_S = 60.0, 1.0

KeyFile = Annotated[
    Path | None, typer.Option("--key", help="The installation's audit keys, a copy of keys/audit.json.")
]
HeadFile = Annotated[
    Path | None, typer.Option("--head", help="Heads that were kept elsewhere, one per line.", dir_okay=False)
]


@app.command()
def fetch(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="The directory; only new records are fetched.")],
    as_json: JsonFlag = False,
) -> None:
    """Fetch the tenant's audit records and heads, to verify them offline."""
    with connect(context) as placet, bar(TimeElapsedColumn(), show=not as_json, transient=True) as shown:
        task = shown.add_task("fetching", total=None)
        found = Fetch(placet, out, lambda done, of: shown.update(task, completed=done, total=of)).run()
    if as_json:
        print_json(found)
        return
    leaves, heads = counted(found["leaves"], "leaf", "leaves"), counted(found["heads"], "head", "heads")
    console().print(f"{leaves} and {heads} are in {out}")


@app.command()
def prove(
    context: typer.Context,
    event_id: Annotated[
        str, typer.Argument(metavar="ID", help="The event_id of an entry in `placet audit --json`.")
    ],
    out: Annotated[Path | None, typer.Option(help="The file for the proof. Default: print it.")] = None,
    since_head: Annotated[
        Path | None,
        typer.Option(
            help="Heads that were kept elsewhere, one per line; the proof covers each of them.",
            dir_okay=False,
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Get the proof that an event is in the signed log."""
    since = sorted({head.number for head in _read_heads(since_head)})
    if len(since) > SINCE_MAX:
        print(
            f"{safe.escaped(str(since_head))} contains {len(since):,} heads, and a proof takes at most {SINCE_MAX}: "
            f"give the newest (tail -n {SINCE_MAX}) here and to verify, or fetch the trail, "
            "which is compared with all of them",
            file=sys.stderr,
        )
        raise typer.Exit(USAGE)
    check_id(event_id, "event id")
    with connect(context) as placet:
        proof = _once_signed(lambda: _proof(placet, event_id, since))
    text = json.dumps(proof, indent=1)
    if out is not None:
        out.write_text(f"{text}\n", "utf-8")
    if as_json:
        print_json(proof)
    elif out is None:
        print(text)
    else:
        console().print(f"the proof is in {out}")


@app.command()
def verify(
    path: Annotated[Path, typer.Argument(exists=True, help="A directory of fetch, or a file of prove.")],
    key: KeyFile = None,
    head: HeadFile = None,
    require_records: Annotated[
        bool, typer.Option("--require-records", help="Fail if a leaf is present only as a hash.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Verify offline, and name the first record that was changed: 0 verified, 1 not, 2 unreadable."""
    kept = _read_heads(head)
    try:
        keys = None if key is None else read_keys(key)
        with bar(TimeElapsedColumn(), show=not as_json, transient=True) as shown:
            task = shown.add_task("verifying", total=None)
            report = verify_path(
                path,
                keys,
                kept,
                lambda done, of: shown.update(task, completed=done, total=of),
                require_records=require_records,
            )
    except Unreadable as error:
        print(safe.escaped(str(error)), file=sys.stderr)
        raise typer.Exit(USAGE) from error
    if as_json:
        print_json(report.as_json())
    else:
        _tell(report)
    if not report.is_verified:
        raise typer.Exit(NOT_VERIFIED)


def _once_signed(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The answer, once a head covers the requested record.

    Raises:
        Unavailable: no head did within a minute.
    """
    give_up_at, is_told = time.monotonic() + HEAD_WITHIN_S, False
    while True:
        try:
            return ask()
        except Unavailable:
            if time.monotonic() >= give_up_at:
                raise
        if not is_told:
            print("no signed head covers it yet: waiting for the next one", file=sys.stderr)
            is_told = True
        time.sleep(LOOK_EVERY_S)


def _proof(placet: Placet, event_id: str, since: Sequence[int]) -> dict[str, Any]:
    for _ in range(TRIES):
        proof = _only(PROOF_MEMBERS, placet.fetch(f"/audit/{segment(event_id)}/proof"))
        proof["keys"] = placet.fetch("/audit/keys")["keys"]
        if not since:
            return proof
        # A head that is newer than the server's newest has no proof; `verify` reports what that means.
        numbers = [number for number in since if number <= proof["head"]["number"]]
        proof["consistency"] = shown = []
        for number in numbers:
            answer = placet.fetch("/audit/consistency", **{"from": str(number)})
            shown.append(_only(CONSISTENCY_MEMBERS, answer))
            # A head may be signed between two requests.
            if answer["second"] != proof["head"]:
                break
        else:
            return proof
    raise Unavailable("unavailable", 503, "heads are signed faster than they can be requested: try again")


def _only(names: Collection[str], answer: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a proof, without those of the request, such as a cursor."""
    return {name: value for name, value in answer.items() if name in names}


def _read_heads(path: Path | None) -> list[Any]:
    if path is None:
        return []
    try:
        return list(read_heads(path))
    except Unreadable as error:
        print(safe.escaped(str(error)), file=sys.stderr)
        raise typer.Exit(USAGE) from error


def _tell(report: Report) -> None:
    for warning in report.warnings:
        print(f"! {safe.escaped(warning)}", file=sys.stderr)
    for finding in report.findings:
        print(safe.escaped(str(finding)))
    print(f"{'verified' if report.is_verified else 'NOT verified'}: {safe.escaped(report.proved)}")
