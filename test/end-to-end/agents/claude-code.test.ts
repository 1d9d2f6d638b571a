import { describe, expect, test } from "bun:test";
import { testLlmKey } from "../../support/gateway.ts";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { head, json, stream } from "../../support/upstream/steps.ts";
import { isNightly } from "../../support/nightly.ts";
import { briefModel, clientStage, modelIn } from "../clients/support/client-stage.ts";
import { eventsOfWhole } from "../matrix/pairs/streamed-answer.ts";
import { gemini, message, response, said } from "../matrix/pairs/upstream-heads.ts";
import { dialectsByDay } from "./support/dialects-by-day.ts";
import { missingAgent, runAgent, type AgentRun } from "./support/agent-run.ts";

const missing = missingAgent("claude");

const written = "It is written.";

/** Answers whose reasoning, or the seal of it, comes after their text. */
const lateReasoning = [
  [
    "anthropic-messages",
    message(
      [
        { type: "text", text: written },
        { type: "thinking", thinking: "Hm.", signature: "c2Vh" },
      ],
      { stop_reason: "end_turn" },
    ),
  ],
  [
    "openai-responses",
    response([
      said(written),
      { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "c2Vh" },
    ]),
  ],
  ["google-generate", gemini([{ text: written }, { text: "", thoughtSignature: "c2Vh" }], "STOP")],
] as const;

describe.skipIf(missing !== undefined)(
  `Claude Code${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    const stage = clientStage();

    const run = (
      model: string,
      variables: Record<string, string> = { ANTHROPIC_AUTH_TOKEN: testLlmKey },
    ): Promise<AgentRun> =>
      runAgent({
        name: "claude",
        parameters: [
          ...["-p", "Write a note.", "--model", model],
          ...["--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"],
        ],
        variables: {
          ANTHROPIC_BASE_URL: stage.gateway.origin,
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
          CLAUDE_CODE_MAX_RETRIES: "0",
          DISABLE_AUTOUPDATER: "1",
          DISABLE_ERROR_REPORTING: "1",
          DISABLE_TELEMETRY: "1",
          ...variables,
        },
      });

    // What it prints does not stand in the call.
    const command = "echo made by a tool > note.txt && tr a-z A-Z < note.txt";
    const call = { id: "toolu_note", name: "Bash", arguments: { command, description: "Write" } };

    test.each(dialectsByDay("google-generate"))("completes a task over %s", async (dialect) => {
      const { upstream } = stage;
      const before = upstream.requests.length;
      upstream.say({ text: ["I will write it."], calls: [call] }, { text: ["It is ", "written."] });
      const done = await run(modelIn(dialect));
      expect(done.exitCode).toBe(0);
      expect(done.files.get("note.txt")).toBe("made by a tool\n");
      const bodies = upstream.requests.slice(before).map(({ body }) => body);
      expect(bodies).toHaveLength(2);
      expect(bodies[1]).toContain("MADE BY A TOOL");
      expect(done.events.at(-1)).toMatchObject({
        type: "result",
        is_error: false,
        result: "It is written.",
        usage: { input_tokens: 22, output_tokens: 14 },
      });
    });

    test.each(isNightly ? lateReasoning : lateReasoning.slice(0, 1))(
      "prints a text that reasoning follows over %s",
      async (dialect, whole) => {
        stage.upstream.enqueue(stream(eventsOfWhole(dialect, whole)));
        const done = await run(modelIn(dialect));
        expect(done.exitCode).toBe(0);
        expect(done.events.at(-1)).toMatchObject({ is_error: false, result: written });
      },
    );

    test("works with a model that has a smaller output limit than requested", async () => {
      stage.upstream.say({ text: ["Hello."] });
      const done = await run(briefModel);
      expect(done.events.at(-1)).toMatchObject({ is_error: false, result: "Hello." });
      expect(stage.upstream.requests.at(-1)?.json()).toMatchObject({ max_tokens: 4096 });
    });

    test.each<[cloud: string, variables: () => Record<string, string>]>([
      [
        "Amazon Bedrock",
        () => ({
          CLAUDE_CODE_USE_BEDROCK: "1",
          ANTHROPIC_BEDROCK_BASE_URL: stage.gateway.origin,
          AWS_BEARER_TOKEN_BEDROCK: testLlmKey,
          AWS_REGION: "us-east-1",
        }),
      ],
      [
        "Vertex AI",
        () => ({
          CLAUDE_CODE_USE_VERTEX: "1",
          CLAUDE_CODE_SKIP_VERTEX_AUTH: "1",
          ANTHROPIC_VERTEX_BASE_URL: `${stage.gateway.origin}/v1`,
          ANTHROPIC_VERTEX_PROJECT_ID: "any",
          CLOUD_ML_REGION: "us-east5",
          ANTHROPIC_CUSTOM_HEADERS: `Authorization: Bearer ${testLlmKey}`,
        }),
      ],
    ])("completes a task when it is set to %s", async (_, variables) => {
      stage.upstream.say({ text: ["I will write it."], calls: [call] }, { text: [written] });
      const done = await run(modelIn("openai-chat"), variables());
      expect(done.files.get("note.txt")).toBe("made by a tool\n");
      expect(done.events.at(-1)).toMatchObject({ is_error: false, result: written });
    });

    test("accepts its key as x-api-key", async () => {
      stage.upstream.say({ text: ["Hello."] });
      const done = await run(modelIn("openai-chat"), { ANTHROPIC_API_KEY: testLlmKey });
      expect(done.events.at(-1)).toMatchObject({ is_error: false, result: "Hello." });
    });

    test("reports a refused key after a single request", async () => {
      const done = await run(modelIn("openai-chat"), {
        ANTHROPIC_AUTH_TOKEN: "sk-svc-v1-nobody",
        CLAUDE_CODE_MAX_RETRIES: "5",
      });
      expect(done.exitCode).not.toBe(0);
      expect(done.events.at(-1)).toMatchObject({ is_error: true, api_error_status: 401 });
      const refused = stage.gateway.logLines.filter((line) => line.includes('"invalid_api_key"'));
      expect(refused).toHaveLength(1);
    });

    test.each(dialectsByDay("openai-responses"))(
      "recognises a full context window over %s",
      async (dialect) => {
        const { upstream } = stage;
        const before = upstream.requests.length;
        const message =
          "This model's maximum context length is 8192 tokens, and 9000 were asked for.";
        const error = { message, type: "invalid_request_error", code: "context_length_exceeded" };
        upstream.enqueue(json({ error }, { status: 400 }));
        const done = await run(modelIn(dialect));
        const result = expect.stringContaining("too long");
        expect(done.events.at(-1)).toMatchObject({ is_error: true, result });
        expect(upstream.requests.length - before).toBe(1);
      },
    );

    test("retries after a stream that breaks off", async () => {
      const { upstream } = stage;
      const { opening, content, failure } = wireOf("openai-chat");
      upstream.enqueue([head(), ...opening, ...content, ...failure]);
      upstream.say({ text: ["Here it is."] });
      const done = await run(modelIn("openai-chat"), {
        ANTHROPIC_AUTH_TOKEN: testLlmKey,
        CLAUDE_CODE_MAX_RETRIES: "2",
      });
      expect(done.events.at(-1)).toMatchObject({ is_error: false, result: "Here it is." });
    });
  },
);
