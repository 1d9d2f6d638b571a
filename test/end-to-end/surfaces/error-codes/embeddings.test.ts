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

const path = "/embeddings";
const body = { model: "acme/embed", input: "text" };

let scene: Scene;
beforeAll(async () => void (scene = await startSurfaceScene()));
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

const { ask, whenAcme } = asking(() => scene, { path, body });
const invalid = [400, "invalid_request_error", "invalid_request_error"] as const;

errorTable(
  [
    "400 missing_required_fields",
    "400 invalid_request_error",
    "401 invalid_api_key",
    "402 insufficient_balance",
    "404 model_unavailable",
    "429 rate_limit_exceeded",
    "502 upstream_error",
    "502 upstream_exhausted",
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
      "no input",
      ask({ input: undefined }),
    ],
    [...invalid, "no JSON", ask("{")],
    [...invalid, "an empty text", ask({ input: "" })],
    [...invalid, "a format that nobody knows", ask({ encoding_format: "int8" })],
    [...invalid, "dimensions of 0", ask({ dimensions: 0 })],
    [...invalid, "a session id of 257 characters", ask({ session_id: "s".repeat(257) })],
    [...invalid, "the same in the header", ask({}, { "x-session-id": "s".repeat(257) })],
    [...invalid, "gw-cache-ttl in words", ask({}, { "gw-cache-ttl": "soon" })],
    [...invalid, "an unknown X-Routing-Strategy", ask({}, { "x-routing-strategy": "luckiest" })],
    [
      ...invalid,
      "token ids that no provider of the model takes",
      ask({ input: [[1]] }, { "x-service-provider": "backup" }),
    ],
    [
      ...invalid,
      "the provider's own 400",
      whenAcme(json({ error: { message: "dimensions are not supported" } }, { status: 400 })),
    ],
    ...wrongCredentials(() => scene.gateway, { path, body }),
    [
      402,
      "insufficient_balance",
      "insufficient_credits",
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
    [404, "model_unavailable", "not_found_error", "a chat model", ask({ model: "acme/large" })],
    [
      404,
      "model_unavailable",
      "not_found_error",
      "the provider's own 404",
      whenAcme(json({ detail: "no such model" }, { status: 404 })),
    ],
    [
      404,
      "unknown_provider",
      "not_found_error",
      "an unknown provider",
      ask({}, { "x-service-provider": "nobody" }),
    ],
    [
      404,
      "no_upstream",
      "not_found_error",
      "conditions that no provider meets",
      ask({ provider: { only: ["nobody"] } }),
    ],
    [
      413,
      "content_too_large",
      "request_too_large",
      "the provider's own 413",
      whenAcme(json({ message: "too large" }, { status: 413 })),
    ],
    [
      422,
      "unprocessable_entity",
      "invalid_request_error",
      "the provider's own 422",
      whenAcme(json({ detail: "no" }, { status: 422 })),
    ],
    [
      429,
      "rate_limit_exceeded",
      "rate_limit_error",
      "above the plan's window",
      () => aboveTheWindow({ path, body }),
    ],
    [502, "upstream_error", "upstream_error", "an answer that is none", whenAcme(answer("<html>"))],
    ...providerFailures(whenAcme),
  ],
);
