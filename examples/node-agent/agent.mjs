// An agent in Node.js 20 or newer, without a library: it proposes a payment, waits for a person, and pays once.
import { randomUUID } from "node:crypto";

const { PLACET_URL, PLACET_TOKEN } = process.env;

async function ask(method, path, body) {
  // The same key in every repeat: a request that was already done gets the same answer again, and is not done again.
  const headers = { Authorization: `Bearer ${PLACET_TOKEN}`, "Idempotency-Key": randomUUID() };
  // A person's decision can take longer than a restart: a gateway that is away is retried for ten minutes.
  const giveUpAt = Date.now() + 600_000;
  for (;;) {
    let status = 0, text, retryAfter;
    try {
      const answer = await fetch(PLACET_URL + path, { method, headers, body: body && JSON.stringify(body) });
      text = await answer.text();
      [status, retryAfter] = [answer.status, answer.headers.get("Retry-After")];
    } catch (error) {
      text = `${error.cause ?? error}`; // No answer, or the answer broke off.
    }
    if (status === 200 || status === 201 || status === 202) return JSON.parse(text);
    // A transient error can come from a proxy in between, as a page: only a refusal is sure to be JSON.
    const isPassing = status === 0 || status >= 500 || [408, 425, 429].includes(status);
    if (!isPassing || Date.now() > giveUpAt) throw Object.assign(new Error(`${method} ${path}: ${status} ${text}`), { path, status });
    await new Promise((wake) => setTimeout(wake, 1000 * (Number(retryAfter) || 1)));
  }
}

// The permission to run now: the answer to the consumption. Its lease runs from the gateway's decision, so an answer that
// took longer than half of it (a proxy, a repeat, a suspended machine) can be about a call that a person must settle by now.
// Then a heartbeat is sent first, which renews the lease and is measured in the same way. A refusal throws: nothing runs.
async function leaveToRun({ call_id, grant: { digest, grant_id } }, attempt_id) {
  let granted, [step, body] = ["consume", { digest, grant_id, attempt_id }];
  for (let late = 0; late <= 3; late++) {
    const askedAt = performance.now();
    const run = await ask("POST", `${calls}/${call_id}/${step}`, body);
    if (run.status !== "consumed" || run.attempt_id !== attempt_id) throw new Error(`${call_id} is ${run.status}: nothing runs`);
    granted ??= run;
    const { lease_seconds } = granted;
    if (!lease_seconds || performance.now() - askedAt < 1000 * lease_seconds / 2) return granted;
    [step, body] = ["heartbeat", { attempt_id }];
  }
  throw new Error(`${call_id}: answers take longer than half of the call's lease: nothing runs`);
}

// A consumption that is refused while a person has paused the run is asked for again once they have resumed it.
async function whileNotPaused(call, attempt_id) {
  const isPaused = async () => (await ask("GET", `/v1/executions/${execution_id}`)).state === "paused";
  for (;;) {
    try {
      return await leaveToRun(call, attempt_id);
    } catch (error) {
      if (error.status !== 409 || !error.path.endsWith("/consume") || !(await isPaused())) throw error;
    }
    while (await isPaused()) await new Promise((wake) => setTimeout(wake, 1000));
  }
}

const { execution_id } = await ask("POST", "/v1/executions", { request: "Pay the March invoice" });
const calls = `/v1/executions/${execution_id}/tool-calls`;
// The proposal does not wait (wait=0): a held call is answered at once.
let call = await ask("POST", `${calls}?wait=0`, { tool: "send_money", arguments: { recipient: "GB29…", amount: 98.7 } });
while (["proposed", "held"].includes(call.status)) {
  console.log(call.status);
  call = await ask("GET", `${calls}/${call.call_id}?wait=50`);
}
if (call.status !== "released") {
  console.log(call.status, call.decision?.feedback ?? call.denied_because);
  process.exit(1);
}
// One attempt, with an id that this process made: any other attempt gets 409 already_consumed.
const attempt_id = randomUUID();
const { approved_arguments } = await whileNotPaused(call, attempt_id);
console.log("pay", JSON.stringify(approved_arguments));
await ask("POST", `${calls}/${call.call_id}/result`, { attempt_id, outcome: "succeeded", output: { paid: true } });
await ask("POST", `/v1/executions/${execution_id}/complete`, {});
