import { Code } from "../../ui/copy.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import type { ChatBody } from "./draft.ts";

const indented = (value: unknown): string => JSON.stringify(value, null, 2);
const textOf = (content: unknown): string =>
  typeof content === "string" ? content : JSON.stringify(content);

const curl = (origin: string, body: ChatBody): string =>
  `curl ${origin}/api/v1/chat/completions \\\n  -H "Authorization: Bearer $SWITCHYARD_KEY" -H "Content-Type: application/json" \\\n` +
  `  -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`;

const openai = (origin: string, body: ChatBody): string => `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${origin}/api/v1", apiKey: process.env.SWITCHYARD_KEY });
const stream = await client.chat.completions.create({
  ...${indented(body).replaceAll("\n", "\n  ")},
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");
`;

function anthropic(origin: string, body: ChatBody): string {
  const system = body.messages
    .filter(({ role }) => role === "system")
    .map(({ content }) => textOf(content))
    .join("\n");
  const request = {
    model: body.model,
    max_tokens: body["max_tokens"] ?? 4_096,
    ...(system === "" ? {} : { system }),
    messages: body.messages
      .filter(({ role }) => role !== "system")
      .map(({ role, content }) => ({ role, content: textOf(content) })),
  };
  return `import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: "${origin}/api", apiKey: process.env.SWITCHYARD_KEY });
const stream = client.messages.stream(${indented(request)});
stream.on("text", (text) => process.stdout.write(text));
await stream.finalMessage();
`;
}

const aiSdk = (
  origin: string,
  body: ChatBody,
): string => `import { createOpenAI } from "@ai-sdk/openai";
import { streamText } from "ai";

const gateway = createOpenAI({ baseURL: "${origin}/api/v1", apiKey: process.env.SWITCHYARD_KEY });
const { textStream } = streamText({
  model: gateway.chat(${JSON.stringify(body.model)}),
  messages: ${indented(body.messages).replaceAll("\n", "\n  ")},
});
for await (const text of textStream) process.stdout.write(text);
`;

/** Ways to send the same request from a program. The key is named, never written out. */
const programs = [
  ["curl", curl],
  ["OpenAI SDK", openai],
  ["Anthropic SDK", anthropic],
  ["AI SDK", aiSdk],
] as const;

/** The program that sends a request, by client. */
export function CodeExport({ body, onClose }: { body: ChatBody; onClose: () => void }) {
  return (
    <Modal title={`${body.model} as code`} open onClose={onClose}>
      <Tabs
        label="Clients"
        tabs={programs.map(([name, write]) => [
          name,
          <Code key={name} text={write(location.origin, body)} />,
        ])}
      />
    </Modal>
  );
}
