// One chat completion with OpenAI's SDK: only the address and the key differ from OpenAI's own.
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: `${process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787"}/v1`,
  apiKey: process.env["SWITCHYARD_KEY"],
});

const completion = await client.chat.completions.create({
  model: process.env["MODEL"] ?? "sandbox/chat:free",
  messages: [{ role: "user", content: "Hello" }],
});

console.log(completion.choices[0]?.message.content);
console.log(completion.usage);
