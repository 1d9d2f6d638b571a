import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { at } from "../scenarios/support/at.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";
import { forgetFailuresOf } from "../../support/gateway.ts";
import { settledRow, settledRows } from "../scenarios/support/settled-rows.ts";
import type { Scene } from "../scenarios/support/scene.ts";
import { answer, cut, json, stall, type Script } from "../../support/upstream/steps.ts";
import {
  answering,
  cohereVectors,
  inOrder,
  said,
  startSurfaceScene,
} from "./support/surface-scene.ts";

/** A request on each surface, what its backup answers, and what its failures are called there. */
interface SurfaceRow {
  body: Record<string, unknown>;
  backup: ReturnType<typeof answering>;
  /** Code of an answer that cannot be used. */
  unusable: string;
  /** Code of a request that the provider calls wrong. */
  wrong: string;
  /** Path to something that only a right answer has. */
  proof: string;
}

const letter = (token: string) => ({ token, logprob: -0.1, bytes: null, top_logprobs: [] });

const surfaces: Record<string, SurfaceRow> = {
  "/embeddings": {
    body: { model: "acme/embed", input: "text" },
    backup: cohereVectors,
    unusable: "upstream_error",
    wrong: "invalid_request_error",
    proof: "data.0.embedding.0",
  },
  "/rerank": {
    body: { model: "acme/rerank", query: "q", documents: ["one", "two"] },
    backup: answering(() => ({
      results: [
        { index: 1, relevance_score: 0.5 },
        { index: 0, relevance_score: 0.7 },
      ],
    })),
    unusable: "upstream_error",
    wrong: "invalid_request",
    proof: "results.0.relevance_score",
  },
  "/moderations": {
    body: { model: "acme/llama-guard-4", input: "text" },
    backup: answering(({ input }) => ({
      id: "modr-1",
      results: (input as string[]).map(() => ({ flagged: false, categories: {} })),
    })),
    unusable: "upstream_invalid_response",
    wrong: "invalid_request",
    proof: "results.0.category_scores",
  },
  "/decisions": {
    body: {
      model: "acme/decide",
      state: "s",
      questions: { q: { type: "noul", instructions: "?" } },
    },
    backup: answering(() => said("Yes", { logprobs: { content: [letter("Yes")], refusal: null } })),
    unusable: "upstream_error",
    wrong: "bad_request",
    proof: "answers.q.noul",
  },
};

/** What goes wrong at acme: nothing of it may reach the caller where there is a backup. */
const faults: Record<
  string,
  { script: Script; code: (row: SurfaceRow) => string; status: number; final?: true }
> = {
  "429": {
    script: json({ error: { message: "slow down" } }, { status: 429 }),
    code: () => "rate_limit_exceeded",
    status: 429,
  },
  "500": {
    script: json({ error: { message: "broken" } }, { status: 500 }),
    code: () => "upstream_error",
    status: 502,
  },
  "502 as HTML": {
    script: answer("<html>", { status: 502 }),
    code: () => "upstream_error",
    status: 502,
  },
  "401": {
    script: json({ message: "invalid api token" }, { status: 401 }),
    code: () => "upstream_401",
    status: 502,
  },
  "404": {
    script: json({ detail: "no such model" }, { status: 404 }),
    code: () => "model_unavailable",
    status: 404,
  },
  "400": {
    script: json({ error: { message: "bad input" } }, { status: 400 }),
    code: ({ wrong }) => wrong,
    status: 400,
    final: true,
  },
  "an empty body": { script: answer(""), code: ({ unusable }) => unusable, status: 502 },
  "an empty object": { script: json({}), code: ({ unusable }) => unusable, status: 502 },
  "an answer of nothing": {
    script: json({ data: [], results: [], answers: {}, choices: [] }),
    code: ({ unusable }) => unusable,
    status: 502,
  },
  "bad JSON": { script: answer('{"data": ['), code: ({ unusable }) => unusable, status: 502 },
  "an error inside a 200": {
    script: json({ error: { message: "overloaded", code: 503 } }),
    code: () => "upstream_error",
    status: 502,
  },
  "a cut connection": { script: [cut()], code: () => "upstream_error", status: 502 },
  silence: { script: [stall()], code: () => "upstream_timeout", status: 504 },
};

let scene: Scene;
beforeAll(async () => void (scene = await startSurfaceScene()));
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

async function ask(path: string, headers: Record<string, string>) {
  const response = await scene.gateway.post(path, surfaces[path]?.body, {
    headers: { ...headers, "gw-skip-cache": "true" },
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as unknown,
  };
}

for (const [path, row] of Object.entries(surfaces)) {
  describe(path, () => {
    for (const [name, { script, final }] of Object.entries(faults)) {
      if (final) continue;
      test(`${name}: the next provider answers, in another dialect`, async () => {
        scene.acme.script(script);
        scene.backup.script(row.backup);
        const reply = await ask(path, inOrder.headers);
        expect([reply.status, reply.headers.get("x-service-provider-chain")]).toEqual([
          200,
          "acme->backup",
        ]);
        expect(at(reply.body, row.proof)).toBeDefined();
        const settled = await settledRow(scene.gateway, reply.headers.get("x-service-trace-id"));
        expect(settled).toMatchObject({
          provider: "backup",
          status: "completed",
          detail: { attempts: [{ outcome: "failed" }, { outcome: "served" }] },
        });
      });
    }

    test.each(Object.entries(faults))(
      "%s at the only provider: the error reports it, and nothing is charged",
      async (_, { script, code, status, final }) => {
        scene.acme.script(script);
        const before = (await settledRows(scene.gateway)).length;
        const reply = await ask(path, { "x-service-provider": "acme" });
        expect([reply.status, at(reply.body, "error.code")]).toEqual([status, code(row)]);
        expect([
          at(reply.body, "error.metadata.fault"),
          at(reply.body, "error.metadata.upstream_backend"),
        ]).toEqual(["upstream", "acme"]);
        const attempts = at(reply.body, "error.metadata.upstream_attempts");
        if (final === true) expect(attempts).toBeUndefined();
        else expect(attempts).toMatchObject([{ backend: "acme" }]);
        expect((await settledRows(scene.gateway)).length).toBe(before);
      },
    );

    test("when both providers fail, the error lists every attempt", async () => {
      for (const id of ["acme", "backup"]) forgetFailuresOf(scene.gateway, id);
      scene.acme.script(json({}, { status: 500 }));
      scene.backup.script(json({}, { status: 503 }));
      const reply = await ask(path, inOrder.headers);
      expect([reply.status, at(reply.body, "error.code")]).toEqual([502, "upstream_exhausted"]);
      expect(at(reply.body, "error.metadata.upstream_attempts")).toMatchObject([
        { backend: "acme" },
        { backend: "backup" },
      ]);
    });
  });
}
