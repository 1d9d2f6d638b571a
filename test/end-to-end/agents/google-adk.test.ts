import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { testLlmKey } from "../../support/gateway.ts";
import { clientStage, modelIn, upstreamDialects } from "../clients/support/client-stage.ts";
import { missingPackage } from "../clients/python/run-script.ts";
import {
  pythonPathOf,
  testClient,
  testClientsFolder,
} from "../clients/support/test-clients-folder.ts";

const packages = join(testClientsFolder, "python-google-adk");
const isInstalled = Bun.which("python3") !== null && existsSync(join(packages, "google", "adk"));
const stage = clientStage();

const call = { id: "call_oslo", name: "get_weather", arguments: { city: "Oslo" } };
const reasoning = { text: "One city only.", signature: "c2lnbmVkIGJ5IHRoZSBzY3JpcHQ=" };

test.skipIf(!isInstalled)(
  "an agent of the Agent Development Kit calls its tool and goes on, over every upstream dialect",
  async () => {
    const models = upstreamDialects.map(modelIn);
    const before = stage.upstream.requests.length;
    for (const _ of [...models, ...models])
      stage.upstream.say(
        { reasoning, text: ["Let me ", "look."], calls: [call] },
        { text: ["Sun ", "in Oslo."] },
        { text: ["Rain."] },
      );
    const script = fileURLToPath(new URL("python/adk_agent.py", import.meta.url));
    const child = Bun.spawn(["python3", script, ...models], {
      stdout: "pipe",
      stderr: "pipe",
      env: {
        PATH: process.env["PATH"] ?? "",
        PYTHONPATH: pythonPathOf("python-google-adk"),
        PYTHONDONTWRITEBYTECODE: "1",
        GATEWAY_ORIGIN: stage.gateway.origin,
        GOOGLE_API_KEY: testLlmKey,
      },
    });
    const [output, errors] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect([await child.exited, errors.split("Traceback")[1] ?? ""]).toEqual([0, ""]);
    const told = output
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as { said: string[] });
    expect(told.map(({ said }) => said.join(""))).toEqual(
      [...models, ...models].map(() => "Let me look.Sun in Oslo.Rain."),
    );
    const bodies = stage.upstream.requests.slice(before).map(({ body }) => body);
    expect(bodies).toHaveLength(3 * told.length);
    for (const [index, body] of bodies.entries())
      if (index % 3 > 0) expect(body).toContain("weather of Oslo");
  },
);

/** The parts of the kit for JavaScript that are asked for here. */
interface Adk {
  FunctionTool: new (options: object) => unknown;
  Gemini: new (options: object) => unknown;
  LlmAgent: new (options: object) => unknown;
  InMemoryRunner: new (
    options: object,
  ) => {
    sessionService: { createSession(options: object): Promise<{ id: string }> };
    runAsync(options: object): AsyncIterable<{
      partial?: boolean;
      content?: { parts?: { text?: string; thought?: boolean }[] };
    }>;
  };
  setLogLevel(level: number): void;
  LogLevel: { ERROR: number };
}

const lacksKit = missingPackage("google-adk/node_modules", "@google/adk");
test.skipIf(lacksKit !== undefined)(
  "an agent of the kit for JavaScript does the same, whole and streamed",
  async () => {
    const kit = (await testClient("google-adk", "@google/adk")) as Adk;
    kit.setLogLevel(kit.LogLevel.ERROR);
    const look = new kit.FunctionTool({
      name: call.name,
      description: "Tells the weather of a city.",
      parameters: { type: "OBJECT", properties: { city: { type: "STRING" } } },
      execute: ({ city }: { city: string }) => ({ output: `weather of ${city}` }),
    });
    process.env["GOOGLE_GEMINI_BASE_URL"] = stage.gateway.origin;
    try {
      for (const dialect of upstreamDialects)
        for (const streamingMode of [undefined, "sse"]) {
          stage.upstream.say(
            { reasoning, text: ["Let me ", "look."], calls: [call] },
            { text: ["Sun ", "in Oslo."] },
          );
          const model = new kit.Gemini({ model: modelIn(dialect), apiKey: testLlmKey });
          const agent = new kit.LlmAgent({ name: "one", model, tools: [look] });
          const runner = new kit.InMemoryRunner({ agent, appName: "a" });
          const user = { appName: "a", userId: "u" };
          const { id } = await runner.sessionService.createSession(user);
          let said = "";
          const asked = {
            ...{ userId: "u", sessionId: id, runConfig: { streamingMode } },
            newMessage: { role: "user", parts: [{ text: "How is Oslo?" }] },
          };
          for await (const { partial, content } of runner.runAsync(asked))
            if (partial !== true)
              for (const { text, thought } of content?.parts ?? [])
                if (thought !== true) said += text ?? "";
          expect([dialect, streamingMode, said]).toEqual([
            ...[dialect, streamingMode],
            "Let me look.Sun in Oslo.",
          ]);
          expect(stage.upstream.requests.at(-1)?.body).toContain("weather of Oslo");
        }
    } finally {
      delete process.env["GOOGLE_GEMINI_BASE_URL"];
    }
  },
);
