import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Fault } from "../../support/upstream/fault.ts";
import type { FaultName } from "../../support/upstream/faults.ts";
import { fixtureText } from "../../support/upstream/openai-chat-fixtures.ts";
import { providerUnder, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { encountersWith, meetFaults, titleOf, type Outcome } from "./support/meet-faults.ts";
import { allPairs, nameOf } from "./support/pairs.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

/**
 * Before any content: the HTTP status and the code that a client without another provider gets.
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

/** How a whole answer may have ended, in the words of its upstream. */
const finishWords = ["stop", "end_turn", "STOP"];

/** A 429 always says when to come back: the provider's own time, or the contract's 60 seconds. */
const retryAfterOf = ({ status, retryAfterSeconds }: Fault): string | null =>
  status === 429 ? String(retryAfterSeconds ?? 60) : null;

describe.each(allPairs.map((pair) => [nameOf(pair), pair] as const))("%s", (_, pair) => {
  let outcomes: Map<string, Outcome>;
  beforeAll(async () => {
    outcomes = await meetFaults(scene, pair);
  });
  const outcomeOf = (title: string): Outcome => {
    const outcome = outcomes.get(title);
    if (outcome === undefined) throw new Error(`nobody met ${title}`);
    return outcome;
  };
  const encounters = encountersWith(pair.upstream);

  describe("before content, a fault returns its HTTP status and costs nothing", () => {
    for (const { name, fault, ...rest } of encounters.filter(
      ({ fault: { effect } }) => effect === "before-content",
    )) {
      const title = titleOf({ name, ...rest });
      test(title, () => {
        const {
          reply: { status, streamed, errors, breaches, headers },
          row,
        } = outcomeOf(title);
        expect([status, errors[0]?.code]).toEqual([...(refused[name] ?? [])]);
        expect([streamed, breaches, row]).toEqual([false, [], undefined]);
        expect(errors[0]?.metadata).toMatchObject({
          fault: "upstream",
          upstream_backend: providerUnder(pair.upstream, fault),
          ...(fault.status !== undefined && { upstream_status: fault.status }),
        });
        expect(headers.get("retry-after")).toBe(retryAfterOf(fault));
      });
    }
  });

  describe("after content, a fault sends exactly one error, and what was delivered is charged", () => {
    for (const { name, fault, ...rest } of encounters.filter(
      ({ fault: { effect } }) => effect === "after-content",
    )) {
      const title = titleOf({ name, ...rest });
      test(title, () => {
        const { reply, row } = outcomeOf(title);
        expect([reply.status, reply.streamed, reply.endings, reply.breaches]).toEqual([
          200,
          true,
          0,
          [],
        ]);
        expect([reply.said.startsWith("Hel"), reply.finish, reply.costUsd]).toEqual([
          true,
          undefined,
          undefined,
        ]);
        expect(reply.errors).toHaveLength(1);
        expect(reply.errors[0]?.metadata).toMatchObject({
          fault: "upstream",
          upstream_backend: providerUnder(pair.upstream, fault),
        });
        expect(row).toMatchObject({ status: "cut", finishReason: null });
        expect(row?.costNano).toBeGreaterThan(0n);
      });
    }
  });

  describe("a harmless deviation is accepted", () => {
    for (const {
      name,
      fault: { effect },
      ...rest
    } of encounters) {
      if (effect !== "harmless") continue;
      const title = titleOf({ name, ...rest });
      test(title, () => {
        const { reply, row } = outcomeOf(title);
        expect([reply.status, reply.said, reply.finish, reply.errors]).toEqual([
          200,
          fixtureText,
          "stop",
          [],
        ]);
        // Where the bytes are kept, a block that the upstream left open stays open.
        const kept = pair.client.name === pair.upstream && name === "missing finish";
        expect([reply.streamed, reply.endings, kept ? [] : reply.breaches]).toEqual([
          rest.kind === "stream",
          1,
          [],
        ]);
        // Native Messages and Gemini keep their own word for the end.
        expect([row?.status, finishWords.includes(row?.finishReason ?? "")]).toEqual([
          "completed",
          true,
        ]);
        // Where the usage is missing as well, it is estimated and says so.
        if (row?.detail.usageEstimated !== true) expect(row?.costNano).toBe(16_000n);
        expect(row?.detail.usageEstimated === true).toBe(name === "missing finish");
        expect(reply.costUsd).toBe(Number(row?.costNano) / 1e9);
      });
    }
  });
});
