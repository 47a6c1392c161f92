// An agent in Node.js over Kafka itself: it proposes a payment, waits for a person, pays once, and reports.
//
//     npm ci && node agent.mjs
//
// PLACET_URL, PLACET_TOKEN    the gateway, which starts the execution and serves the schemas; an agent's token
// PLACET_KAFKA                the brokers
// PLACET_KAFKA_SETTINGS       a file in the format of --kafka-settings: a user that may write placet.commands, read
//                             placet.executions, and use groups whose names begin with `node-agent-`
// PLACET_KEYS                 a directory with deciders.json and signed-from.json
import { createHash, randomUUID } from "node:crypto";
import { EventEmitter, on } from "node:events";
import { readFileSync } from "node:fs";
import { Kafka, logLevel } from "kafkajs";
import { Counting, Deciders, Schemas } from "./contract.mjs";

const { PLACET_URL, PLACET_TOKEN, PLACET_KAFKA, PLACET_KAFKA_SETTINGS, PLACET_KEYS } = process.env;
const [COMMANDS, EVENTS] = ["placet.commands", "placet.executions"];
const ANSWER_WITHIN_MS = 60_000;

async function ask(path, body) {
  const headers = { Authorization: `Bearer ${PLACET_TOKEN}`, "Idempotency-Key": randomUUID() };
  const answer = await fetch(PLACET_URL + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const settings = JSON.parse(readFileSync(PLACET_KAFKA_SETTINGS, "utf8"));
const kafka = new Kafka({
  clientId: "node-agent",
  brokers: PLACET_KAFKA.split(","),
  logLevel: logLevel.ERROR,
  ssl: settings.security_protocol.endsWith("SSL") && { ca: settings.ssl_cafile && [readFileSync(settings.ssl_cafile)] },
  sasl: { mechanism: "scram-sha-512", username: settings.sasl_plain_username, password: settings.sasl_plain_password },
});
const schemas = new Schemas(PLACET_URL);

// Executions are started through the gateway. Every record about this one has its key.
const { tenant, project, execution_id } = await ask("/v1/executions", { request: "Pay the March invoice" });
const key = `${tenant}/${project}/${execution_id}`;

// The log is read from its first record: which events count follows from the claims of all writers so far. A service that
// runs for long stores offset and claim together, and continues from there.
const log = new EventEmitter();
const events = on(log, "event");
const counting = new Counting(schemas, new Deciders(PLACET_KEYS));
const consumer = kafka.consumer({ groupId: `node-agent-${randomUUID()}` });
consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || log.emit("error", payload.error));
await consumer.connect();
await consumer.subscribe({ topics: [EVENTS], fromBeginning: true });
await consumer.run({
  autoCommit: false,
  eachMessage: async ({ topic, partition, message }) => {
    const event = await counting.event(topic, partition, message);
    if (event?.key === key) log.emit("event", event);
  },
});
const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
await producer.connect();

// The next event of this execution that is one of these types, and fits.
async function next(types, fits) {
  for (;;) {
    const { value: [event] } = await events.next();
    if (fits(event) && ["CommandRefused", "DecisionRefused"].includes(event.type)) throw new Error(`refused: ${event.fields.code}`);
    if (fits(event) && types.includes(event.type)) return event;
  }
}

// Sends a command under the agent's own token, and returns the event that answers it.
async function command(name, fields, ...types) {
  const value = await schemas.frame(`placet.commands.${name}`, fields);
  const id = randomUUID();
  const headers = {
    ce_specversion: "1.0", ce_id: id, ce_type: `placet.commands.${name}`, ce_source: "/examples/node-kafka",
    ce_subject: key, placet_tenant: tenant, placet_token: PLACET_TOKEN,
  };
  // kafkajs' own partitioner is Kafka's Java default. If the outcome is unknown, the same is sent again, under the same id.
  await producer.send({ topic: COMMANDS, acks: -1, messages: [{ key, value, headers }] });
  // Under one id one value is decided: the digest shows whether it was this one.
  const digest = createHash("sha256").update(value).digest("hex").slice(0, 32);
  const late = setTimeout(() => log.emit("error", new Error(`${name}: no answer`)), ANSWER_WITHIN_MS);
  const event = await next(types, ({ cause }) => cause[0] === id && cause[1] === digest);
  clearTimeout(late);
  return event;
}

const call = { call_id: "pay-1" };
// Arguments are canonical JSON (RFC 8785): here the names in order, as JSON.stringify writes them.
const args = JSON.stringify({ amount: 98.7, recipient: "GB29NWBK60161331926819" });
const proposed = { ...call, tool: "send_money", arguments: args, reason: "due on Friday" };
let event = await command("ProposeToolCall", proposed, "HoldOpened", "ToolCallReleased", "ToolCallDenied");
if (event.type === "HoldOpened") {
  console.log("held", event.fields.hold_id);
  const ends = ["ToolCallReleased", "ToolCallDenied", "ToolCallCancelled"];
  event = await next(ends, ({ fields }) => fields.call_id === call.call_id);
}
if (event.type !== "ToolCallReleased") {
  console.log(event.type, event.fields.reason ?? "");
  process.exit(1);
}
// One attempt, with an id that this process made and never stores. Its lease runs from the decider's decision.
const released = event.fields;
const attempt = { ...call, attempt_id: randomUUID() };
const askedAt = performance.now();
const consumption = { ...attempt, digest: released.digest, grant_id: released.grant_id };
const { fields: consumed } = await command("ConsumeGrant", consumption, "GrantConsumed");
if (performance.now() - askedAt > consumed.lease_ms / 2) throw new Error("the answer came late: nothing runs, and a person settles the call");

// Only now, only once, and only what was released: an edit can have changed it.
console.log("pay", released.arguments);
const report = { ...attempt, outcome: "succeeded", output: JSON.stringify({ paid: true }), duration_ms: Math.round(performance.now() - askedAt) };
await command("ReportResult", report, "ToolCallSucceeded");
await ask(`/v1/executions/${execution_id}/complete`, {});
console.log("reported");
await producer.disconnect();
await consumer.disconnect();
