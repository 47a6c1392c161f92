import pytest

from gateway.vault.store import VaultUnavailable
from host.errors import (
    EXIT_UNREACHABLE,
    EXIT_USAGE,
    AddressTaken,
    OperatorError,
    SettingsRefused,
    end_process,
)
from host.key_files import KeysUnreadable
from log.errors import LogUnreachable, PartitionsDiffer
from projections.store.port import ViewUnavailable
from schemas.signed_from import SignedFromUnreadable


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsRefused("gateway_port is no number"), EXIT_USAGE),
        (AddressTaken("127.0.0.1:1 cannot be listened on"), EXIT_USAGE),
        (KeysUnreadable("grants.pem is not a private key"), EXIT_USAGE),
        (SignedFromUnreadable("signed-from.json is missing"), EXIT_USAGE),
        (PartitionsDiffer("placet.trust", 3, 4), EXIT_USAGE),
        (LogUnreachable("127.0.0.1:9", "nobody answers"), EXIT_UNREACHABLE),
        (ViewUnavailable("no view"), EXIT_UNREACHABLE),
        (VaultUnavailable("no vault"), EXIT_UNREACHABLE),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, OperatorError) else "",
)
def test_exit_code_says_whether_what_was_given_must_be_mended(error: OperatorError, code: int) -> None:
    assert error.exit_code == code


def test_end_process_writes_one_line_and_ends_with_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        end_process(SettingsRefused("mend it"), EXIT_USAGE)
    assert ended.value.code == EXIT_USAGE
    assert capsys.readouterr().err == "mend it\n"


def test_end_process_indents_the_further_lines_of_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        end_process(SettingsRefused("mend these:\na\nb\n"), EXIT_USAGE)
    assert capsys.readouterr().err == "mend these:\n    a\n    b\n"


def test_end_process_shows_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        end_process(SettingsRefused("mend \x1b[2Jit\r"), EXIT_USAGE)
    assert capsys.readouterr().err == "mend \\u{1b}[2Jit\\u{d}\n"


def test_what_a_database_says_on_several_lines_is_told_on_one() -> None:
    said = "it is closed\n\tThis probably means the server ended\n\tbefore or while processing the request.\n"
    told = "it is closed This probably means the server ended before or while processing the request."
    assert str(ViewUnavailable(said)) == told
