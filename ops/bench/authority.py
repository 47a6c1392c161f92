"""Authority: what authentication, authorisation and signing take of a gated call, beside what the whole call takes.

The call is measured at a client of a running stack. The parts are the product's own functions, measured alone in this
process, each as often as one call needs it and without the sharing of signatures that calls in flight together have:
so their sum is the most that they can add.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any

from gateway.identity.authentication import Authenticator
from gateway.identity.grants import Grants
from gateway.identity.keys import GATEWAYS, ISSUERS, PublishedKeyFile, load_or_create
from ops.bench import agent
from ops.bench.agent import allowed, run_id, start_many, timed
from ops.bench.bench import Bench
from ops.bench.result import Figure, Result, Target, percentile
from ops.bench.site import PROJECT, TENANT, Site
from ops.bench.websocket import opened_socket
from projections.folds.rows import Row
from schemas.commands import ProposeToolCall
from schemas.envelope import Draft, Signer, Verifier
from schemas.ids import execution_key
from schemas.principals import People, PrincipalDocument
from schemas.record import RawRecord
from services.domain.authority.authority import acts_for_agent

PEOPLE = 1_000
# None of the calls ends, and so many may be open in one execution.
CALLS_EACH = 100
SHARE = Target(0.15)


async def load(job: dict[str, Any]) -> dict[str, Any]:
    """The verdicts' latency at a client, one call in flight."""
    site = Site(**job["site"])
    async with AsyncExitStack() as opened:
        socket = await opened.enter_async_context(opened_socket(site.url, site.agent_token, run_id()))
        name, count = run_id(), job["warm_up"] + job["calls"]
        await start_many(socket, [f"{name}-{n}" for n in range(count // CALLS_EACH + 1)], site.agent)
        times = [
            await timed(_proposed(socket, f"{name}-{number // CALLS_EACH}", number))
            for number in range(count)
        ]
    return {"p50": percentile(times[job["warm_up"] :], 50)}


async def _proposed(socket: Any, name: str, number: int) -> None:
    await allowed(socket, agent.propose(name, f"c{number}"))


def measure(bench: Bench) -> Result:
    """The parts, their sum, and its share of the whole call."""
    found = bench.load(
        "ops.bench.authority:load",
        "verdicts, one in flight",
        warm_up=bench.size(300, 30),
        calls=bench.size(2_000, 150),
    )
    bench.tell("the parts, each alone")
    parts_ms = _parts(bench.site, bench.size(2_000, 200))
    share = Target(SHARE.limit) if not bench.is_quick else None
    return Result(
        "authority",
        (
            Figure("propose → verdict, WebSocket, p50", found["p50"], "ms"),
            *(Figure(name, value, "ms") for name, value in parts_ms.items()),
            Figure("all of them, of the whole call", sum(parts_ms.values()), "ms", found["p50"], share),
        ),
    )


def _parts(site: Site, count: int) -> dict[str, float]:
    keys_dir = Path(site.data_dir) / "keys"
    keys, people = load_or_create(keys_dir), _people()
    authenticator = Authenticator(PublishedKeyFile(keys_dir / ISSUERS).get, people=lambda: people)
    actor = asyncio.run(authenticator.claims(site.agent_token)).actor
    signer = Signer(keys.gateway.kid, keys.gateway.private_key)
    verifier = Verifier(PublishedKeyFile(keys_dir / GATEWAYS).get, _no_token)
    key = execution_key(TENANT, PROJECT, "bench")
    drafts = [
        Draft(ProposeToolCall(call_id=f"c{n}", tool=agent.READ, arguments="{}"), actor, f"id-{n}", key)
        for n in range(count)
    ]
    records = [signer.sign([draft])[0] for draft in drafts]
    raws = [RawRecord(0, n, 0, record.key, record.value, record.headers) for n, record in enumerate(records)]
    grants, rows = Grants(keys_dir), [_released(actor.subject, n) for n in range(count)]
    tenant = people.of(TENANT)
    return {
        "the token looked up, its roles resolved": _median_ms(lambda n: _run(authenticator, site), count),
        "the command signed by the gateway, alone in its batch": _median_ms(
            lambda n: signer.sign([drafts[n]]), count
        ),
        "the command read and verified by the decider": _median_ms(lambda n: verifier.read(raws[n]), count),
        "its roles resolved, and whether it acts for its agent": _median_ms(
            lambda n: acts_for_agent(tenant.resolved(actor), site.agent), count
        ),
        "the grant signed for the agent": _median_ms(lambda n: grants.token(rows[n]), count),
    }


def _run(authenticator: Authenticator, site: Site) -> None:
    # A believed token is looked up without waiting for anything.
    believing = authenticator.claims(site.agent_token)
    try:
        believing.send(None)
    except StopIteration:
        return
    raise RuntimeError("a token that was already verified had to be waited for")


def _people() -> People:
    people = People()
    for number in range(PEOPLE):
        document = PrincipalDocument(
            principal=f"p{number}", subjects=(f"s{number}", f"t{number}"), roles=("reviewer",)
        )
        people = people.with_principal(TENANT, document)
    return people


def _released(subject: str, number: int) -> Row:
    """What a gateway knows of a call that was just released."""
    return {
        "tenant": TENANT,
        "project": PROJECT,
        "execution_id": "bench",
        "call_id": f"c{number}",
        "revision": 1,
        "agent": subject,
        "tool": agent.READ,
        "tool_version": "0" * 64,
        "status": "released",
        "grant_id": f"g{number}",
        "grant_digest": "0" * 64,
        "digest": "0" * 64,
        "updated_at_ms": int(time.time()) * 1000,
        "grant_expires_at_ms": (int(time.time()) + 900) * 1000,
    }


def _no_token(token: str, at_ms: int) -> Any:
    raise ValueError("no record of this benchmark carries a token")


def _median_ms(work: Callable[[int], object], count: int) -> float:
    took = []
    for number in range(count):
        began = time.perf_counter()
        work(number)
        took.append((time.perf_counter() - began) * 1e3)
    return median(took)
