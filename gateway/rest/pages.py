"""/holds/{id}: the page that a notification's link opens. It shows a hold to readers who may see it; it is read-only.

Before sign-in the page is the same for every id. The token is entered in a form and sent with it, by POST, to this
gateway; it is not stored, so there is no cookie that another page could use. The page has no script, no style and
nothing from another host, and all of its content is text.
"""

from __future__ import annotations

from html import escape
from urllib.parse import parse_qs

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from gateway.deciding import check_sees_hold
from gateway.operations import executions, holds
from gateway.operations.views import as_opened, view_of
from gateway.problems import Problem
from gateway.rest.request_bodies import read_raw
from gateway.rest.request_context import RequestContext, context_for
from projections.folds.rows import moment
from projections.tables.executions import ExecutionRow
from projections.tables.holds import HoldRow
from schemas.refusals import Refusal

router = APIRouter(prefix="/holds", include_in_schema=False)
TOKEN_MAX_CHARS = 16 * 1024
FORM = "application/x-www-form-urlencoded"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Placet: a hold</title>
</head>
<body>
<main>
<h1>Something waits for a person</h1>
{body}
</main>
</body>
</html>
"""
SIGN_IN = """<p>Sign in to see it. Nothing is decided on this page.</p>
{problem}<form method="post" autocomplete="off">
<p><label>Your token <input type="password" name="token" required autocomplete="off" maxlength="{most}"></label></p>
<p><button type="submit">Show the hold</button></p>
</form>
<p>A token of Placet's own is issued by <code>placet token issue</code>; a token of your company's identity provider
works if this installation accepts it. It is sent only to this address and is not stored. Check the address in the
browser before you paste it.</p>
"""
SHOWN = """<dl>
{facts}</dl>
<h2>What is to be decided</h2>
<pre>{text}</pre>
<h2>How to decide</h2>
<p>{how}</p>
<pre>{commands}</pre>
"""


@router.get("/{hold_id}")
async def sign_in(hold_id: str) -> Response:
    """Show the form; it is the same for an existing hold, an unknown one and an id that no hold can have."""
    return _page(_form(""))


@router.post("/{hold_id}")
async def show(request: Request, hold_id: str) -> Response:
    """Show the hold, for the token in the form."""
    try:
        token = await _token_of(request)
        context = await context_for(request, {"authorization": f"Bearer {token}"})
        return _page(await _shown(context, hold_id))
    except Problem as problem:
        return _page(_form(f'<p role="alert">{_text(problem.detail)}</p>\n'), problem.status)


async def _token_of(request: Request) -> str:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise Problem(Refusal.MALFORMED, "use the form")
    raw = await read_raw(request, TOKEN_MAX_CHARS)
    if raw is None:
        raise Problem(Refusal.TOO_LARGE, "this is not a token: it is too long")
    try:
        values = parse_qs(raw.decode("ascii"), strict_parsing=True, max_num_fields=1)
    except ValueError as error:
        raise Problem(Refusal.MALFORMED, "use the form") from error
    (token,) = values.get("token", [""])
    return token.strip()


async def _shown(context: RequestContext, hold_id: str) -> str:
    reader = context.gate.reader
    row: HoldRow = await reader.read(holds.subject_of(context.actor, hold_id))
    check_sees_hold(context.gate.live, row, context.actor)
    execution: ExecutionRow = await reader.read(executions.subject_of(context.actor, row["execution_id"]))
    row = await as_opened(context.gate, context.actor, row)
    view = await view_of(context.gate, context.actor, row, execution)
    if context.actor.agent is None:
        context.gate.view_times.note(context.actor, hold_id)
    facts = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>\n" for name, value in _facts(row))
    how, commands = _how(row)
    return SHOWN.format(facts=facts, text=_text(view.text), how=how, commands=_text(commands))


def _facts(row: HoldRow) -> list[tuple[str, str]]:
    facts = [("Hold", row["hold_id"]), ("Status", row["status"]), ("Kind", row["kind"])]
    if row["deadline_at_ms"]:
        facts.append(("Deadline", moment(row["deadline_at_ms"]) or ""))
    if row["claimed_by"]:
        facts.append(("Claimed by", row["claimed_by"]))
    if row["decision"]:
        facts.append(("Decided", f"{row['decision']} by {row['decided_by']}"))
    return facts


def _how(row: HoldRow) -> tuple[str, str]:
    hold_id = row["hold_id"]
    if row["status"] != "open":
        return "It is closed: it cannot be decided any more.", f"placet show {hold_id}"
    words = "In a terminal, signed in with PLACET_URL and PLACET_TOKEN:"
    if row["call_id"] is None and row["kind"] != "permission":
        # Variables are asked for one by one: on a command line other users can see them, and a shell keeps them.
        return words, f"placet answer {hold_id}{'' if row['kind'] == 'env_var' else ' VALUE'}"
    seen = f" --seen {row['view_digest']}" if row["view_digest"] else ""
    return words, f"placet approve {hold_id}{seen}\nplacet reject {hold_id} --feedback TEXT"


def _form(problem: str) -> str:
    return SIGN_IN.format(problem=problem, most=TOKEN_MAX_CHARS)


def _page(body: str, status: int = 200) -> Response:
    return HTMLResponse(PAGE.format(body=body), status, HEADERS)


def _text(value: str) -> str:
    """Escape text for HTML; a lone surrogate becomes a question mark."""
    return escape(str(value).encode("utf-8", "replace").decode())
