import { parseArgs } from "node:util";
import type { Server } from "bun";
import { bootstrapWith } from "../test/end-to-end/api/bootstrap-with.ts";
import { seedStorage } from "../test/end-to-end/api/seed-storage.ts";
import { provider, startGateway } from "../test/support/gateway.ts";
import { describeMachine } from "./machine.ts";
import { cpuTimeMs, memoryOf } from "./process/proc-stat.ts";

/**
 * CPU that the gateway may take for a frame of sound, in multiples of a bare relay's, and megabytes
 * that 5,000 idle sockets may add.
 */
const relayFactorMax = 2;
const idleMegabytesMax = 150;

/** Sockets of one key and of one address, a few fewer than a minute admits. */
const perKey = 100;
const perAddress = 250;

const frameMs = 20;
/** Sound of 20 ms, 24 kHz in 16 bits. */
const sound = Buffer.alloc(960).toString("base64");

const { values: options } = parseArgs({
  options: {
    role: { type: "string", default: "measure" },
    upstream: { type: "string", default: "" },
    sessions: { type: "string", default: "500" },
    seconds: { type: "string", default: "10" },
    idle: { type: "string", default: "5000" },
  },
});
const sessions = Number(options.sessions);
const seconds = Number(options.seconds);
const idle = Number(options.idle);

const keyOf = (socket: number): string =>
  `sk-svc-v1-bench${String(Math.floor(socket / perKey)).padStart(32, "0")}`;
const headersOf = (socket: number) => ({
  authorization: `Bearer ${keyOf(socket)}`,
  "x-forwarded-for": `10.0.${Math.floor(socket / perAddress)}.1`,
  "x-forwarded-proto": "https",
});

/** Opens a socket with headers, without compression, as OpenAI's clients do. */
const socketTo = (url: string, headers: Record<string, string>): WebSocket =>
  new WebSocket(url, { headers, perMessageDeflate: false } as unknown as string[]);

/** A provider whose session answers each frame of sound with one. */
function serveProvider(): Server<undefined> {
  const delta = JSON.stringify({
    type: "response.output_audio.delta",
    event_id: "event_1",
    response_id: "resp_1",
    item_id: "item_1",
    output_index: 0,
    content_index: 0,
    delta: sound,
  });
  return Bun.serve<undefined>({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request, server) =>
      server.upgrade(request, { data: undefined })
        ? undefined
        : new Response("no", { status: 400 }),
    websocket: {
      perMessageDeflate: false,
      open(socket) {
        const session = { type: "realtime", id: "sess_1", model: "voice" };
        socket.send(JSON.stringify({ type: "session.created", event_id: "event_0", session }));
        const response = { id: "resp_1", status: "in_progress" };
        socket.send(JSON.stringify({ type: "response.created", event_id: "event_0", response }));
      },
      message: (socket) => void socket.send(delta),
    },
  });
}

/** A relay that does nothing but pass frames on. */
function serveRelay(): Server<{ upstream: WebSocket; early: string[] }> {
  return Bun.serve<{ upstream: WebSocket; early: string[] }>({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request, server) {
      const upstream = socketTo(options.upstream, {});
      const data = { upstream, early: [] };
      return server.upgrade(request, { data }) ? undefined : new Response("no", { status: 400 });
    },
    websocket: {
      perMessageDeflate: false,
      open(socket) {
        const { upstream, early } = socket.data;
        upstream.addEventListener("message", ({ data }) => void socket.send(String(data)));
        upstream.addEventListener("open", () => {
          for (const text of early.splice(0)) upstream.send(text);
        });
      },
      message({ data: { upstream, early } }, text) {
        if (upstream.readyState === WebSocket.OPEN) upstream.send(String(text));
        else early.push(String(text));
      },
      close: ({ data: { upstream } }) => upstream.close(),
    },
  });
}

/** The gateway, with one model of sessions. */
async function serveGateway(): Promise<string> {
  const storage = await seedStorage({
    workspaces: [{ id: "ws_bench" }],
    llmKeys: Array.from(
      { length: Math.ceil(Math.max(idle, sessions) / perKey) + 1 },
      (_, index) => ({
        secret: keyOf(index * perKey),
        workspaceId: "ws_bench",
      }),
    ),
  });
  const gateway = await startGateway({
    ...storage.settings,
    trustProxy: true,
    bootstrap: { ...bootstrapWith({}), llmKey: undefined, managementKey: undefined },
    providers: [
      provider({
        id: "bench",
        base_url: options.upstream.replace(/^ws/, "http"),
        dialect: { realtime: "openai-realtime" },
        api_key: "k",
        models: [
          {
            id: "bench/voice",
            upstream_model: "voice",
            surface: "realtime",
            pricing: { prompt: "0.004", audio_input: "0.032", audio_output: "0.064" },
          },
        ],
      }),
    ],
  });
  return gateway.origin;
}

