import { rmSync } from "node:fs";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Children, waitForLine } from "./process/children.ts";
import { cpuTimeMs, processTree } from "./process/proc-stat.ts";
import { LatencyHistogram } from "./load/latency-histogram.ts";
import { alignedTable } from "./report.ts";

/** What a kept answer may cost beside an answer that is nothing but sent, in milliseconds. */
const barMs = 0.2;

const key = "sk-svc-v1-embeddingsbenchembeddingsbenchemb";
const root = fileURLToPath(new URL("..", import.meta.url));
const rounds = 40;
const requestsOfRound = 50;

/** Where requests go, what they carry, and who answers them. */
interface Way {
  name: string;
  url: string;
  headers: Readonly<Record<string, string>>;
  pid: number;
}

interface Figures {
  latency: LatencyHistogram;
  cpuMs: number;
}

const body = JSON.stringify({
  model: "bench/embed",
  input: "Tell me how a yard sorts its wagons. ".repeat(27),
});

/** One request after the other over one connection. */
async function measure(
  { url, headers, pid }: Way,
  { latency, ...figures }: Figures,
): Promise<Figures> {
  const pids = processTree(pid);
  const beforeMs = cpuTimeMs(pids) ?? Number.NaN;
  for (let count = 0; count < requestsOfRound; count += 1) {
    const startedAtMs = performance.now();
    const response = await fetch(url, { method: "POST", headers, body });
    const text = await response.text();
    latency.record((performance.now() - startedAtMs) * 1_000);
    if (response.status === 200 && text.includes("embedding")) continue;
    throw new Error(`${url} answered ${response.status}: ${text.slice(0, 300)}`);
  }
  return { latency, cpuMs: figures.cpuMs + (cpuTimeMs(pids) ?? Number.NaN) - beforeMs };
}

/** Each way in its turn, round after round, after one round that warms all of them up. */
async function figuresOf(ways: readonly Way[]): Promise<Map<Way, Figures>> {
  const fresh = (): Figures => ({ latency: new LatencyHistogram(), cpuMs: 0 });
  for (let round = 0; round < 5; round += 1) for (const way of ways) await measure(way, fresh());
  const figures = new Map(ways.map((way) => [way, fresh()]));
  for (let round = 0; round < rounds; round += 1) {
    for (const way of ways) figures.set(way, await measure(way, figures.get(way) ?? fresh()));
  }
  return figures;
}

const configuration = (
  directory: string,
  port: number,
): string => `storage: { url: "sqlite:${join(directory, "switchyard.db")}" }
sandbox: { enabled: false }
plans: { enterprise: { per_minute: 1000000000 } }
providers:
  - id: bare
    base_url: http://127.0.0.1:${port}/v1
    dialect: { embeddings: openai-embeddings }
    api_key: x
    models: [{ id: bench/embed, surface: embeddings, context_length: 8192, pricing: { prompt: "0.02", completion: "0" } }]
`;

async function startGateway(
  children: Children,
  { directory, barePort }: { directory: string; barePort: number },
) {
  await mkdir(directory, { recursive: true });
  const configPath = join(directory, "switchyard.yaml");
  await writeFile(configPath, configuration(directory, barePort));
  const child = children.spawn({
    name: "gateway",
    command: [process.execPath, "src/main.ts"],
    directory: root,
    environment: {
      HOST: "127.0.0.1",
      PORT: "0",
      SWITCHYARD_CONFIG: configPath,
      SWITCHYARD_DATA_DIR: directory,
      SWITCHYARD_BOOTSTRAP_LLM_KEY: key,
      SWITCHYARD_BOOTSTRAP_CREDITS: "100000",
      SWITCHYARD_BOOTSTRAP_PLAN: "enterprise",
      NODE_ENV: "production",
      LOG_LEVEL: "warn",
    },
  });
  const [, port] = await waitForLine(child, {
    pattern: /^switchyard ready http:\/\/\S+:(\d+)/,
    timeoutMs: 20_000,
  });
  return { port: Number(port), pid: child.pid };
}

function report(figures: Map<Way, Figures>): void {
  const all = [...figures].map(([{ name }, { latency, cpuMs }]) => ({
    name,
    ...latency.summary(),
    cpuUs: (cpuMs * 1_000) / latency.count,
  }));
  const bareMs = (all[0]?.p50Us ?? 0) / 1_000;
  console.log(
    alignedTable([
      ["answer", "p50 ms", "p99 ms", "+p50 ms", "ratio", "cpu us"],
      ...all.map(({ name, p50Us, p99Us, cpuUs }) => [
        name,
        (p50Us / 1_000).toFixed(3),
        (p99Us / 1_000).toFixed(3),
        (p50Us / 1_000 - bareMs).toFixed(3),
        (p50Us / 1_000 / bareMs).toFixed(2),
        cpuUs.toFixed(0),
      ]),
    ]),
  );
  const costMs = (all[1]?.p50Us ?? Number.NaN) / 1_000 - bareMs;
  console.log(
    `\na kept answer costs ${costMs.toFixed(3)} ms on top of the bare server; the bar is ${barMs}`,
  );
  process.exitCode = costMs > barMs ? 1 : 0;
}

async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "switchyard-bench-"));
  const children = new Children(directory);
  try {
    const bare = children.spawn({
      name: "bare",
      command: [process.execPath, "bench/embeddings/bare-server.ts"],
      directory: root,
    });
    const [, barePort] = await waitForLine(bare, {
      pattern: /^bare ready (\d+)$/,
      timeoutMs: 10_000,
    });
    const gateway = await startGateway(children, {
      directory: join(directory, "data"),
      barePort: Number(barePort),
    });
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const url = `http://127.0.0.1:${gateway.port}/v1/embeddings`;
    report(
      await figuresOf([
        {
          name: "of the bare server",
          url: `http://127.0.0.1:${barePort}/v1/embeddings`,
          headers,
          pid: bare.pid,
        },
        { name: "kept by the gateway", url, headers, pid: gateway.pid },
        {
          name: "asked for anew",
          url,
          headers: { ...headers, "gw-skip-cache": "true" },
          pid: gateway.pid,
        },
      ]),
    );
  } finally {
    await children.stopAll();
    rmSync(directory, { recursive: true, force: true });
  }
}

await main();
