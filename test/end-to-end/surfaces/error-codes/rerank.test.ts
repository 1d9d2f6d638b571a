import { afterAll, afterEach, beforeAll } from "bun:test";
import { expectSoundBooks } from "../../scenarios/support/expect-sound-books.ts";
import type { Scene } from "../../scenarios/support/scene.ts";
import { answer, json } from "../../../support/upstream/steps.ts";
import {
  aboveTheWindow,
  asking,
  errorTable,
  providerFailures,
  withKeyOf,
  withoutCredits,
  wrongCredentials,
} from "../support/error-table.ts";
import { startSurfaceScene } from "../support/surface-scene.ts";

const path = "/rerank";
const body = { model: "acme/rerank", query: "q", documents: ["one", "two"] };

let scene: Scene;
beforeAll(async () => void (scene = await startSurfaceScene()));
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

const { ask, whenAcme } = asking(() => scene, { path, body });
const invalid = [400, "invalid_request", "invalid_request_error"] as const;

errorTable(
  [
    "400 missing_required_fields",
    "400 invalid_request",
    "400 model_not_rerank_compatible",
    "404 model_unavailable",
    "502 upstream_error",
  ],
  [
    [
      400,
      "missing_required_fields",
      "invalid_request_error",
      "no model",
      ask({ model: undefined }),
    ],
    [
      400,
      "missing_required_fields",
      "invalid_request_error",
      "no query",
      ask({ query: undefined }),
    ],
    [
      400,
      "missing_required_fields",
      "invalid_request_error",
      "no documents",
      ask({ documents: undefined }),
    ],
    [...invalid, "no JSON", ask("{")],
    [...invalid, "a document that is a number", ask({ documents: ["one", 2] })],
    [...invalid, "a document without a text", ask({ documents: [{ title: "one" }] })],
    [...invalid, "no document in the list", ask({ documents: [] })],
    [...invalid, "1,001 documents", ask({ documents: Array.from({ length: 1_001 }, () => "d") })],
    [...invalid, "top_n of 0", ask({ top_n: 0 })],
    [...invalid, "max_tokens_per_doc of 0", ask({ max_tokens_per_doc: 0 })],
    [...invalid, "return_documents in words", ask({ return_documents: "yes" })],
    [...invalid, "a session id of 257 characters", ask({ session_id: "s".repeat(257) })],
    [
      ...invalid,
      "the provider's own 400",
      whenAcme(json({ message: "no such document" }, { status: 400 })),
    ],
    [
      400,
      "model_not_rerank_compatible",
      "invalid_request_error",
      "a chat model",
      ask({ model: "acme/large" }),
    ],
    [
      400,
      "model_not_rerank_compatible",
      "invalid_request_error",
      "an embedding model",
      ask({ model: "acme/embed" }),
    ],
    ...wrongCredentials(() => scene.gateway, { path, body }),
    [
      402,
      "insufficient_balance",
      "payment",
      "without credits",
      () => withoutCredits({ path, body }),
    ],
    [
      403,
      "forbidden",
      "permission_error",
      "with a key of another model",
      () => withKeyOf(scene.gateway, { path, body, fields: { allowed_models: ["acme/large"] } }),
    ],
    [404, "model_unavailable", "not_found_error", "an unknown model", ask({ model: "acme/none" })],
    [
      404,
      "model_unavailable",
      "not_found_error",
      "the provider's own 404",
      whenAcme(json({ message: "no such model" }, { status: 404 })),
    ],
    [
      429,
      "rate_limit_exceeded",
      "rate_limit_error",
      "above the plan's window",
      () => aboveTheWindow({ path, body }),
    ],
    [502, "upstream_error", "upstream_error", "an answer that is none", whenAcme(answer("<html>"))],
    [
      502,
      "upstream_error",
      "upstream_error",
      "an answer that lacks one",
      whenAcme(json({ results: [{ index: 0, relevance_score: 1 }] })),
    ],
    ...providerFailures(whenAcme),
  ],
);
