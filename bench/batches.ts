import { parseArgs } from "node:util";
import { testLlmKey } from "../test/support/gateway.ts";
import { describeMachine } from "./machine.ts";
import { residentMb } from "./process/proc-stat.ts";
import { serveGateway } from "./process/serve-gateway.ts";
import { median } from "./results.ts";

/** Seconds in which 50,000 lines are to be checked, and the share by which chat may be slower. */
const validationSecondsMax = 5;
const slowerMax = 0.1;

const { values: options } = parseArgs({
  options: {
    lines: { type: "string", default: "50000" },
    mb: { type: "string", default: "200" },
    requests: { type: "string", default: "400" },
    turns: { type: "string", default: "5" },
    serve: { type: "string" },
  },
});

/** The gateway, in a process of its own. */
const serve = (upstream: string): Promise<void> =>
  serveGateway({
    base_url: upstream,
    models: [
      { id: "bench/chat", context_length: 8_192, pricing: { prompt: "1", completion: "1" } },
    ],
  });

const messages = [{ role: "user", content: "hi" }];
const headers = { authorization: `Bearer ${testLlmKey}` };

/** Keeps the chat of a fast machine below the requests a minute that the key's tier admits. */
const chatEveryMs = 40;

const chatBody = JSON.stringify({ model: "bench/chat", max_tokens: 5, messages });

/** Starts a provider that answers after 20 ms. */
function startUpstream(): { url: string; stop(): void } {
  const answer = JSON.stringify({
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "chat",
    choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "yes" } }],
    usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
  });
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      await request.arrayBuffer();
      await Bun.sleep(20);
      return new Response(answer, { headers: { "content-type": "application/json" } });
    },
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, stop: () => void server.stop(true) };
}

/** Yields the lines of an input, each filled to some bytes. */
function* inputLines(count: number, fillBytes: number): Generator<Uint8Array> {
  const request = { method: "POST", url: "/v1/chat/completions" };
  const body = { model: "bench/chat", max_tokens: 5, messages, user: "x".repeat(fillBytes) };
  const rest = JSON.stringify({ ...request, body }).slice(1);
  for (let line = 0; line < count; line += 1)
    yield Buffer.from(`{"custom_id":"l${line}",${rest}\n`);
}

/** A gateway that is measured. */
class Measured {
  private readonly origin: string;
  readonly pid: number;

  constructor(origin: string, pid: number) {
    this.origin = origin;
    this.pid = pid;
  }

