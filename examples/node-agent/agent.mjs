// An agent in Node.js 20 or newer, without a library: it proposes a payment, waits for a person, and pays once.
import { randomUUID } from "node:crypto";

const { PLACET_URL, PLACET_TOKEN } = process.env;

async function ask(method, path, body) {
  // The same key in every repeat: what was done already is answered again, not done again.
  const headers = { Authorization: `Bearer ${PLACET_TOKEN}`, "Idempotency-Key": randomUUID() };
  for (;;) {
    const answer = await fetch(PLACET_URL + path, { method, headers, body: body && JSON.stringify(body) });
    if (answer.ok) return answer.json();
    const problem = await answer.json();
    if (answer.status !== 429 && answer.status !== 503) throw new Error(`${problem.code}: ${problem.detail}`);
    await new Promise((wake) => setTimeout(wake, 1000 * Number(answer.headers.get("Retry-After") ?? 1)));
  }
}

const { execution_id } = await ask("POST", "/v1/executions", { request: "Pay the March invoice" });
const calls = `/v1/executions/${execution_id}/tool-calls`;
let call = await ask("POST", calls, { tool: "send_money", arguments: { recipient: "GB29…", amount: 98.7 } });
while (["proposed", "held"].includes(call.status)) {
  console.log(call.status);
  call = await ask("GET", `${calls}/${call.call_id}?wait=60`);
}
if (call.status !== "released") {
  console.log(call.status, call.decision?.feedback ?? call.denied_because);
  process.exit(1);
}
// One attempt, with an id that this process made: whoever else tries hears 409 already_consumed.
const attempt_id = randomUUID();
const { approved_arguments } = await ask("POST", `${calls}/${call.call_id}/consume`, { digest: call.grant.digest, attempt_id });
console.log("pay", JSON.stringify(approved_arguments));
await ask("POST", `${calls}/${call.call_id}/result`, { attempt_id, outcome: "succeeded", output: { paid: true } });
await ask("POST", `/v1/executions/${execution_id}/complete`, {});
