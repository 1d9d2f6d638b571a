// chat.ts with `stream: true`: the last chunk carries the usage and what it cost.
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: `${process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787"}/v1`,
  apiKey: process.env["SWITCHYARD_KEY"],
});

const stream = await client.chat.completions.create({
  model: process.env["MODEL"] ?? "sandbox/chat:free",
  messages: [{ role: "user", content: "Hello" }],
  stream: true,
});

for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
  if (chunk.usage) console.log("\n", chunk.usage);
}
