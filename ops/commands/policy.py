"""`placet policy check|test|diff`: run a policy file through the server's own engine before it is published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ops.commands.against import a_server, named, print_difference, server
from ops.commands.common import JsonOption, errors_as_exit_codes, print_json, print_line
from ops.errors import UsageError
from placet.cli import policy_warnings
from placet.errors import NotFound
from schemas.policy_document import PolicyDocument, policy_from_value
from schemas.policy_problems import PolicyRefused, Problem
from services.domain.policy.cases import CaseFile, CaseResult, facts_of, parse_cases, run_policy_tests
from services.domain.policy.check import check_text
from services.domain.policy.diff import PolicyDiff, diff
from services.domain.policy.verdict import CallFacts

EXIT_REFUSED = 1

AgainstOption = Annotated[
    str | None,
    typer.Option(
        metavar="SERVER",
        help="Compare with what is in force at this gateway (URL).",
        callback=a_server,
    ),
]
PolicyFile = Annotated[Path, typer.Argument(help="A policy document (YAML).", dir_okay=False)]


def check_command(
    context: typer.Context,
    file: PolicyFile,
    tool: Annotated[
        list[str] | None,
        typer.Option(help="A published tool's name to match patterns against; may be repeated."),
    ] = None,
    against: AgainstOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show each warning.")] = False,
    json: JsonOption = False,
) -> None:
    """Check a policy: typos, expressions, rules that are never reached. Exit 1 if it cannot be published.

    With --against, also check it against a server's published tools and policies, and which rules shadow others.
    """
    with errors_as_exit_codes():
        text = _read(file)
        name = named(text)
        # A policy without a name cannot be compared; the check below reports the missing name.
        looked: Mapping[str, Any] = {}
        if against is not None and name is not None:
            with server(context, against) as placet:
                looked = placet.policies.check(name, text)
            problems = [Problem(**problem) for problem in looked["problems"]]
        else:
            _, problems = check_text(text, set(tool) if tool else None)
        if json:
            print_json({**looked, "problems": [problem.model_dump() for problem in problems]})
        else:
            _print_problems(file, problems, verbose)
            if looked.get("difference"):
                print_difference(f"against version {looked['in_force']} in force", looked["difference"])
        _exit_if(any(problem.severity == "error" for problem in problems))


def cases_command(
    file: PolicyFile,
    cases: Annotated[
        Path | None,
        typer.Option(help="The cases; by default FILE with .tests.yaml instead of .yaml.", dir_okay=False),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run a policy's test cases: calls and their expected verdicts. Exit 1 if one fails."""
    with errors_as_exit_codes():
        document = document_in(file)
        case_file = _cases(cases or _cases_beside(file))
        results = run_policy_tests(document, case_file)
        if json:
            print_json({"cases": [_case_row(result) for result in results]})
        else:
            _print_results(results)
        _exit_if(not all(result.passed for result in results))


def diff_command(
    context: typer.Context,
    old: Annotated[Path, typer.Argument(help="The old policy; without NEW: the new one.", dir_okay=False)],
    new: Annotated[
        Path | None,
        typer.Argument(
            help="The new policy; without it, OLD is compared with the policy in force.",
            dir_okay=False,
        ),
    ] = None,
    cases: Annotated[
        Path | None, typer.Option(help="Cases whose calls both policies judge.", dir_okay=False)
    ] = None,
    against: AgainstOption = None,
    json: JsonOption = False,
) -> None:
    """Compare two policies: rules added, removed, changed, moved, and calls whose verdict would change.

    A single file is compared with the version in force at a server: --against, or the one that other commands use.
    """
    with errors_as_exit_codes():
        if new is not None and against is not None:
            raise UsageError(f"{new} and --against {against} exclude each other: leave out NEW or --against")
        samples = _cases(cases) if cases else None
        if new is None:
            document = document_in(old)
            before = _in_force(context, against, document.policy)
        else:
            before, document = document_in(old), document_in(new)
        row = _diff_row(diff(before, document, _calls(samples) if samples else []))
        for call in row["calls"]:
            call["case"] = samples.cases[call["index"]].name if samples else ""
        if json:
            print_json(row)
        else:
            print_difference("", row)


def _in_force(context: typer.Context, against: str | None, name: str) -> PolicyDocument:
    try:
        with server(context, against) as placet:
            found = placet.policies.get(name)
    except NotFound as error:
        return _nothing(name, error.detail)
    if found["retired_at"] is not None:
        return _nothing(name, f"version {found['version']} was retired")
    try:
        return policy_from_value(found["document"])
    except PolicyRefused as error:
        raise UsageError(f"version {found['version']} of {name}, in force: {error}") from error


def _nothing(name: str, why: str) -> PolicyDocument:
    """An empty policy to compare with, if no policy of this name is in force."""
    print_line(f"no policy {name} is in force: every rule counts as added ({why})", err=True)
    return PolicyDocument(policy=name)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 (byte {error.start}).") from error
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror}): name a file that exists.") from error


def document_in(file: Path) -> PolicyDocument:
    """The policy in a file.

    Raises:
        UsageError: it cannot be read, or could not be published; with every problem.
    """
    document, problems = check_text(_read(file))
    errors = tuple(problem for problem in problems if problem.severity == "error")
    if document is None or errors:
        raise _refused(file, errors)
    return document


def _cases_beside(file: Path) -> Path:
    """The file of a policy's cases, if none is named.

    Raises:
        UsageError: there is none.
    """
    beside = file.with_suffix(".tests.yaml")
    if not beside.exists():
        raise UsageError(
            f"{beside} does not exist: write the policy's cases there, or name their file with --cases"
            " (docs/policy.md shows the form)."
        )
    return beside


def _cases(file: Path) -> CaseFile:
    try:
        return parse_cases(_read(file))
    except PolicyRefused as error:
        raise _refused(file, error.problems) from error


def _refused(file: Path, problems: Iterable[Problem]) -> UsageError:
    """Every problem of a file, one a line."""
    return UsageError("\n".join(f"{file}: {problem.path}: {problem.message}" for problem in problems))


def _calls(cases: CaseFile) -> list[CallFacts]:
    return [facts_of(case.call, cases.tools) for case in cases.cases]


def _exit_if(refused: bool) -> None:
    if refused:
        raise typer.Exit(EXIT_REFUSED)


def _print_problems(file: Path, problems: list[Problem], verbose: bool) -> None:
    for problem in problems:
        if problem.severity == "error":
            print_line(f"{file}: error: {problem.path}: {problem.message}")
    warnings = [problem.model_dump() for problem in problems if problem.severity == "warning"]
    for line in policy_warnings.lines(warnings, verbose=verbose):
        print_line(f"{file}: warning: {line}")
    if not problems:
        print_line(f"{file}: no problems")


def _case_row(result: CaseResult) -> dict[str, Any]:
    return {"name": result.name, "passed": result.passed, "differences": list(result.differences)}


def _print_results(results: list[CaseResult]) -> None:
    for result in results:
        print_line(f"{'ok    ' if result.passed else 'FAILED'} {result.name}")
        for difference in result.differences:
            print_line(f"       {difference}")
    failed = sum(not result.passed for result in results)
    print_line(f"{len(results) - failed} passed, {failed} failed")


def _diff_row(found: PolicyDiff) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(found)
    return row
