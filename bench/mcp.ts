import { parseArgs } from "node:util";
import { seedStorage } from "../test/end-to-end/api/seed-storage.ts";
import { bootstrapWith } from "../test/end-to-end/api/bootstrap-with.ts";
import { provider, startGateway } from "../test/support/gateway.ts";
import { describeMachine } from "./machine.ts";
import { cpuTimeMs } from "./process/proc-stat.ts";

/** Calls a second of one core that `list_models` of a few models has to reach. */
const bar = 2_000;
/**
 * The contract's limits are kept: so many calls by credential and requests by address, a few fewer
 * than a minute admits.
 */
const perKey = 115;
const perAddress = 290;
const inFlight = 32;
const warmUpCalls = 2_000;

const { values: options } = parseArgs({
  options: {
    calls: { type: "string", default: "20000" },
    models: { type: "string", default: "10" },
    serve: { type: "boolean" },
    ping: { type: "boolean", default: false },
  },
});
const calls = Number(options.calls);
const models = Number(options.models);
const keyOf = (call: number): string =>
  `sk-svc-v1-bench${String(Math.floor(call / perKey)).padStart(32, "0")}`;
const addressOf = (call: number): string => {
  const index = Math.floor(call / perAddress);
  return `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;
};

/** The gateway, in a process of its own: prints its address and runs until it is ended. */
async function serve(): Promise<void> {
  const keys = Math.ceil((calls + warmUpCalls) / perKey) + 1;
  const storage = await seedStorage({
    workspaces: [{ id: "ws_bench" }],
    llmKeys: Array.from({ length: keys }, (_, index) => ({
      secret: keyOf(index * perKey),
      workspaceId: "ws_bench",
    })),
  });
  const pricing = { prompt: "0.5", completion: "1.5" };
  const gateway = await startGateway({
    ...storage.settings,
    trustProxy: true,
    bootstrap: { ...bootstrapWith({}), llmKey: undefined, managementKey: undefined },
    providers: [
      provider({
        id: "bench",
        base_url: "http://127.0.0.1:9",
        dialect: "openai-chat",
        api_key: "k",
        models: Array.from({ length: models }, (_, index) => ({
          id: `maker/model-${index}`,
          context_length: 128_000,
          pricing,
        })),
      }),
    ],
  });
  console.log(gateway.origin);
}

const message = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  ...(options.ping
    ? { method: "ping" }
    : { method: "tools/call", params: { name: "list_models", arguments: {} } }),
});

/** Sends calls, so many at once; throws where one is not answered with a list. */
async function send(
  origin: string,
  { from, count }: { from: number; count: number },
): Promise<void> {
  let next = from;
  const worker = async (): Promise<void> => {
    for (let call = next++; call < from + count; call = next++) {
      const response = await fetch(`${origin}/mcp`, {
        method: "POST",
        body: message,
        headers: {
          authorization: `Bearer ${keyOf(call)}`,
          "content-type": "application/json",
          "x-forwarded-for": addressOf(call),
          "x-forwarded-proto": "https",
        },
      });
      const text = await response.text();
      if (
        response.status !== 200 ||
        !text.includes(options.ping ? '"result"' : '"structuredContent"')
      )
        throw new Error(`${response.status}: ${text.slice(0, 300)}`);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
}

async function measure(): Promise<void> {
  const child = Bun.spawn(
    [
      process.execPath,
      import.meta.path,
      "--serve",
      "--calls",
      String(calls),
      "--models",
      String(models),
    ],
    {
      stdout: "pipe",
      stderr: "inherit",
      env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: "16384" },
    },
  );
  try {
    const reader = child.stdout.getReader();
    let printed = "";
    while (!printed.includes("\n"))
      printed += new TextDecoder().decode((await reader.read()).value);
    const origin = printed.trim();
    await send(origin, { from: 0, count: warmUpCalls });
    const cpuBeforeMs = cpuTimeMs([child.pid]) ?? 0;
    const startedMs = performance.now();
    await send(origin, { from: warmUpCalls, count: calls });
    const wallMs = performance.now() - startedMs;
    const cpuMs = (cpuTimeMs([child.pid]) ?? 0) - cpuBeforeMs;
    const perCore = Math.round((calls / cpuMs) * 1000);
    const { cpu, cores, bun, commit } = describeMachine(".");
    console.log(`${cpu}, ${cores} cores, Bun ${bun}, commit ${commit}`);
    console.log(`list_models of ${models} models, ${calls} calls, ${inFlight} at once`);
    const perSecond = Math.round((calls / wallMs) * 1000);
    console.log(
      `${perCore} calls per CPU-second, ${(cpuMs / calls).toFixed(3)} ms of CPU each; ${perSecond} a second here`,
    );
    if (perCore < bar && models <= 10) {
      console.error(`below ${bar} calls per CPU-second`);
      process.exitCode = 1;
    }
  } finally {
    child.kill();
    await child.exited;
  }
}

await (options.serve ? serve() : measure());
