import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  endProcesses,
  startProcess,
  temporaryDirectory,
  type GatewayProcess,
} from "../../support/process.ts";
import { programPath } from "../../support/program.ts";

const preloadPath = join(import.meta.dir, "..", "..", "support", "heap-on-signal.ts");
const key = `sk-svc-v1-${"5e".repeat(24)}`;

const frame = (data: object, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
const named = (data: { type: string; [member: string]: unknown }): string => frame(data, data.type);

/** The beginning of each dialect's stream, up to the first content. */
const beginnings: Readonly<Record<string, string>> = {
  "/chat/completions": frame({
    id: "up",
    object: "chat.completion.chunk",
    created: 1,
    model: "large",
    choices: [{ index: 0, delta: { role: "assistant", content: "Hi" }, finish_reason: null }],
  }),
  "/messages":
    named({
      type: "message_start",
      message: { id: "up", role: "assistant", content: [], usage: { input_tokens: 5 } },
    }) +
    named({
      type: "content_block_start",
      index: 0,
      content_block: { type: "text", text: "" },
    }) +
    named({
      type: "content_block_delta",
      index: 0,
      delta: { type: "text_delta", text: "Hi" },
    }),
  "/responses":
    named({ type: "response.created", response: { id: "up", status: "in_progress" } }) +
    named({
      type: "response.output_text.delta",
      output_index: 0,
      content_index: 0,
      delta: "Hi",
    }),
};

/** Answers with the beginning of a stream, and is then silent. */
const upstream = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    await request.text();
    const path = new URL(request.url).pathname.replace("/v1", "");
    const begun = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(beginnings[path])),
    });
    return new Response(begun, { headers: { "content-type": "text/event-stream" } });
  },
});

const dialects = ["openai-chat", "anthropic-messages", "openai-responses"];
const yaml = `
sandbox: { enabled: false }
providers:${dialects
  .map(
    (dialect) => `
  - id: ${dialect}
    base_url: "http://127.0.0.1:${upstream.port}/v1"
    dialect: ${dialect}
    api_key: k
    models: [{ id: ${dialect}/large, pricing: { prompt: "1", completion: "1" } }]`,
  )
  .join("")}
`;

const heapFile = join(temporaryDirectory(), "heap.json");
let gateway: GatewayProcess;
beforeAll(async () => {
  gateway = await startProcess({
    yaml,
    command: [process.execPath, "--preload", preloadPath, programPath("main")],
    environment: {
      HEAP_FILE: heapFile,
      SWITCHYARD_BOOTSTRAP_LLM_KEY: key,
      SWITCHYARD_BOOTSTRAP_CREDITS: "1000",
    },
  });
}, 240_000);
afterAll(async () => {
  await endProcesses();
  await upstream.stop(true);
});

/** The members of a request around a prompt, by the path of its dialect. */
const asking: Readonly<Record<string, (prompt: string) => object>> = {
  "/v1/chat/completions": (content) => ({ max_tokens: 9, messages: [{ role: "user", content }] }),
  "/v1/messages": (content) => ({
    max_tokens: 9,
    system: content,
    messages: [{ role: "user", content }],
  }),
  "/v1/responses": (input) => ({ max_output_tokens: 9, store: false, input }),
};

/** Opens a stream and reads its beginning; it stays open. */
async function open(path: string, body: object): Promise<void> {
  const response = await fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ stream: true, ...body }),
  });
  if (!response.ok)
    throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  const reader = response.body?.getReader();
  for (let text = ""; !text.includes("Hi"); ) {
    const chunk = await reader?.read();
    if (chunk?.value === undefined) throw new Error(`${path} ended after ${text}`);
    text += new TextDecoder().decode(chunk.value);
  }
}

/** Opens so many streams in each pair of dialects, and names their prompts. */
async function openAll(
  each: number,
  [paths, more]: [paths: readonly string[], more: object],
): Promise<string[]> {
  const prompts: string[] = [];
  for (const path of paths)
    for (const dialect of dialects)
      for (let count = 0; count < each; count += 1) {
        const prompt = `prompt-${crypto.randomUUID()}`;
        prompts.push(prompt);
        const body = asking[path]?.(`${prompt} ${"word ".repeat(200)}`);
        await open(path, { model: `${dialect}/large`, ...body, ...more });
      }
  return prompts;
}

test("streams that have begun do not keep their prompts in memory", async () => {
  const released = await openAll(4, [Object.keys(asking), {}]);
  const stored = await openAll(1, [["/v1/responses"], { store: true }]);
  gateway.child.kill("SIGUSR2");
  await gateway.stderrHas("heap written 1\n");
  const heap = readFileSync(heapFile, "utf8");
  const kept = (prompts: readonly string[]): string[] =>
    prompts.filter((prompt) => heap.includes(prompt));
  // The input of a response that is stored is written with its answer.
  expect(kept(stored)).toEqual(stored);
  // Of 36. The collector takes any word on the stack for a reference, so a few may be found.
  expect(kept(released).length).toBeLessThanOrEqual(6);
}, 240_000);
