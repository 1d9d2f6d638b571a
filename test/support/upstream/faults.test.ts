import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createParser } from "eventsource-parser";
import { anthropicMessagesWire } from "./anthropic-messages-wire.ts";
import type { Fault } from "./fault.ts";
import { baseUrlUnder, type FaultName, faults, faultsOf } from "./faults.ts";
import { type FaultUpstream, startFaultUpstream } from "./fault-upstream.ts";
import { googleGenerateWire } from "./google-generate-wire.ts";
import { fixtureText } from "./openai-chat-fixtures.ts";
import { openaiChatWire } from "./openai-chat-wire.ts";
import { openaiResponsesWire } from "./openai-responses-wire.ts";
import { type RawAnswer, readRawAnswer } from "./raw-answer.ts";
import { RawClient } from "./raw-client.ts";
import { cut } from "./steps.ts";
import type { UpstreamWire } from "./upstream-wire.ts";

let upstream: FaultUpstream;
beforeAll(async () => {
  upstream = await startFaultUpstream();
});
afterAll(() => upstream.stop());

/**
 * What a client sees that reads as far as it can. Where a fault waits for the client's timeout, the
 * client leaves once everything was said.
 */
async function observe(fault: Fault): Promise<RawAnswer> {
  const gate = upstream.gate();
  const said = fault.script.filter((step) => step.kind !== "stall");
  upstream.script([...said, ...(fault.waits ? [gate] : [cut()])]);
  const client = await RawClient.connect(upstream.port);
  client.post("/v1/chat/completions");
  if (fault.waits) {
    await gate.reached;
    client.vanish();
    await upstream.requests.at(-1)?.aborted;
  } else {
    await client.ended;
  }
  return readRawAnswer(Buffer.concat(client.segments));
}

const textPaths = [
  "choices.0.delta.content",
  "choices.0.message.content",
  "delta.text",
  "content.0.text",
  "candidates.0.content.parts.0.text",
  "output.0.content.0.text",
];
const finishPaths = [
  "choices.0.finish_reason",
  "delta.stop_reason",
  "stop_reason",
  "candidates.0.finishReason",
  "response.completed_at",
];

const at = (value: unknown, path: string): unknown =>
  path.split(".").reduce<unknown>((inner, key) => Reflect.get(Object(inner), key), value);

const textOf = (data: unknown): string => {
  if (at(data, "type") === "response.output_text.delta") return String(at(data, "delta"));
  const text = textPaths.map((path) => at(data, path)).find((found) => typeof found === "string");
  return typeof text === "string" ? text : "";
};

/** What a careful reader makes of a body: the text up to the first sign of trouble. */
function read(body: string): { text: string; failed: boolean; finished: boolean } {
  const result = { text: "", failed: false, finished: false };
  const take = (json: string): void => {
    if (result.failed || !json.startsWith("{")) return;
    const data = parsed(json);
    result.failed =
      data === undefined || at(data, "error.message") !== undefined || at(data, "type") === "error";
    if (result.failed) return;
    result.text += textOf(data);
    const ended = at(data, "type") === "response.completed" || at(data, "status") === "completed";
    if (ended || finishPaths.some((path) => typeof at(data, path) === "string"))
      result.finished = true;
  };
  if (body.startsWith("{")) take(body);
  else createParser({ onEvent: (event) => take(event.data) }).feed(body.replace(/^\uFEFF/, ""));
  return result;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

const expectations: Record<Fault["effect"], (seen: RawAnswer) => void> = {
  harmless(seen) {
    expect(seen.status).toBe(200);
    expect(read(seen.body).text).toBe(fixtureText);
    expect(read(seen.body).failed).toBe(false);
  },
  "before-content"(seen) {
    const { text, failed, finished } = read(seen.body);
    const isWholeAnswer = seen.body.startsWith("{");
    expect(isWholeAnswer && seen.complete && finished && !failed).toBe(false);
    expect(isWholeAnswer ? "" : text).toBe("");
  },
  "after-content"(seen) {
    const { text, failed, finished } = read(seen.body);
    expect(text).not.toBe("");
    expect(fixtureText).toStartWith(text);
    expect(failed || !finished).toBe(true);
  },
};

/** These are no bytes on a connection: they have tests of their own. */
const withoutConnection: readonly string[] = ["connection refused"] satisfies FaultName[];

for (const wire of [
  openaiChatWire,
  anthropicMessagesWire,
  openaiResponsesWire,
  googleGenerateWire,
]) {
  describe(wire.dialect, () => {
    for (const [name, fault] of Object.entries<Fault>(faultsOf(wire))) {
      if (withoutConnection.includes(name)) continue;
      test(`${name}: ${fault.effect}`, async () => {
        const seen = await observe(fault);
        expectations[fault.effect](seen);
        if (fault.status !== undefined) expect(seen.status).toBe(fault.status);
      });
    }

    test("the parts of the healthy answer contain the fixture's text", () => {
      const decode = (part: UpstreamWire["content"]): string =>
        part.map((event) => Buffer.from(event.bytes).toString("utf8")).join("");
      expect(read(decode(wire.content)).text).toBe(fixtureText);
      expect(read(decode(wire.opening)).text).toBe("");
      expect(read(decode(wire.finish)).finished).toBe(true);
      expect(read(JSON.stringify(wire.whole))).toEqual({
        text: fixtureText,
        failed: false,
        finished: true,
      });
    });
  });
}

test("the 429 fault has its retry-after header", async () => {
  const name: FaultName = "429 with retry-after";
  const response = await fetch(baseUrlUnder(faults[name], upstream), {
    method: "POST",
    body: "{}",
  });
  expect(response.headers.get("retry-after")).toBe(String(faults[name].retryAfterSeconds));
});

test("the connection refused fault has no listener", async () => {
  await expect(fetch(baseUrlUnder(faults["connection refused"], upstream))).rejects.toThrow(
    /refused/i,
  );
});