/** A role of this program in a process of its own, and its address. */
async function start(role: string, upstream = "") {
  const child = Bun.spawn(
    [
      process.execPath,
      import.meta.path,
      "--role",
      role,
      "--upstream",
      upstream,
      "--idle",
      `${idle}`,
    ],
    { stdout: "pipe", stderr: "inherit" },
  );
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  return { child, url: new TextDecoder().decode(value).trim() };
}

/** Opens so many sockets at a path, a few at a time; rejects where one is refused. */
async function openAll(base: string, count: number): Promise<WebSocket[]> {
  const sockets: WebSocket[] = [];
  for (let from = 0; from < count; from += 50) {
    const some = Array.from({ length: Math.min(50, count - from) }, (_, index) =>
      socketTo(base, headersOf(from + index)),
    );
    await Promise.all(
      some.map(
        (socket) =>
          new Promise((resolve, reject) => {
            socket.addEventListener("open", resolve);
            socket.addEventListener("close", () => reject(new Error(`${base} refused a socket`)));
          }),
      ),
    );
    sockets.push(...some);
  }
  return sockets;
}

/** Sends sound over sessions for some seconds; returns the CPU of a frame and how many came back. */
async function speak(url: string, pid: number): Promise<{ microseconds: number; frames: number }> {
  const sockets = await openAll(url, sessions);
  let frames = 0;
  for (const socket of sockets)
    socket.addEventListener("message", ({ data }) => {
      if (String(data).includes("audio.delta")) frames += 1;
    });
  const text = JSON.stringify({ type: "input_audio_buffer.append", audio: sound });
  const beforeMs = cpuTimeMs([pid]) ?? Number.NaN;
  const endsAtMs = performance.now() + seconds * 1_000;
  while (performance.now() < endsAtMs) {
    const nextMs = performance.now() + frameMs;
    for (const socket of sockets) socket.send(text);
    await Bun.sleep(Math.max(0, nextMs - performance.now()));
  }
  await Bun.sleep(500);
  const spentMs = (cpuTimeMs([pid]) ?? Number.NaN) - beforeMs;
  for (const socket of sockets) socket.close();
  return { microseconds: (spentMs * 1_000) / frames, frames };
}

async function measure(): Promise<void> {
  const upstream = await start("provider");
  const relay = await start("relay", upstream.url);
  const gateway = await start("gateway", upstream.url);
  const bare = await speak(relay.url, relay.child.pid);
  const own = await speak(`${gateway.url}/v1/realtime?model=bench/voice`, gateway.child.pid);
  const factor = own.microseconds / bare.microseconds;
  await Bun.sleep(1_000);
  const before = memoryOf([gateway.child.pid])?.rssKb ?? Number.NaN;
  const idling = await openAll(`${gateway.url}/v1/responses`, idle);
  await Bun.sleep(1_000);
  const megabytes = ((memoryOf([gateway.child.pid])?.rssKb ?? Number.NaN) - before) / 1_024;
  console.log(JSON.stringify({ machine: describeMachine(process.cwd()), sessions, seconds }));
  console.log(`a bare relay: ${bare.microseconds.toFixed(1)} µs a frame, ${bare.frames} frames`);
  console.log(`the gateway: ${own.microseconds.toFixed(1)} µs a frame, ${own.frames} frames`);
  console.log(`${factor.toFixed(2)} times a relay (at most ${relayFactorMax})`);
  console.log(
    `${idling.length} idle sockets: ${megabytes.toFixed(0)} MB (at most ${idleMegabytesMax})`,
  );
  for (const { child } of [gateway, relay, upstream]) child.kill();
  process.exit(factor <= relayFactorMax && megabytes <= idleMegabytesMax ? 0 : 1);
}

const address = ({ port }: Server<unknown>): string => `ws://127.0.0.1:${port}`;

switch (options.role) {
  case "provider":
    console.log(address(serveProvider()));
    break;
  case "relay":
    console.log(address(serveRelay()));
    break;
  case "gateway":
    console.log((await serveGateway()).replace(/^http/, "ws"));
    break;
  default:
    await measure();
}
