// The rules of docs/log-contract.md that an agent needs: framing by the registry API, the term rule, deciders' signatures.
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { encode } from "@msgpack/msgpack";
import avro from "avsc";

const CLAIM = "placet.events.WriterClaimed";
const sha256 = (...parts) => createHash("sha256").update(Buffer.concat(parts)).digest();

// The schema registry, as a gateway serves it.
export class Schemas {
  #byId = new Map();
  #newest = new Map();

  constructor(gateway) {
    this.gateway = gateway;
  }

  async #read(path) {
    const answer = await fetch(this.gateway + path);
    if (answer.status === 404) return null;
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer.json();
  }

  // A value: one byte 0, the schema's id, the Avro body. Fields that are left out have their defaults.
  async frame(subject, fields) {
    if (!this.#newest.has(subject)) {
      const { id, schema } = await this.#read(`/subjects/${subject}/versions/latest`);
      this.#newest.set(subject, id);
      this.#byId.set(id, avro.Type.forSchema(JSON.parse(schema)));
    }
    const id = this.#newest.get(subject);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(id, 1);
    return Buffer.concat([head, this.#byId.get(id).toBuffer(fields)]);
  }

  // The subject and the fields of a value; null if it is none. Throws if the registry does not answer.
  async unframe(value) {
    if (value === null || value.length < 5 || value[0] !== 0) return null;
    const id = value.readUInt32BE(1);
    if (!this.#byId.has(id)) {
      const found = await this.#read(`/schemas/ids/${id}`);
      this.#byId.set(id, found && avro.Type.forSchema(JSON.parse(found.schema)));
    }
    const type = this.#byId.get(id);
    try {
      return type && { subject: type.name, fields: type.fromBuffer(value.subarray(5)) };
    } catch {
      return null; // Not one Avro body and nothing after it.
    }
  }
}

// Which records of a topic a decider signed for their offset; `keys` is a copy of the public files in <data-dir>/keys.
export class Deciders {
  constructor(keys) {
    const read = (name) => Object.entries(JSON.parse(readFileSync(join(keys, name), "utf8")));
    const key = (raw) => ({ kty: "OKP", crv: "Ed25519", x: Buffer.from(raw, "base64").toString("base64url") });
    this.keys = new Map(read("deciders.json").map(([kid, raw]) => [kid, createPublicKey({ key: key(raw), format: "jwk" })]));
    this.signedFrom = new Map(read("signed-from.json"));
  }

  signed(topic, partition, record) {
    // Signed from the first offset on, not signed from the second on, and so on.
    const places = [this.signedFrom.get(topic)?.[partition] ?? 0].flat();
    const offset = Number(record.offset);
    if (places.filter((place) => place <= offset).length % 2 === 0) return true;
    const labels = Object.entries(record.headers);
    const [name, proof] = labels.pop() ?? [];
    const parts = /^(.*)\.(\d{1,15})\.(\d{1,15})\.([\w-]*)\.([\w-]+)$/.exec(proof?.toString());
    if (name !== "placet_signature" || !parts || labels.some(([, value]) => !Buffer.isBuffer(value))) return false;
    const [kid, size, index] = [parts[1], Number(parts[2]), Number(parts[3])];
    const leaf = sha256(Buffer.of(0), encode([record.key, labels, record.value]));
    const root = rootOf(leaf, index, size, Buffer.from(parts[4], "base64url"));
    if (!root || !this.keys.has(kid)) return false;
    const base = record.headers.ce_type?.toString() === CLAIM ? -1 : offset - index;
    const numbers = Buffer.alloc(16);
    numbers.writeUInt32BE(partition, 0);
    numbers.writeBigInt64BE(BigInt(base), 4);
    numbers.writeUInt32BE(size, 12);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(Buffer.byteLength(topic));
    const signed = [Buffer.from("placet.event-batch.v1\0"), length, Buffer.from(topic), numbers, root];
    return verify(null, Buffer.concat(signed), this.keys.get(kid), Buffer.from(parts[5], "base64url"));
  }
}

// The events of a topic that count, one partition beside the other; each is read in order, from its first record on.
export class Counting {
  #claims = new Map();

  constructor(schemas, deciders) {
    Object.assign(this, { schemas, deciders });
  }

  // The event in a record, or null if it does not count.
  async event(topic, partition, record) {
    const found = await this.schemas.unframe(record.value);
    const text = (name) => record.headers[name]?.toString() ?? "";
    if (!found || !/^-?\d{1,15}$/.test(text("placet_term"))) return null;
    const claim = this.#claims.get(partition) ?? -1;
    const isClaim = found.subject === CLAIM;
    const named = isClaim ? found.fields.after : Number(text("placet_term"));
    if (named !== claim || (claim === -1 && !isClaim)) return null;
    if (!this.deciders.signed(topic, partition, record)) return null;
    if (isClaim) this.#claims.set(partition, Number(record.offset));
    if (isClaim) return null;
    const type = found.subject.slice(found.subject.lastIndexOf(".") + 1);
    const cause = [text("placet_command_id"), text("placet_command_digest")];
    return { id: text("ce_id"), type, key: record.key.toString(), cause, fields: found.fields };
  }
}

// The root to which an audit path leads (RFC 9162, 2.1.3.2); null if it is none.
function rootOf(hash, index, size, path) {
  let [node, last] = [index, size - 1];
  if (node > last || size > 2 ** 31 || path.length % 32) return null;
  for (let at = 0; at < path.length; at += 32) {
    const sibling = path.subarray(at, at + 32);
    if (last === 0) return null;
    if (node & 1 || node === last) {
      hash = sha256(Buffer.of(1), sibling, hash);
      while (node && !(node & 1)) [node, last] = [node >> 1, last >> 1];
    } else {
      hash = sha256(Buffer.of(1), hash, sibling);
    }
    [node, last] = [node >> 1, last >> 1];
  }
  return last ? null : hash;
}
