import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testLlmKey } from "../../support/gateway.ts";
import { endProcesses, startProcess, type GatewayProcess } from "../../support/process.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import type { Gate } from "../../support/upstream/gate.ts";
import { chatChunks } from "../../support/upstream/openai-chat-fixtures.ts";
import { end, head, sse } from "../../support/upstream/steps.ts";
import { at, textAt } from "../api/at.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { getJson } from "./support/ask.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { stores, type OpenedStore } from "./support/stores.ts";

afterAll(endProcesses);

const draining = "no new connections are accepted";
const headers = { authorization: `Bearer ${testLlmKey}`, "content-type": "application/json" };

describe.each([...stores])("background responses on $name", ({ open }) => {
  let upstream: FaultUpstream;
  let store: OpenedStore;
  let gateway: GatewayProcess;

  /** Starts the gateway that goes on with what the one before it left. */
  const start = async (): Promise<void> => {
    gateway = await startProcess({
      ...store.options,
      environment: { ...bootstrapVariables, ...store.options.environment },
      yaml: acmeYaml(upstream.baseUrl),
    });
  };

  beforeAll(async () => {
    upstream = await startFaultUpstream();
    store = await open();
    await start();
  }, 240_000);
  afterAll(async () => {
    await gateway.kill9();
    upstream.stop();
  });

  /** The upstream's next answer, which waits behind its first content. */
  function enqueueGated(): Gate {
    const gate = upstream.gate();
    const [role, content, ...rest] = chatChunks({ usageOn: "after" }).map((chunk) => sse(chunk));
    if (role === undefined || content === undefined)
      throw new Error("the fixture has too few chunks");
    upstream.enqueue([head(), role, content, gate, ...rest, sse("[DONE]"), end()]);
    return gate;
  }

  async function createBackground(): Promise<string> {
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: "POST",
      headers,
      body: JSON.stringify({ model: "acme/large", input: "Hello", background: true }),
    });
    const record: unknown = await response.json();
    expect(at(record, "status")).toBe("queued");
    return textAt(record, "id");
  }

  /** The names of all events of a response, read until its stream ends. */
  async function eventNames({ url }: GatewayProcess, id: string): Promise<string[]> {
    const response = await fetch(`${url}/v1/responses/${id}?stream=true`, { headers });
    return [...(await response.text()).matchAll(/^event: (.*)$/gm)].map(([, name = ""]) => name);
  }

  test("one that was running when the process was killed is answered from the start by the next process", async () => {
    const asked = upstream.requests.length;
    const gate = enqueueGated();
    const id = await createBackground();
    await gate.reached;
    expect(await getJson(gateway, `/responses/${id}`)).toMatchObject({ status: "in_progress" });
    await gateway.kill9();
    enqueueGated().open();
    await start();
    const names = await eventNames(gateway, id);
    expect(names.filter((name) => name === "response.created")).toHaveLength(1);
    expect(names).toContain("response.completed");
    expect(await getJson(gateway, `/responses/${id}`)).toMatchObject({
      id,
      status: "completed",
      background: true,
      usage: { cost: expect.any(Number) },
    });
    expect(upstream.requests.length - asked).toBe(2);
  }, 240_000);

  test("one that is running at SIGTERM is finished before the process ends", async () => {
    const asked = upstream.requests.length;
    const gate = enqueueGated();
    const id = await createBackground();
    await gate.reached;
    const exited = gateway.terminate();
    await gateway.stderrHas(draining);
    expect(gateway.child.exitCode).toBeNull();
    gate.open();
    expect(await exited).toBe(0);
    await start();
    expect(await getJson(gateway, `/responses/${id}`)).toMatchObject({
      id,
      status: "completed",
    });
    expect(upstream.requests.length - asked).toBe(1);
  }, 240_000);

  test("one that is running at a second SIGTERM returns to the queue for the next process", async () => {
    const gate = enqueueGated();
    const id = await createBackground();
    await gate.reached;
    const exited = gateway.terminate();
    await gateway.stderrHas(draining);
    await gateway.terminate();
    expect(await exited).toBe(0);
    enqueueGated().open();
    await start();
    expect(await eventNames(gateway, id)).toContain("response.completed");
    expect(await getJson(gateway, `/responses/${id}`)).toMatchObject({ id, status: "completed" });
  }, 240_000);
});
