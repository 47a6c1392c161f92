"""What each table and SQL view of the views is, and what its own columns mean."""

from __future__ import annotations

_VOTE_OUTCOMES = (
    "decided: it ended the hold; counted: it waits for others; lost: it came after the end; "
    "refused: it was not let."
)

_OF_A_DEFINITION = "In which project; * for the whole tenant."

# Table or SQL view → what it is, and the columns that mean something of their own there.
OF_TABLE: dict[str, tuple[str, dict[str, str]]] = {
    "executions": (
        "One row a run of an agent.",
        {
            "user_id": "On whose behalf it runs.",
            "workspace": "Where, as the agent named it.",
            "request": "What the run was started for.",
            "state": "running, paused, waiting_clarification, waiting_approval, resumed, completed, failed or "
            "cancelled.",
            "lifecycle": "The state without the waits.",
            "open_approvals": "Open holds of kind permission.",
            "open_questions": "Open holds of other kinds.",
            "calls": "How many calls it proposed.",
            "version": "Counts the run's events.",
            "result": "JSON of what it came to.",
            "reason": "Why it is paused or was cancelled.",
            "started_by": "Who started it.",
            "ended_by": "Who ended it.",
            "started_at_ms": "When it started.",
        },
    ),
    "tool_calls": (
        "One row a tool call, at its newest revision.",
        {
            "claims": "JSON of the hints that the agent gave about its tool.",
            "reason": "Why the agent wants it.",
            "proposed_by": "Who proposed this revision.",
            "status": "proposed, held, released, denied, cancelled, expired, revoked, consumed, succeeded, failed "
            "or outcome_unknown.",
            "approved_arguments": "Canonical JSON of the arguments that were released.",
            "edits": "JSON list of the last 20 edits; the table edits has a row for each difference.",
            "hold_id": "The last hold about it.",
            "decided_at_ms": "When its last hold was decided.",
            "released_by": "policy, decision or rule.",
            "rule_id": "The rule that released it in a person's place.",
            "grant_id": "The grant to run it once.",
            "grant_decision_id": "Idempotency key for the tool.",
            "grant_digest": "The digest that the grant is for.",
            "grant_expires_at_ms": "Until when the grant may be used.",
            "denied_because": "policy, rejected, timeout or halted; null where it was not denied.",
            "rollback": "JSON list of the calls that its agent should undo after its rejection, newest first.",
            "attempt_id": "The attempt that runs or ran it.",
            "run_deadline_at_ms": "Until when the attempt must have ended.",
            "lease_ms": "For how long a sign of life is good, in milliseconds.",
            "lease_until_ms": "Until when the attempt is believed to run.",
            "duration_ms": "How long the tool ran, in milliseconds.",
            "proposed_at_ms": "When it was first proposed.",
        },
    ),
    "holds": (
        "One row a pause for a person; a request is a hold with a request_id.",
        {
            "request": "What the run was started for.",
            "cause": "policy, request, outcome_unknown or definition_changed.",
            "status": "open, resolved, expired or cancelled.",
            "reason": "Why the agent wants it.",
            "input_schema": "JSON Schema of the arguments, for an edit.",
            "requester": "Who asked.",
            "roles": "JSON list of the roles that may decide.",
            "reviewers": "JSON list of who may decide by name.",
            "excluded": "JSON list of who may not.",
            "quorum": "How many people must approve.",
            "exclude_requester": "1 where the requester may not decide.",
            "requirements": "JSON of what each of several rules asks for.",
            "votes": "JSON list of every word that counts; the table votes has a row for each.",
            "claimed_by": "Who is on it.",
            "claimed_until_ms": "Until when the claim is good.",
            "assignee": "To whom it was handed on.",
            "delegations": "JSON list of all who handed it on, with their roles then; null: nobody.",
            "escalated": "1 once it was escalated.",
            "on_timeout": "What happens at the deadline.",
            "default_value": "JSON of the answer when time runs out; of a call, of what its agent is told.",
            "escalate_at_ms": "When it will escalate.",
            "escalate_roles": "JSON list of the roles that are asked then.",
            "on_reject": "What a rejection does.",
            "badges": "JSON list of the warnings that are shown.",
            "opening": "JSON of whom it asked, and until when, as it opened.",
            "view_digest": "SHA-256 of the text that is shown of it; empty: opened by an earlier version.",
            "view_version": "Version of that text.",
            "must_read": "1 where a decision must name the text.",
        },
    ),
    "events": (
        "Every event of every run that counts, in full.",
        {
            "version": "Counts the run's events.",
            "type": "The event's type.",
            "term": "The term of the decider that wrote it.",
            "command_offset": "Where the command stands in its partition.",
            "body": "JSON of the event's fields.",
        },
    ),
    "votes": (
        "One row a word of a person on a hold, also one that was refused.",
        {
            "person": "The principal whose account the subject is; null where none is published.",
            "roles": "JSON list of the roles by which it was given.",
            "decision": "What the word was: approve, edit, reject or respond.",
            "outcome": _VOTE_OUTCOMES,
            "winning_decision_id": "The decision that was there first, where the word came too late.",
            "decision_id": "Names the word; null where it was refused.",
            "digest": "The digest that the person named.",
            "revision": "The revision that the word is about; null where it was refused.",
            "detail": "What was said to who was refused.",
        },
    ),
    "lost_races": (
        "The votes that came after their hold had ended, beside the word that ended it; made of votes.",
        {
            "decision": "What the late word was.",
            "winning_decision_id": "The decision that was there first.",
            "won_by": "Who decided; null where nobody did, as when time ran out.",
            "won_decision": "What was decided.",
            "won_at_ms": "When it was decided.",
            "late_ms": "How much later the late word came, in milliseconds.",
        },
    ),
    "edits": (
        "One row a difference that a person's edit made in a call's arguments (RFC 6902).",
        {
            "revision": "The revision that the edit made.",
            "number": "Counts the edit's differences from 1.",
            "op": "add, remove or replace.",
            "path": "JSON Pointer to what changed; an edit with very many differences is told by its topmost names.",
            "before": "JSON of what stood there; null where nothing did.",
            "after": "JSON of what stands there now; null where nothing does.",
            "subject": "Who edited.",
            "decision_id": "The edit, in votes.",
        },
    ),
    "evidence": (
        "One row a fact about how an agent uses a tool: what docs/trust.md counts.",
        {"kind": "success, failure, unknown, approval, edit or rejection."},
    ),
    "trust": (
        "How much an agent was to be trusted with a tool after each piece of evidence; made of evidence.",
        {
            "kind": "The evidence: success, failure, unknown, approval, edit or rejection.",
            "successes": "Runs that succeeded, up to here.",
            "failures": "Runs that failed, up to here.",
            "unknowns": "Runs whose outcome nobody knew, up to here.",
            "approvals": "Calls that people approved as proposed, up to here.",
            "edits": "Calls that people edited, up to here.",
            "rejections": "Calls that people rejected, up to here.",
            "evidence": "How much evidence there was, up to here.",
            "share": "Successes and approvals by all evidence.",
            "lower_bound": "What the share is at least, with 95 % confidence (Wilson, one-sided).",
        },
    ),
    "audit_entries": (
        "Who did or decided what, without the end of the call; read audit.",
        {
            "project": "In which project; empty for what is the whole tenant's.",
            "action": "What was done.",
            "before": "JSON of the arguments or the value before.",
            "after": "JSON of the arguments or the value after.",
        },
    ),
    "audit": (
        "Who did or decided what: one row an act of authority, or a refused attempt.",
        {
            "project": "In which project; empty for what is the whole tenant's.",
            "action": "What was done.",
            "before": "JSON of the arguments or the value before.",
            "after": "JSON of the arguments or the value after.",
            "result": "How the call ended; null while it has not.",
            "result_output": "JSON that the tool returned.",
            "result_error": "Why it did not succeed.",
            "result_at_ms": "When it ended.",
        },
    ),
    "audit_trees": (
        "One row an audit tree (docs/audit.md).",
        {"size": "How many leaves it has.", "last_offset": "Offset of the last leaf."},
    ),
    "audit_tiles": (
        "The hashes of the audit trees, up to 256 a row.",
        {
            "level": "0: leaves; above it the roots of whole tiles of the level beneath.",
            "number": "Counts the tiles of a level.",
            "first_offset": "Offset of the first leaf; -1 above level 0.",
            "hashes": "Hashes of 32 bytes in a row.",
            "offsets": "The leaves' offsets, 8 bytes each, big endian.",
        },
    ),
    "answers": (
        "What became of each command.",
        {
            "log_key": "Key under which its events stand.",
            "first_offset": "Its first event.",
            "last_offset": "Its last event.",
        },
    ),
    "definitions": (
        "Every published version of a policy, tool or principal.",
        {
            "project": _OF_A_DEFINITION,
            "kind": "policy, tool, principal or policy-retired.",
        },
    ),
    "tools": (
        "The newest version of each tool, in each project and for the whole tenant; made of definitions.",
        {"definition": "JSON of the tool's definition.", "project": _OF_A_DEFINITION},
    ),
    "policies": (
        "All versions of all policies; made of definitions.",
        {"project": _OF_A_DEFINITION},
    ),
    "requests": (
        "The holds that are questions of agents; made of holds.",
        {
            "status": "open, resolved, expired or cancelled.",
            "on_timeout": "What happens at the deadline.",
        },
    ),
    "standing_rules": (
        "One row a standing rule, as it stands (docs/standing-rules.md).",
        {
            "status": "proposed, active, suspended, revoked or refused.",
            "policy_rules": "JSON list of the policy's rules in whose place it stands.",
            "uses": "How often it may be used; null: no limit.",
            "expires_at_ms": "Until when it holds.",
            "made_by": "Who made it.",
            "made_at_ms": "When it was made.",
            "changed_by": "Who changed it last.",
            "contradiction": "JSON of the decision that it was last suspended for.",
        },
    ),
    "rule_uses": (
        "One row a use that was given of a rule with a limit.",
        {"number": "Counts the uses from 1.", "reservation_id": "Names the use."},
    ),
    "agents": (
        "What each agent did with each tool, in counts.",
        {
            "tool": "The tool's name; empty where refused commands are counted.",
            "proposed": "Calls that it proposed.",
            "allowed": "Verdicts that let a call go.",
            "held": "Verdicts that held a call.",
            "denied": "Verdicts that denied a call.",
            "approved": "Decisions that let a held call run as it was: one a hold, however many people it took.",
            "edited": "Decisions that changed a held call.",
            "rejected": "Decisions against a held call.",
            "votes": "Words of people on its holds, also those that waited for others.",
            "succeeded": "Runs that succeeded.",
            "failed": "Runs that failed.",
            "unknown": "Runs whose outcome nobody knew.",
            "refused": "Commands that were refused.",
            "last_seen_at_ms": "When it was last counted.",
        },
    ),
    "adoptions": (
        "By which definitions each partition of the runs judges.",
        {
            "through_offset": "Offset of the newest definition that counts there.",
            "at_ms": "When its decider adopted it; events after log_offset are judged by it.",
            "log_offset": "The record that says so.",
        },
    ),
    "dead_letters": (
        "What deciders could not read or believe; the log keeps them for 30 days.",
        {
            "topic": "The topic of the original.",
            "log_partition": "Partition of the original.",
            "log_offset": "Offset of the original.",
            "tenant": "Whose, as far as the key tells.",
            "log_key": "Key of the original.",
            "reason": "Why it was not taken.",
        },
    ),
    "skipped_records": (
        "Records of events that the projector could not read; it should be empty.",
        {"reason": "Why it was not read."},
    ),
    "placet_positions": (
        "Up to where this view has read.",
        {
            "source": "Names the partition, and the very topic.",
            "topic_id": "The id of the partition's first record.",
            "next_offset": "Offset that is read next.",
            "claim": "The term in force there.",
            "record_id": "The last record that was read.",
        },
    ),
}
