import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pythonPathOf, testClientsFolder } from "../clients/support/test-clients-folder.ts";
import { missingForPython } from "../clients/python/python-client.ts";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
});
afterAll(() => gateway.stop());

const model = "sandbox/voice:free";

/** Makes a client secret for the simulated voice. */
async function makeSecret(): Promise<string> {
  const body = { session: { type: "realtime", model } };
  const made = await gateway.post("/realtime/client_secrets", body);
  return ((await made.json()) as { value: string }).value;
}

/** OpenAI's client, and the library that it opens sockets with, which comes with its agents. */
const packages = ["python", "python-agents"].map((name) => join(testClientsFolder, name));
const missing =
  missingForPython() ??
  (existsSync(join(packages[1] ?? "", "websockets")) ? undefined : "the package websockets");

test.skipIf(missing !== undefined)(
  "openai for Python continues responses, and talks with a key and with a client secret",
  async () => {
    const script = fileURLToPath(new URL("support/socket_clients.py", import.meta.url));
    const child = Bun.spawn(["python3", script, gateway.baseUrl, testLlmKey, await makeSecret()], {
      env: { ...process.env, PYTHONPATH: pythonPathOf("python", "python-agents") },
      stdout: "pipe",
      stderr: "inherit",
    });
    const text = await new Response(child.stdout).text();
    expect(await child.exited).toBe(0);
    expect(JSON.parse(text)).toEqual({
      responses: [expect.stringContaining("Hello"), expect.stringContaining("Again")],
      realtime: "[simulated] You sent: Hello.",
      secret: "[simulated] You sent: Hello.",
    });
  },
);

/** The parts of `@openai/agents-realtime` that the test uses. */
interface AgentsRealtime {
  RealtimeAgent: new (options: object) => object;
  RealtimeSession: new (
    agent: object,
    options: object,
  ) => {
    connect(options: object): Promise<void>;
    sendMessage(text: string): void;
    close(): void;
    on(event: string, listener: (...values: never[]) => void): void;
  };
}

const agents = join(testClientsFolder, "agents-realtime/node_modules/@openai/agents-realtime");

test.skipIf(!existsSync(agents))(
  "@openai/agents-realtime talks with a client secret, and hears a tone with its transcript",
  async () => {
    const { RealtimeAgent, RealtimeSession } = (await import(
      join(agents, "dist/index.mjs")
    )) as AgentsRealtime;
    const session = new RealtimeSession(new RealtimeAgent({ name: "a", instructions: "Talk." }), {
      transport: "websocket",
      model,
      config: { audio: { input: { transcription: null } } },
    });
    let soundBytes = 0;
    session.on("audio", (({ data }: { data: ArrayBuffer }) => {
      soundBytes += data.byteLength;
    }) as never);
    const said = new Promise<string>((resolve, reject) => {
      session.on("agent_end", ((_: unknown, __: unknown, output: string) =>
        resolve(output)) as never);
      session.on("error", ((error: unknown) => reject(new Error(JSON.stringify(error)))) as never);
    });
    const url = `${gateway.origin.replace(/^http/, "ws")}/v1/realtime?model=${model}`;
    await session.connect({ apiKey: await makeSecret(), url });
    session.sendMessage("Hello");
    expect(await said).toBe("[simulated] You sent: Hello.");
    expect(soundBytes).toBeGreaterThan(0);
    session.close();
  },
);
