// One message with Anthropic's SDK: only the address and the key differ from Anthropic's own.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({
  baseURL: process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787",
  apiKey: process.env["SWITCHYARD_KEY"] ?? "",
});

const message = await client.messages.create({
  model: process.env["MODEL"] ?? "sandbox/chat:free",
  max_tokens: 1024,
  messages: [{ role: "user", content: "Hello" }],
});

for (const block of message.content) if (block.type === "text") console.log(block.text);
console.log(message.usage);
