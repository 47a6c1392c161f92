// Parses the AsyncAPI document, and prints the types that Modelina makes of it.
import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";
import { TypeScriptGenerator } from "@asyncapi/modelina";

const text = readFileSync(process.argv[2], "utf8");
const found = await new Parser().validate(text);
// Severity 0 is an error, 1 a warning.
const faults = found.filter(({ severity }) => severity <= 1).map(({ code, message, path }) => ({ code, message, path }));
const generator = new TypeScriptGenerator({ modelType: "interface", rawPropertyNames: true });
const models = await generator.generate(JSON.parse(text));
console.log(JSON.stringify({ faults, models: Object.fromEntries(models.map((one) => [one.modelName, one.result])) }));
