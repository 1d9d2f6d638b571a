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
import { said, startSurfaceScene } from "../support/surface-scene.ts";

const path = "/moderations";
const body = { model: "acme/llama-guard-4", input: "text" };

let scene: Scene;
beforeAll(async () => void (scene = await startSurfaceScene()));
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

const { ask, whenAcme } = asking(() => scene, { path, body });
const invalid = [400, "invalid_request", "invalid_request_error"] as const;
const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };

errorTable(
  [
    "400 invalid_request",
    "400 model_not_moderation_compatible",
    "502 upstream_invalid_response",
    "502 upstream_error",
  ],
  [
    [...invalid, "no JSON", ask("{")],
    [...invalid, "no input", ask({ input: undefined })],
    [...invalid, "no text in the list", ask({ input: [] })],
    [...invalid, "33 texts", ask({ input: Array.from({ length: 33 }, () => "t") })],
    [...invalid, "a text of 32,001 characters", ask({ input: "x".repeat(32_001) })],
    [...invalid, "a picture", ask({ input: [picture] })],
    [...invalid, "a part without a text", ask({ input: [{ type: "text" }] })],
    [...invalid, "a model that is no text", ask({ model: 5 })],
    [...invalid, "a session id of 257 characters", ask({ session_id: "s".repeat(257) })],
    [
      ...invalid,
      "the provider's own 400",
      whenAcme(json({ error: { message: "no template" } }, { status: 400 })),
    ],
    [
      400,
      "model_not_moderation_compatible",
      "invalid_request_error",
      "a chat model that is no guard",
      ask({ model: "acme/large" }),
    ],
    [
      400,
      "model_not_moderation_compatible",
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
      429,
      "rate_limit_exceeded",
      "rate_limit_error",
      "above the plan's window",
      () => aboveTheWindow({ path, body }),
    ],
    [
      502,
      "upstream_invalid_response",
      "upstream_error",
      "a guard that says something else",
      whenAcme(json(said("I am sorry"))),
    ],
    [
      502,
      "upstream_invalid_response",
      "upstream_error",
      "an answer that is none",
      whenAcme(answer("<html>")),
    ],
    ...providerFailures(whenAcme),
  ],
);
