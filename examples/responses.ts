// A response with OpenAI's SDK, and one that continues it; both are stored until they are deleted.
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: `${process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787"}/v1`,
  apiKey: process.env["SWITCHYARD_KEY"],
});
const model = process.env["MODEL"] ?? "sandbox/chat:free";

const first = await client.responses.create({ model, input: "Hello" });
console.log(first.output_text);

const second = await client.responses.create({
  model,
  input: "And again",
  previous_response_id: first.id,
});
console.log(second.output_text);
console.log(second.usage);

for (const { id } of [first, second]) await client.responses.delete(id);
