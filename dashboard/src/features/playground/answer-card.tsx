import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { count, duration, requestCost } from "../../lib/format.ts";
import { Actions, Button, Card, Code, Problem, Select, Status } from "../../ui/parts.tsx";
import type { ChatBody } from "./draft.ts";
import own from "./playground.module.css";
import type { Answer } from "./stream.ts";

/** Ways to send the same request from a program. */
const languages = [
  ["curl", "curl"],
  ["openai", "OpenAI SDK"],
  ["anthropic", "Anthropic SDK"],
  ["ai-sdk", "AI SDK"],
] as const;
type Language = (typeof languages)[number][0];

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

/** The program that sends a request. The key is named, never written out. */
const codeOf = (language: Language, origin: string, body: ChatBody): string =>
  ({ curl, openai, anthropic, "ai-sdk": aiSdk })[language](origin, body);

/** Where the time, the tokens and the money of an answer went. */
function Figures({ answer, model }: { answer: Answer; model: string }) {
  const speed =
    answer.tokens === undefined || answer.totalMs === undefined
      ? undefined
      : answer.tokens / (answer.totalMs / 1_000);
  return (
    <dl className={own["figures"]}>
      <div>
        <dt>Route</dt>
        <dd>
          {answer.model ?? model}
          {answer.providers === undefined ? "" : ` by ${answer.providers}`}
        </dd>
      </div>
      <div>
        <dt>First token</dt>
        <dd>{duration(answer.firstTokenMs)}</dd>
      </div>
      <div>
        <dt>Total</dt>
        <dd>{duration(answer.totalMs)}</dd>
      </div>
      <div>
        <dt>Tokens</dt>
        <dd>
          {count(answer.tokens)}
          {speed === undefined ? "" : `, ${speed.toFixed(0)} a second`}
        </dd>
      </div>
      <div>
        <dt>Cost</dt>
        <dd>{requestCost(answer.costUsd)}</dd>
      </div>
    </dl>
  );
}

function Text({ answer }: { answer: Answer }) {
  const { text, reasoning, calls } = answer;
  return (
    <div className={own["answer"]} aria-live="polite">
      {reasoning === "" ? null : (
        <details>
          <summary>Reasoning</summary>
          {reasoning}
        </details>
      )}
      {text === "" && calls.length === 0 && answer.state === "waiting"
        ? "Waiting for the first token"
        : text}
      {calls.map((call, index) => (
        <Code key={index} text={`${call.name}(${call.arguments})`} />
      ))}
    </div>
  );
}

/** One model's answer, with what it took, and the program that asks the same. */
export function AnswerCard({
  model,
  answer,
  body,
}: {
  model: string;
  answer: Answer | undefined;
  body: ChatBody | undefined;
}) {
  const [language, setLanguage] = useState<Language | "">("");
  return (
    <Card
      title={model === "" ? "Answer" : model}
      actions={
        body === undefined ? undefined : (
          <Actions>
            <Select
              label={`${model} as code`}
              value={language}
              onChange={(chosen) => setLanguage(chosen as Language | "")}
              options={[["", "Answer"], ...languages]}
            />
          </Actions>
        )
      }
    >
      {language !== "" && body !== undefined ? (
        <Code text={codeOf(language, location.origin, body)} />
      ) : null}
      {answer === undefined ? (
        <p>No answer yet.</p>
      ) : (
        <>
          <Text answer={answer} />
          {answer.problem === undefined ? null : (
            <Problem error={new Error(answer.problem)} traceId={answer.traceId} />
          )}
          {answer.state === "stopped" ? <Status kind="warning">stopped</Status> : null}
          <Figures answer={answer} model={model} />
          {answer.generationId === undefined ||
          answer.state === "waiting" ||
          answer.state === "streaming" ? null : (
            <Link to="/activity" search={{ id: answer.generationId }}>
              Open the record
            </Link>
          )}
        </>
      )}
    </Card>
  );
}

/** Copies a link that opens the playground with the same draft. */
export function ShareButton({ fragment }: { fragment: () => string }) {
  const [copied, setCopied] = useState(false);
  const share = (): void => {
    // In the address as well, so that a reload and a bookmark have it where the clipboard is
    // refused.
    history.replaceState(history.state, "", location.pathname + location.search + fragment());
    void navigator.clipboard.writeText(location.href).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <Button look="plain" onClick={share}>
      {copied ? "Link copied" : "Share as link"}
    </Button>
  );
}
