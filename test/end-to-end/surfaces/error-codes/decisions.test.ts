import { afterAll, afterEach, beforeAll } from "bun:test";
import { createKey } from "../../scenarios/support/create-key.ts";
import { expectSoundBooks } from "../../scenarios/support/expect-sound-books.ts";
import type { Scene } from "../../scenarios/support/scene.ts";
import { answer, json } from "../../../support/upstream/steps.ts";
import {
  asking,
  errorTable,
  providerFailures,
  withKeyOf,
  wrongCredentials,
} from "../support/error-table.ts";
import { said, startSurfaceScene } from "../support/surface-scene.ts";

const path = "/decisions";
const yesOrNo = { type: "noul", instructions: "?" };
const choice = { type: "choice", instructions: "?" };
const score = { type: "score", instructions: "?" };
const body = { model: "acme/decide", state: "s", questions: { q: yesOrNo } };

let scene: Scene;
beforeAll(async () => void (scene = await startSurfaceScene()));
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

const { ask, whenAcme } = asking(() => scene, { path, body });
const invalid = [400, "bad_request", "invalid_request_error"] as const;
const asked = (question: unknown) => ask({ questions: { q: question } });

/** One more than the 60 requests of a minute, which both paths share. */
async function sixtyFirst(): Promise<Response> {
  const headers = { authorization: `Bearer ${await createKey(scene.gateway, {})}` };
  const decide = (at: string) =>
    scene.gateway.post(at, { ...body, model: "acme/none" }, { headers });
  await Promise.all(
    Array.from({ length: 60 }, (_, index) => decide(index % 2 === 0 ? path : "/systemone")),
  );
  return decide(path);
}

/** A decision model where the request is for chat. */
const atChat = (): Promise<Response> =>
  scene.gateway.post("/chat/completions", {
    model: "acme/decide",
    messages: [{ role: "user", content: "x" }],
  });

// The contract names what is refused here, and leaves the codes to its canonical list.
errorTable(
  [
    "400 bad_request",
    "401 invalid_api_key",
    "404 model_unavailable",
    "429 rate_limit_exceeded",
    "502 upstream_error",
  ],
  [
    [...invalid, "no JSON", ask("{")],
    [...invalid, "no model", ask({ model: undefined })],
    [...invalid, "no state", ask({ state: undefined })],
    [...invalid, "a state that is a number", ask({ state: 5 })],
    [...invalid, "no questions", ask({ questions: undefined })],
    [...invalid, "an empty map of questions", ask({ questions: {} })],
    [...invalid, "questions as an array", ask({ questions: [yesOrNo] })],
    [...invalid, "a question that is no object", asked("late?")],
    [...invalid, "a question of an unknown type", asked({ type: "guess", instructions: "?" })],
    [...invalid, "a question without instructions", asked({ type: "noul" })],
    [
      ...invalid,
      "a noul with a third answer",
      asked({ ...yesOrNo, criteria: { maybe: "perhaps" } }),
    ],
    [...invalid, "a choice without criteria", asked(choice)],
    [...invalid, "a choice without options", asked({ ...choice, criteria: {} })],
    [...invalid, "a choice with options in an array", asked({ ...choice, criteria: ["cat"] })],
    [...invalid, "a score of 1 level", asked({ ...score, criteria: ["one"] })],
    [
      ...invalid,
      "a score of 11 levels",
      asked({ ...score, criteria: Array.from({ length: 11 }, () => "level") }),
    ],
    [
      ...invalid,
      "a score with levels in an object",
      asked({ ...score, criteria: { a: "one", b: "two" } }),
    ],
    [...invalid, "a session id of 257 characters", ask({ session_id: "s".repeat(257) })],
    [
      ...invalid,
      "the provider's own 400",
      whenAcme(json({ error: { message: "state is too odd" } }, { status: 400 })),
    ],
    ...wrongCredentials(() => scene.gateway, { path, body }),
    [
      403,
      "forbidden",
      "permission_error",
      "with a key of another model",
      () => withKeyOf(scene.gateway, { path, body, fields: { allowed_models: ["acme/large"] } }),
    ],
    [404, "model_unavailable", "not_found_error", "an unknown model", ask({ model: "acme/none" })],
    [404, "model_unavailable", "not_found_error", "a chat model", ask({ model: "acme/large" })],
    [404, "model_unavailable", "not_found_error", "a decision model in chat", atChat],
    [429, "rate_limit_exceeded", "rate_limit_error", "the 61st request of a minute", sixtyFirst],
    [502, "upstream_error", "upstream_error", "an answer that is none", whenAcme(answer("<html>"))],
    [
      502,
      "upstream_error",
      "upstream_error",
      "an answer that leaves a question out",
      whenAcme(json({ answers: {} })),
    ],
    [
      502,
      "upstream_error",
      "upstream_error",
      "a chat model that gives no log probabilities",
      () => {
        scene.backup.script(json(said("Yes")));
        return ask({}, { "x-service-provider": "backup" })();
      },
    ],
    ...providerFailures(whenAcme),
  ],
);
