// Prints the ids of the events of a golden log that count, as examples/node-kafka reads them.
//
// node count_golden.mjs LOG KEYS    with PLACET_URL, for the schemas
import { readFileSync } from "node:fs";
import { Counting, Deciders, Schemas } from "./contract.mjs";

const [, , log, keys] = process.argv;
const { topic, partition, records } = JSON.parse(readFileSync(log, "utf8"));
const counting = new Counting(new Schemas(process.env.PLACET_URL), new Deciders(keys));
for (const { offset, key, headers, value_hex } of records) {
  const named = {};
  for (const [name, value] of headers) {
    const bytes = Buffer.from(value);
    named[name] = name in named ? [named[name], bytes].flat() : bytes; // As kafkajs shows a header that repeats.
  }
  const record = { offset: String(offset), key: Buffer.from(key), headers: named, value: Buffer.from(value_hex, "hex") };
  const event = await counting.event(topic, partition, record);
  if (event) console.log(event.id);
}
