"""Columns that mean the same in several tables."""

from typing import Annotated

from projections.tables.columns import Flag, Json, Moment

Tenant = Annotated[str, "The tenant that it belongs to."]
Project = Annotated[str, "The tenant's project that it belongs to."]
ExecutionId = Annotated[str, "Id of the agent's run."]
CallId = Annotated[str, "Id of the tool call in its run."]
HoldId = Annotated[str, "Id of the hold: a pause for a person's decision."]
RequestId = Annotated[str, "Id of the agent's question, if the hold is one."]
Agent = Annotated[str, "The agent that acts."]
Tool = Annotated[str, "The tool's name."]
ToolVersion = Annotated[str, "SHA-256 of the tool's definition."]
Revision = Annotated[int, "Number of the call's revision, from 1; an edit makes the next one."]
Arguments = Annotated[Json, "Canonical JSON of the arguments, exactly as they were decided on."]
Digest = Annotated[
    str, "SHA-256 that an approval is bound to: of tenant, agent, tool, tool version and arguments."
]
AtMs = Annotated[Moment, "When it happened, by the log's time."]
EventId = Annotated[str, "Id of the log record that states it."]
LogPartition = Annotated[int, "Partition of the topic."]
LogOffset = Annotated[int, "Offset in the partition."]
UpdatedAt = Annotated[Moment, "When it last changed."]
Subject = Annotated[
    str, "Who acted: a person, a service, a policy's version, a rule, the timer or the decider."
]
Feedback = Annotated[str, "The person's comment."]
Context = Annotated[Json, "JSON that the agent sent with it."]
Effect = Annotated[str, "The verdict: allow, hold or deny."]
Rules = Annotated[Json, "JSON list of the rules that matched, policy@version/rule."]
PolicyVersion = Annotated[str, "The policy that gave the verdict, and its version."]
VerdictReason = Annotated[str, "The reason for the verdict."]
VerdictDetail = Annotated[str, "Details of the verdict, such as the condition that failed."]
RiskScore = Annotated[float, "Risk from 0 to 1."]
RiskLevel = Annotated[str, "Risk in words."]
RiskParts = Annotated[Json, "JSON list of the parts that make up the risk."]
RiskRequired = Annotated[float, "The lower bound of trust at which the expected harm would be acceptable."]
Trust = Annotated[Json, "JSON of the trust that the verdict cites; null if it was not complete."]
Adaptive = Annotated[
    Json, "JSON of what the policy's adaptive block made of a hold (docs/trust.md); null if nothing."
]
History = Annotated[
    Json,
    "JSON: the call's values that are new to the agent and tool, or out of an untrusted output (docs/trust.md).",
]
DeadlineAt = Annotated[Moment, "Deadline for the decision; null if there is none."]
Decision = Annotated[str, "The decision: approve, edit, reject or respond."]
DecisionId = Annotated[str, "Id of the decision."]
DecidedBy = Annotated[str, "Who decided."]
ViewDigest = Annotated[str, "SHA-256 of the text that was shown."]
DwellMs = Annotated[int, "How long the person looked, in milliseconds; null if it was not measured."]
ProposedArguments = Annotated[Json, "The agent's own arguments, once a person has edited them."]
Error = Annotated[str, "Why it did not succeed."]
EndedAt = Annotated[Moment, "When it ended; null if it has not."]
Name = Annotated[str, "Its name."]
Version = Annotated[int, "Counts its versions from 1."]
Document = Annotated[Json, "JSON of the whole document."]
PublishedBy = Annotated[str, "Who published it."]
PublishedAt = Annotated[Moment, "When it was published."]
CommandId = Annotated[str, "The command that caused it (an idempotency key)."]
CommandDigest = Annotated[str, "Digest of the command's body."]
Topic = Annotated[str, "The topic of the log."]
Detail = Annotated[str, "Details of the reason."]
Code = Annotated[str, "Code of the refusal (docs/refusals.md); null if nothing was refused."]
Senders = Annotated[
    Json, "JSON list of those who have sent it a message, and the users of tokens; null: none."
]
SendersBefore = Annotated[
    Json,
    "JSON list of those who had sent the run a message before this was asked, and users of tokens; null: none. With "
    "exclude_requester none of them can decide.",
]
OpenedAt = Annotated[Moment, "When the hold opened."]
Question = Annotated[str, "What the person is asked."]
Options = Annotated[Json, "JSON list of the answers to choose from."]
Fields = Annotated[Json, "JSON list of the fields to be filled in."]
Asks = Annotated[
    Json,
    "Of a question, JSON of what its answer can be and what it is about: allow_custom, multiple, tool, action, risk, "
    "remember; null of a call, and of a question that an earlier version asked.",
]
DecisionType = Annotated[str, "The agent's own name for the kind of decision."]
Kind = Annotated[str, "Kind of the hold: clarification, decision, env_var or permission."]
TimedOut = Annotated[
    Flag, "1 if the deadline ended it; with on_timeout default, its default is then the answer."
]
Response = Annotated[Json, "JSON of the answer to a request."]
ClosedAt = Annotated[Moment, "When the hold ended; null while it is open."]
RuleId = Annotated[str, "Id of the standing rule."]
