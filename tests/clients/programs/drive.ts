// A gated call from proposal to result, with nothing but what openapi-typescript made of the document.
import createClient, { type Client } from "openapi-fetch";
import type { paths } from "./openapi.ts";

function clientOf(name: string): Client<paths> {
  const { PLACET_URL: baseUrl = "", [name]: token = "" } = process.env;
  return createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
}

function done<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const [operator, agent, reviewer] = ["OPERATOR_TOKEN", "AGENT_TOKEN", "REVIEWER_TOKEN"].map(clientOf) as [
  Client<paths>, Client<paths>, Client<paths>,
];
const key = () => ({ "Idempotency-Key": crypto.randomUUID() });

done(await operator.PUT("/v1/tools/{name}", {
  params: { path: { name: "send_money" }, header: key() },
  body: { name: "send_money", inputSchema: { type: "object" }, annotations: { destructiveHint: true } },
}));
const run = done(await agent.POST("/v1/executions", { params: { header: key() }, body: { request: "Pay the invoice" } }));
const path = { execution_id: run.execution_id };
const held = done(await agent.POST("/v1/executions/{execution_id}/tool-calls", {
  params: { path, query: { wait: 5 }, header: key() },
  body: { tool: "send_money", arguments: { amount: 5 } },
}));
console.log(held.status);

const hold_id = held.hold_id ?? "";
const shown = done(await reviewer.GET("/v1/holds/{hold_id}/view", { params: { path: { hold_id } } }));
const decided = done(await reviewer.POST("/v1/holds/{hold_id}/decision", {
  params: { path: { hold_id }, header: key() },
  body: { decision: "approve", digest: held.digest, view_digest: shown.view_digest ?? "" },
}));
console.log(decided.status);

const call = { ...path, call_id: held.call_id };
const released = done(await agent.GET("/v1/executions/{execution_id}/tool-calls/{call_id}", {
  params: { path: call, query: { wait: 5 } },
}));
console.log(released.status);
const attempt_id = crypto.randomUUID();
const consumed = done(await agent.POST("/v1/executions/{execution_id}/tool-calls/{call_id}/consume", {
  params: { path: call, header: key() },
  body: { digest: released.grant?.digest ?? "", attempt_id },
}));
console.log(consumed.status);
const ended = done(await agent.POST("/v1/executions/{execution_id}/tool-calls/{call_id}/result", {
  params: { path: call, header: key() },
  body: { attempt_id, outcome: "succeeded", output: { paid: true } },
}));
console.log(ended.status);
const events = done(await reviewer.GET("/v1/executions/{execution_id}/events", { params: { path } }));
console.log(events.items.length > 5 && events.next_cursor === null ? "1 event page" : events);
