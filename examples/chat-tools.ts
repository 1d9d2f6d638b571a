// chat.ts with a tool: the model asks for it, this program answers, the model goes on.
import OpenAI from "openai";
import type { ChatCompletionMessageParam, ChatCompletionTool } from "openai/resources";

const client = new OpenAI({
  baseURL: `${process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787"}/v1`,
  apiKey: process.env["SWITCHYARD_KEY"],
});

const tools: ChatCompletionTool[] = [
  {
    type: "function",
    function: {
      name: "weather",
      description: "The weather of a city.",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  },
];

const messages: ChatCompletionMessageParam[] = [
  { role: "user", content: "What is the weather in Oslo?" },
];

for (let turn = 0; turn < 2; turn += 1) {
  const completion = await client.chat.completions.create({
    model: process.env["MODEL"] ?? "sandbox/chat:free",
    messages,
    tools,
  });
  const message = completion.choices[0]?.message;
  console.log(message?.content ?? message?.tool_calls);
  console.log(completion.usage);
  if (!message?.tool_calls) break;
  messages.push(
    message,
    ...message.tool_calls.map(({ id }) => ({
      role: "tool" as const,
      tool_call_id: id,
      content: "4 degrees, rain",
    })),
  );
}
