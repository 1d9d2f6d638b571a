import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider, testLlmKey } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { openaiChatWire } from "../../support/upstream/openai-chat-wire.ts";
import { openaiResponsesWire } from "../../support/upstream/openai-responses-wire.ts";
import { head } from "../../support/upstream/steps.ts";
import type { UpstreamWire } from "../../support/upstream/upstream-wire.ts";
import { at, numberAt, textAt } from "./at.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

const wires = [openaiChatWire, openaiResponsesWire] as const;

/** Background responses that are cancelled in the middle, of providers of either dialect. */
describe.each(engines)("a cancelled background response, on %s", (_, freshUrl) => {
  let upstream: FaultUpstream;
  let stage: TwoWorkspaces;
  beforeAll(async () => {
    upstream = await startFaultUpstream();
    stage = await startTwoWorkspaces(freshUrl, {
      providers: wires.map(({ dialect }) =>
        provider({
          id: dialect,
          base_url: upstream.baseUrl,
          dialect,
          api_key: "k",
          models: [{ id: `acme/${dialect}`, pricing: { prompt: "100", completion: "1000" } }],
        }),
      ),
    });
  }, 240_000);
  afterAll(async () => {
    await stage.stop();
    upstream.stop();
  });

  const ask = async (method: string, path: string, body?: unknown): Promise<unknown> =>
    (await stage.as(testLlmKey)(method, path, body)).json();

  /** Begins a response whose provider falls silent behind its first two pieces of content. */
  async function begin({
    dialect,
    opening,
    content,
  }: UpstreamWire): Promise<{ id: string; leave(): Promise<void> }> {
    const gate = upstream.gate();
    upstream.enqueue([head(), ...opening, ...content.slice(0, 2), gate]);
    const response = await ask("POST", "/responses", {
      model: `acme/${dialect}`,
      input: "Hello",
      background: true,
    });
    const id = textAt(response, "id");
    // Both pieces have come when a follower has read the second one.
    const followed = await stage.as(testLlmKey)("GET", `/responses/${id}?stream=true`);
    const reader = (followed.body ?? new Blob([]).stream())
      .pipeThrough(new TextDecoderStream())
      .getReader();
    for (let text = ""; (text.match(/^event: response.output_text.delta$/gm) ?? []).length < 2; ) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`the stream ended early: ${text}`);
      text += value;
    }
    return { id, leave: () => reader.cancel() };
  }

  test.each(wires.map((wire) => [wire.dialect, wire] as const))(
    "%s: keeps the output that was delivered and its charge",
    async (_name, wire) => {
      const { id, leave } = await begin(wire);
      const cancelled = await ask("POST", `/responses/${id}/cancel`);
      expect(cancelled).toMatchObject({
        id,
        status: "cancelled",
        error: null,
        output_text: "Hello ",
        output: [{ type: "message", content: [{ type: "output_text", text: "Hello " }] }],
        service_metadata: {
          requestId: id.slice("resp_".length),
          upstream: { backend: wire.dialect },
        },
      });
      expect(numberAt(cancelled, "usage.output_tokens")).toBeGreaterThan(0);
      expect(numberAt(cancelled, "usage.cost")).toBeGreaterThan(0);
      expect(await ask("GET", `/responses/${id}`)).toEqual(cancelled);
      for (const name of [id, id.slice("resp_".length)]) {
        expect(await ask("GET", `/generation/${name}`)).toMatchObject({
          data: {
            status: "cancelled",
            cancelled: true,
            total_cost: at(cancelled, "usage.cost"),
            tokens_completion: at(cancelled, "usage.output_tokens"),
          },
        });
      }
      await leave();
    },
  );

  test("a completed background response is found by its response id and its trace id", async () => {
    const response = await ask("POST", "/responses", {
      model: "acme/openai-chat",
      input: "Hello",
      background: true,
    });
    const id = textAt(response, "id");
    await (await stage.as(testLlmKey)("GET", `/responses/${id}?stream=true`)).text();
    for (const name of [id, id.slice("resp_".length)]) {
      expect(await ask("GET", `/generation/${name}`)).toMatchObject({
        data: { status: "completed", model: "acme/openai-chat" },
      });
    }
  });
});
