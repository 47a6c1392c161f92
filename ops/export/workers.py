"""An export by several processes: each reads some partitions into files, and the calling one commits their rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import msgspec

from ops.export.errors import OutputUnusableError
from ops.export.reading import Round, Stretch, Work, rounds
from ops.export.run import Growth
from ops.log_workers import Teller, opened_log, run_by

_ENCODE = msgspec.msgpack.Encoder().encode
_ROUND = msgspec.msgpack.Decoder(Round)


@dataclass(frozen=True, slots=True)
class Job:
    """What one worker reads, of which log, and how."""

    settings: Mapping[str, str]
    work: Work
    stretches: Sequence[Stretch]


def export_by(jobs: Sequence[Job], growth: Growth) -> None:
    """Add what the jobs read to the folder (see `run_by`).

    Raises:
        OpsError: the log cannot be read, or a file cannot be written; what was committed before stays.
    """
    run_by(_export, jobs, lambda content: growth.take(_ROUND.decode(content)), growth.moved)


async def _export(job: Job, teller: Teller) -> None:
    """Read the stretches of a job, and tell each round."""
    try:
        async with opened_log(job.settings) as log:
            for stretch in job.stretches:
                async with aclosing(rounds(log, job.work, stretch, teller.moved)) as ended:
                    async for one in ended:
                        teller.found(_ENCODE(one))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except OSError as error:
        raise OutputUnusableError(job.work.staging.parent, error) from error
