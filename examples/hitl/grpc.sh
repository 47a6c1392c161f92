#!/usr/bin/env bash
# The tool human_input over gRPC, from a shell with grpcurl: an agent asks, a person answers, and the agent gets the answer.
#
#     placet up --grpc-port 50056
#     export PLACET_GRPC=127.0.0.1:50056 AGENT_TOKEN=… REVIEWER_TOKEN=…
#     bash examples/hitl/grpc.sh
set -euo pipefail

service=placet.human_input.v1
# grpcurl takes the token from the environment, so that it is not in the list of processes.
as_agent() { grpcurl -plaintext -expand-headers -H 'authorization: Bearer ${AGENT_TOKEN}' "$@"; }
as_reviewer() { grpcurl -plaintext -expand-headers -H 'authorization: Bearer ${REVIEWER_TOKEN}' "$@"; }
title() { printf '\n── %s\n' "$*"; }

title "what is served, by reflection, and whether it is healthy"
as_agent "$PLACET_GRPC" list $service.HumanInput
as_agent -d "{\"service\": \"$service.HumanInput\"}" "$PLACET_GRPC" grpc.health.v1.Health/Check

title "the agent asks, and has a task id at once"
asked=$(as_agent -d '{"prompt": "The account will be deleted. Go on?"}' "$PLACET_GRPC" $service.HumanInputTool/Run)
echo "$asked"
# By reflection grpcurl prints names as the .proto has them, with -proto as JSON has them: taskId.
task=$(sed -nE 's/.*"(task_id|taskId)": "([^"]*)".*/\2/p' <<<"$asked")

title "it watches the task: the present state, then the answer"
watched=$(mktemp)
trap 'rm -f "$watched"' EXIT
as_agent -max-time 60 -d "{\"task_id\": \"$task\"}" "$PLACET_GRPC" $service.HumanInput/WatchHumanInput >"$watched" &
watching=$!
until [ -s "$watched" ]; do kill -0 $watching && sleep 0.1; done

title "an agent cannot answer"
if as_agent -d "{\"task_id\": \"$task\", \"response\": \"Yes.\"}" "$PLACET_GRPC" $service.HumanInput/ProvideHumanInput; then
    exit 1
fi

title "a person answers"
as_reviewer -d "{\"task_id\": \"$task\", \"response\": \"Yes.\"}" "$PLACET_GRPC" $service.HumanInput/ProvideHumanInput
wait $watching
cat "$watched"

title "the answer stays"
as_agent -d "{\"task_id\": \"$task\", \"wait_seconds\": 10}" "$PLACET_GRPC" $service.HumanInput/GetHumanInput
