import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { assignCores } from "./process/cores.ts";
import { waitForLine, type Children } from "./process/children.ts";
import { processTree } from "./process/proc-stat.ts";
import { cpuMoment, cpuUsBetween } from "./translation-cpu.ts";
import {
  answerFrames,
  pathOf,
  requestOf,
  upstreams,
  wholeAnswer,
  type ClientName,
  type UpstreamName,
} from "./translation-work.ts";

const key = "sk-svc-v1-translationbenchtranslationbench";
const root = fileURLToPath(new URL("..", import.meta.url));
const concurrency = 8;

/** A gateway in a process of its own before upstreams of every dialect in this one. */
export interface MeasuredGateway {
  /** CPU time that one request costs the gateway, in microseconds; NaN where it cannot be read. */
  cpuUs(
    client: ClientName,
    upstream: UpstreamName,
    options: { stream: boolean; times: number },
  ): Promise<number>;
  stop(): Promise<void>;
}

/** Starts the gateway with its ledger and records in this directory. */
export async function startMeasuredGateway(
  children: Children,
  directory: string,
): Promise<MeasuredGateway> {
  const mock = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer });
  await mkdir(join(directory, "data"), { recursive: true });
  const configPath = join(directory, "translation.yaml");
  await writeFile(configPath, configuration({ directory, mockPort: Number(mock.port) }));
  const child = children.spawn({
    name: "translation",
    command: [process.execPath, "src/main.ts"],
    directory: root,
    cores: assignCores().peer,
    environment: {
      HOST: "127.0.0.1",
      PORT: "0",
      SWITCHYARD_CONFIG: configPath,
      SWITCHYARD_DATA_DIR: join(directory, "data"),
      SWITCHYARD_BOOTSTRAP_LLM_KEY: key,
      SWITCHYARD_BOOTSTRAP_CREDITS: "100000",
      SWITCHYARD_BOOTSTRAP_PLAN: "enterprise",
      NODE_ENV: "production",
    },
  });
  const [, port] = await waitForLine(child, {
    pattern: /^switchyard ready http:\/\/\S+:(\d+)/,
    timeoutMs: 20_000,
  });
  const base = `http://127.0.0.1:${port}/v1`;
  return {
    async cpuUs(client, upstream, { stream, times }) {
      const body = JSON.stringify(requestOf(client, { model: `bench/${upstream}`, stream }));
      const pids = processTree(child.pid);
      const before = cpuMoment(pids);
      await ask(base + pathOf[client], { body, times });
      return cpuUsBetween(before, cpuMoment(pids)) / times;
    },
    async stop() {
      await child.stop();
      await mock.stop(true);
    },
  };
}

/** Sends a request so many times, a few at once, and reads every answer to its end. */
async function ask(url: string, { body, times }: { body: string; times: number }): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const one = async (): Promise<void> => {
    for (let count = 0; count < times / concurrency; count += 1) {
      const response = await fetch(url, { method: "POST", headers, body });
      const text = await response.text();
      if (response.status !== 200 || !text.includes("cost"))
        throw new Error(`${url} answered ${response.status}: ${text.slice(0, 300)}`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, one));
}

const answers = new Map(
  upstreams.map(
    (upstream) =>
      [
        upstream,
        { whole: wholeAnswer(upstream), stream: answerFrames(upstream).join("") },
      ] as const,
  ),
);

const dialectOf = (path: string): UpstreamName => {
  if (path.endsWith("/chat/completions")) return "openai-chat";
  if (path.endsWith("/messages")) return "anthropic-messages";
  return path.endsWith("/responses") ? "openai-responses" : "google-generate";
};

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const text = await request.text();
  const known = answers.get(dialectOf(pathname));
  const streams = pathname.includes("streamGenerateContent") || text.includes('"stream":true');
  return streams
    ? new Response(known?.stream, { headers: { "content-type": "text/event-stream" } })
    : new Response(known?.whole, { headers: { "content-type": "application/json" } });
}

function configuration({ directory, mockPort }: { directory: string; mockPort: number }): string {
  const entry = (dialect: UpstreamName): string => `
  - id: bench-${dialect}
    base_url: http://127.0.0.1:${mockPort}/v1
    dialect: ${dialect}
    api_key: x
    models:
      - id: bench/${dialect}
        upstream_model: large-v2
        context_length: 4000000
        max_completion_tokens: 16384
        pricing: { prompt: "0.50", completion: "1.50" }`;
  return `storage: { url: "sqlite:${join(directory, "data", "switchyard.db")}", durability: process }
sandbox: { enabled: false }
plans: { enterprise: { per_minute: 1000000000 } }
providers:${upstreams.map(entry).join("")}
`;
}