  private async json(path: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.origin}/v1${path}`, {
      ...init,
      headers: { ...headers, ...(init.headers as Record<string, string>) },
    });
    const body = (await response.json()) as Record<string, unknown>;
    if (!response.ok) throw new Error(`${path}: ${JSON.stringify(body)}`);
    return body;
  }

  /** Uploads an input. Its form is written as it is sent, so that it takes no memory here. */
  async upload(lines: Iterable<Uint8Array>): Promise<string> {
    const head =
      '--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n' +
      '--b\r\ncontent-disposition: form-data; name="file"; filename="in.jsonl"\r\n\r\n';
    async function* form(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(head);
      for (const line of lines) yield line;
      yield Buffer.from("\r\n--b--\r\n");
    }
    const file = await this.json("/files", {
      method: "POST",
      headers: { "content-type": "multipart/form-data; boundary=b" },
      body: form() as unknown as ReadableStream<Uint8Array>,
    });
    return String(file["id"]);
  }

  async create(fileId: string): Promise<string> {
    const batch = await this.json("/batches", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        input_file_id: fileId,
        endpoint: "/v1/chat/completions",
        completion_window: "24h",
      }),
    });
    return String(batch["id"]);
  }

  /** Waits until a batch has one of some statuses. */
  async until(id: string, statuses: readonly string[]): Promise<void> {
    for (;;) {
      const { status } = await this.json(`/batches/${id}`);
      if (statuses.includes(String(status))) return;
      await Bun.sleep(20);
    }
  }

  async cancel(id: string): Promise<void> {
    await this.json(`/batches/${id}/cancel`, { method: "POST" });
    await this.until(id, ["cancelled", "completed"]);
  }

  /**
   * Sends one chat request after another, each at least `chatEveryMs` after the one before it;
   * returns the milliseconds of each.
   */
  async chat(count: number): Promise<number[]> {
    const times: number[] = [];
    for (let index = 0; index < count; index += 1) {
      const startedMs = performance.now();
      await this.json("/chat/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: chatBody,
      });
      const tookMs = performance.now() - startedMs;
      times.push(tookMs);
      await Bun.sleep(Math.max(0, chatEveryMs - tookMs));
    }
    return times;
  }
}

const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length * share)] ?? 0;

/** Checks a file of many lines. Returns the seconds. */
async function validation(measured: Measured): Promise<number> {
  const fileId = await measured.upload(inputLines(Number(options.lines), 0));
  const startedMs = performance.now();
  const id = await measured.create(fileId);
  await measured.until(id, ["in_progress", "completed", "failed"]);
  const seconds = (performance.now() - startedMs) / 1000;
  await measured.cancel(id);
  return seconds;
}

/** Uploads and checks a large input. Returns the megabytes that it took at most. */
async function largeInput(measured: Measured): Promise<number> {
  await Bun.write(`/proc/${measured.pid}/clear_refs`, "5");
  const before = residentMb(measured.pid, "VmRSS");
  const lineBytes = 20_000;
  const count = Math.floor((Number(options.mb) * 1e6) / (lineBytes + 200));
  const fileId = await measured.upload(inputLines(count, lineBytes));
  const id = await measured.create(fileId);
  await measured.until(id, ["in_progress", "completed", "failed"]);
  await measured.cancel(id);
  return residentMb(measured.pid, "VmHWM") - before;
}

/** Measures chat alone and beside a batch, in turns. Returns both. */
async function beside(measured: Measured): Promise<{ alone: number[]; busy: number[] }> {
  const [alone, busy]: [number[], number[]] = [[], []];
  const fileId = await measured.upload(inputLines(20_000, 0));
  const each = Number(options.requests);
  await measured.chat(each);
  for (let turn = 0; turn < Number(options.turns); turn += 1) {
    alone.push(...(await measured.chat(each)));
    const id = await measured.create(fileId);
    await measured.until(id, ["in_progress"]);
    busy.push(...(await measured.chat(each)));
    await measured.cancel(id);
  }
  return { alone, busy };
}

async function measure(): Promise<void> {
  const upstream = startUpstream();
  const child = Bun.spawn([process.execPath, import.meta.path, "--serve", upstream.url], {
    stdout: "pipe",
    stderr: "inherit",
  });
  try {
    const printed = (await child.stdout.getReader().read()).value;
    const measured = new Measured(new TextDecoder().decode(printed).trim(), child.pid);
    const { cpu, cores, bun, commit } = describeMachine(".");
    console.log(`${cpu}, ${cores} cores, Bun ${bun}, commit ${commit}`);
    const seconds = await validation(measured);
    console.log(`${options.lines} lines are checked in ${seconds.toFixed(1)} s`);
    console.log(`an input of ${options.mb} MB takes ${await largeInput(measured)} MB more at most`);
    const { alone, busy } = await beside(measured);
    const words = (times: readonly number[]): string =>
      `p50 ${median(times).toFixed(1)} ms, p99 ${quantile(times, 0.99).toFixed(1)} ms`;
    console.log(`chat alone: ${words(alone)}; beside a batch: ${words(busy)}`);
    const isSlower = [0.5, 0.99].some(
      (share) => quantile(busy, share) > quantile(alone, share) * (1 + slowerMax),
    );
    if (isSlower || seconds > validationSecondsMax) process.exitCode = 1;
  } finally {
    child.kill();
    await child.exited;
    upstream.stop();
  }
}

if (options.serve === undefined) await measure();
else await serve(options.serve);
