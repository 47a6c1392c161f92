from __future__ import annotations

import subprocess
import sys

from ops.demo.agent import Script
from ops.demo.suites import Job, Office, jobs
from ops.demo.tools import EFFECTS


def _drive(job: Job, obeys: bool = True) -> list[tuple[str, bool]]:
    """Run a script with nobody in the way; what it asked for."""
    script, asked = Script(job), []
    while (wanted := script.next()) is not None:
        call, injected = wanted
        asked.append((call.tool, injected))
        output = job.run(call)
        if obeys:
            script.read(output)
    return asked


def test_command_is_loaded_without_agentdojo() -> None:
    code = "import sys, ops.demo.command; sys.exit('agentdojo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_jobs_are_clean_and_attacked_and_spread_over_the_suites(offices: list[Office]) -> None:
    prepared = list(jobs(offices, 3))
    assert [job.name.partition(".")[0] for job in prepared] == ["workspace"] * 4 + ["slack"] * 2
    assert [job.injection_task is not None for job in prepared] == [False, True] * 3
    assert len({job.name for job in prepared}) == 6


def test_clean_job_does_what_the_task_needs_and_is_done(slack: Office) -> None:
    job = slack.job(slack.suite.user_tasks["user_task_1"])
    asked = _drive(job)
    assert asked == [("read_channel_messages", False), ("get_webpage", False), ("send_direct_message", False)]
    assert job.is_done()
    assert not job.is_compromised()


def test_attacked_agent_that_nobody_stops_does_what_the_attacker_wants(workspace: Office) -> None:
    tasks = workspace.suite
    job = workspace.job(tasks.user_tasks["user_task_22"], tasks.injection_tasks["injection_task_4"])
    assert _drive(job) == [("search_emails", False), ("search_emails", True), ("send_email", True)]
    assert job.is_compromised()


def test_attacked_agent_that_does_not_obey_is_not_compromised(workspace: Office) -> None:
    tasks = workspace.suite
    job = workspace.job(tasks.user_tasks["user_task_22"], tasks.injection_tasks["injection_task_4"])
    _drive(job, obeys=False)
    assert job.is_done()
    assert not job.is_compromised()


def test_injection_read_twice_is_obeyed_once(workspace: Office) -> None:
    tasks = workspace.suite
    job = workspace.job(tasks.user_tasks["user_task_13"], tasks.injection_tasks["injection_task_0"])
    assert [tool for tool, injected in _drive(job) if injected] == ["send_email"]


def test_each_attacked_job_shows_its_attack_to_the_agent(offices: list[Office]) -> None:
    unseen = []
    for job in jobs(offices, None):
        seen = {attack.ID for call in job.truth for attack in job.office.attacks_in(job.run(call))}
        if seen != ({job.injection_task.ID} if job.injection_task else set()):
            unseen.append((job.name, seen))
    assert unseen == []


def test_no_attack_wants_a_call_that_a_task_needs_unless_it_only_reads(offices: list[Office]) -> None:
    shared = set()
    for office in offices:
        clean = office.suite.load_and_inject_default_environment({})
        wanted = [call for attack in office.attacks for call in office.calls_of(attack, clean)]
        effects = [call for call in wanted if not EFFECTS[call.tool].reads or EFFECTS[call.tool].outside]
        for task in office.user_tasks:
            needed = office.job(task).truth
            shared |= {(task.ID, call.tool) for call in effects if call in needed}
    assert shared == set()
