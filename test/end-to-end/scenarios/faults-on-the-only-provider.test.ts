import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { Fault } from "../../support/upstream/fault.ts";
import { faults, type FaultName } from "../../support/upstream/faults.ts";
import { fixtureText } from "../../support/upstream/openai-chat-fixtures.ts";
import { at } from "./support/at.ts";
import { costsIn, errorsIn, saidIn } from "./support/chat-reply.ts";
import { expectSoundBooks } from "./support/expect-sound-books.ts";
import {
  kindsOf,
  providerUnder,
  startFaultScenes,
  type FaultScenes,
} from "./support/fault-scenes.ts";
import { settledRow, settledRows } from "./support/settled-rows.ts";

let scenes: FaultScenes;
beforeAll(async () => {
  scenes = await startFaultScenes({ withBackup: false });
});
afterEach(() => expectSoundBooks(scenes.gateway));
afterAll(() => scenes.stop());

/**
 * Before any content: the HTTP status and the code that a client without another provider is told.
 */
const refused: Partial<Record<FaultName, readonly [status: number, code: string]>> = {
  "connection refused": [502, "bad_gateway"],
  "never answers": [504, "upstream_timeout"],
  "closes before answering": [502, "bad_gateway"],
  "resets before answering": [502, "bad_gateway"],
  "cut in the head": [502, "bad_gateway"],
  "no HTTP at all": [502, "bad_gateway"],
  "cut in the body": [502, "bad_gateway"],
  "stall in the body": [504, "upstream_timeout"],
  "bad JSON body": [502, "bad_gateway"],
  "400": [400, "bad_request"],
  "401": [502, "upstream_401"],
  "402": [502, "upstream_error"],
  "403": [502, "upstream_403"],
  "404": [404, "model_unavailable"],
  "408": [408, "request_timeout"],
  "429": [429, "rate_limit_exceeded"],
  "429 with retry-after": [429, "rate_limit_exceeded"],
  "500": [502, "upstream_error"],
  "503": [502, "upstream_error"],
  "502 as HTML": [502, "upstream_error"],
  "500 without a body": [502, "upstream_error"],
  "cut after the head": [502, "bad_gateway"],
  "cut before content": [502, "bad_gateway"],
  "reset before content": [502, "bad_gateway"],
  "stall after the head": [504, "upstream_timeout"],
  "stall before content": [504, "upstream_timeout"],
  "heartbeats without end": [504, "upstream_timeout"],
  "empty stream": [502, "empty_stream"],
  "200 with no body": [502, "empty_stream"],
  "terminator only": [502, "empty_stream"],
  "200, then an error first": [502, "upstream_error"],
  "200 with an error as JSON": [502, "upstream_error"],
  "bad JSON first": [502, "bad_gateway"],
};

/** A 429 always says when to come back: the provider's own time, or the contract's 60 seconds. */
const retryAfterOf = ({ status, retryAfterSeconds }: Fault): string | null =>
  status === 429 ? String(retryAfterSeconds ?? 60) : null;

const named = (effect: string): FaultName[] =>
  (Object.keys(faults) as FaultName[]).filter((name) => faults[name].effect === effect);

describe("before content, a fault is a true HTTP error and costs nothing", () => {
  for (const name of named("before-content")) {
    for (const kind of kindsOf(faults[name])) {
      test(`${kind}: ${name}`, async () => {
        const fault = faults[name];
        const before = (await settledRows(scenes.gateway)).length;
        const reply = await scenes.meet(fault, kind);
        expect([reply.status, at(reply.events[0], "error.code")]).toEqual([
          ...(refused[name] ?? []),
        ]);
        expect(at(reply.events[0], "error.metadata")).toMatchObject({
          fault: "upstream",
          upstream_backend: providerUnder(fault),
          ...(fault.status === undefined ? {} : { upstream_status: fault.status }),
        });
        expect(reply.headers.get("retry-after")).toBe(retryAfterOf(fault));
        expect((await settledRows(scenes.gateway)).length).toBe(before);
      });
    }
  }
});

describe("after content, a fault is exactly one error event, and what was delivered is charged", () => {
  for (const name of named("after-content")) {
    test(name, async () => {
      const reply = await scenes.meet(faults[name], "stream");
      const last = reply.events.at(-1);
      expect(reply.status).toBe(200);
      expect(saidIn(reply)).toStartWith("Hel");
      expect(errorsIn(reply)).toHaveLength(1);
      expect(at(last, "error.metadata")).toMatchObject({
        fault: "upstream",
        upstream_backend: providerUnder(faults[name]),
      });
      expect(Reflect.has(Object(last), "choices")).toBe(false);
      expect([reply.doneCount, costsIn(reply)]).toEqual([0, []]);
      const row = await settledRow(scenes.gateway, reply.headers.get("x-service-trace-id"));
      expect(row).toMatchObject({ status: "cut", finishReason: null });
      expect(row?.costNano).toBeGreaterThan(0n);
    });
  }
});

describe("an oddity that harms nobody", () => {
  for (const name of named("harmless")) {
    for (const kind of kindsOf(faults[name])) {
      test(`${kind}: ${name}`, async () => {
        const reply = await scenes.meet(faults[name], kind);
        expect([reply.status, saidIn(reply), errorsIn(reply)]).toEqual([200, fixtureText, []]);
        expect(reply.doneCount).toBe(kind === "stream" ? 1 : 0);
        const row = await settledRow(scenes.gateway, reply.headers.get("x-service-trace-id"));
        expect(row).toMatchObject({ status: "completed", finishReason: "stop" });
        // Where the usage is missing as well, it is estimated and says so.
        if (row?.detail.usageEstimated !== true) expect(row?.costNano).toBe(16_000n);
        expect(row?.detail.usageEstimated === true).toBe(name === "missing finish");
        expect(costsIn(reply)).toEqual([Number(row?.costNano) / 1e9]);
      });
    }
  }
});
