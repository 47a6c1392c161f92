"""`placet policy check|test|diff`: what the server's own engine says of a policy file, before it is published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ops.commands.common import JsonOption, errors_as_exit_codes, print_json
from ops.errors import UsageError
from schemas.policy_document import PolicyDocument, parse_policy
from schemas.policy_problems import PolicyRefused, Problem
from services.domain.policy.cases import CaseFile, CaseResult, facts_of, parse_cases, run_policy_tests
from services.domain.policy.check import check_text
from services.domain.policy.diff import PolicyDiff, diff
from services.domain.policy.verdict import CallFacts

EXIT_REFUSED = 1

PolicyFile = Annotated[Path, typer.Argument(help="A policy document (YAML).", dir_okay=False)]


def check_command(
    file: PolicyFile,
    tool: Annotated[
        list[str] | None,
        typer.Option(help="A published tool's name; repeat it: patterns are compared with them."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check a policy: typos, expressions, rules that are never reached. Exit 1 when it cannot be published."""
    with errors_as_exit_codes():
        _, problems = check_text(_read(file), set(tool) if tool else None)
        if json:
            print_json({"problems": [problem.model_dump() for problem in problems]})
        else:
            _print_problems(file, problems)
        _exit_if(any(problem.severity == "error" for problem in problems))


def cases_command(
    file: PolicyFile,
    cases: Annotated[
        Path | None,
        typer.Option(help="The cases; FILE with .tests.yaml for .yaml by default.", dir_okay=False),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run a policy's own cases: calls, and the verdicts that they must get. Exit 1 when one fails."""
    with errors_as_exit_codes():
        document = _document(file)
        case_file = _cases(cases or file.with_suffix(".tests.yaml"))
        results = run_policy_tests(document, case_file)
        if json:
            print_json({"cases": [_case_row(result) for result in results]})
        else:
            _print_results(results)
        _exit_if(not all(result.passed for result in results))


def diff_command(
    old: Annotated[Path, typer.Argument(help="The policy as it is.", dir_okay=False)],
    new: Annotated[Path, typer.Argument(help="The policy as it would be.", dir_okay=False)],
    cases: Annotated[
        Path | None, typer.Option(help="Cases whose calls are judged by both.", dir_okay=False)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare two policies: rules added, removed, changed, moved, and the calls that would be judged otherwise."""
    with errors_as_exit_codes():
        calls = _calls(_cases(cases)) if cases else []
        found = diff(_document(old), _document(new), calls)
        if json:
            print_json(_diff_row(found))
        else:
            _print_diff(found)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror}): name a file that exists.") from error


def _document(file: Path) -> PolicyDocument:
    try:
        return parse_policy(_read(file))
    except PolicyRefused as error:
        raise UsageError(f"{file}: {error}") from error


def _cases(file: Path) -> CaseFile:
    try:
        return parse_cases(_read(file))
    except PolicyRefused as error:
        raise UsageError(f"{file}: {error}") from error


def _calls(cases: CaseFile) -> list[CallFacts]:
    return [facts_of(case.call, cases.tools) for case in cases.cases]


def _exit_if(refused: bool) -> None:
    if refused:
        raise typer.Exit(EXIT_REFUSED)


def _print_problems(file: Path, problems: list[Problem]) -> None:
    for problem in problems:
        typer.echo(f"{file}: {problem.severity}: {problem.path}: {problem.message}")
    if not problems:
        typer.echo(f"{file}: nothing to mend")


def _case_row(result: CaseResult) -> dict[str, Any]:
    return {"name": result.name, "passed": result.passed, "differences": list(result.differences)}


def _print_results(results: list[CaseResult]) -> None:
    for result in results:
        typer.echo(f"{'ok    ' if result.passed else 'FAILED'} {result.name}")
        for difference in result.differences:
            typer.echo(f"       {difference}")
    failed = sum(not result.passed for result in results)
    typer.echo(f"{len(results) - failed} passed, {failed} failed")


def _diff_row(found: PolicyDiff) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(found)
    return row


def _print_diff(found: PolicyDiff) -> None:
    table = Table("what", "where", "how")
    for name in found.added:
        table.add_row("added", name, "")
    for name in found.removed:
        table.add_row("removed", name, "")
    for rule in found.changed:
        table.add_row("changed", rule.rule, ", ".join(rule.fields))
    for name in found.reordered:
        table.add_row("moved", name, "")
    for field in found.fields:
        table.add_row("changed", "(document)", field)
    for call in found.calls:
        table.add_row(
            "judged otherwise", f"case {call.index + 1}: {call.tool}", f"{call.before} → {call.after}"
        )
    if table.row_count:
        Console().print(table)
    else:
        typer.echo("no difference in meaning")
