import { expect, test } from "bun:test";
import { withoutSeals } from "./refused-seals.ts";

const user = { role: "user", parts: [{ text: "Hi" }] };
const call = { functionCall: { name: "look_up", args: {} } };
const results = { role: "user", parts: [{ functionResponse: { name: "look_up", response: {} } }] };
const model = (...parts: object[]) => ({ role: "model", parts });
const sealed = (part: object, thoughtSignature = "sig") => ({ ...part, thoughtSignature });
const standIn = "skip_thought_signature_validator";

const contents = [
  user,
  model(sealed({ text: "Hm.", thought: true }), sealed({ text: "Hello." })),
  model(sealed({ text: "" })),
  user,
  model(sealed(call), call),
  results,
];

const unsealed = (message: string, upstreamModel = "gemini-3-pro") =>
  withoutSeals(
    JSON.stringify({ contents }),
    { refusal: { code: "INVALID_ARGUMENT", message } },
    upstreamModel,
  );

test.each([
  ["Corrupted thought signature.", true],
  ["Invalid thought signature.", true],
  ["Unable to submit request because Thought signature is not valid..", true],
  ["Function call is missing a thought_signature in functionCall parts.", false],
])("%j is about a signature: %p", (message, isOne) => {
  expect(unsealed(message) !== undefined).toBe(isOne);
});

test.each([
  ["gemini-3-pro", sealed(call, standIn)],
  ["gemini-2.5-pro", call],
])("%s is sent no signature, and a call what stands for it", (upstreamModel, first) => {
  const found = unsealed("Corrupted thought signature.", upstreamModel);
  expect(found?.seals).toEqual(["sig", "sig", "sig", "sig"]);
  expect(JSON.parse(found?.text ?? "")).toEqual({
    contents: [user, model({ text: "Hello." }), user, model(first, call), results],
  });
});

test("signatures that were refused before go, and others stay", () => {
  const kept = [user, model(sealed(call), sealed(call, "own"))];
  const isRefused = (seal: string): boolean => seal === "sig";
  const found = withoutSeals(JSON.stringify({ contents: kept }), { isRefused }, "gemini-3-pro");
  expect(JSON.parse(found?.text ?? "")).toEqual({
    contents: [user, model(sealed(call, standIn), sealed(call, "own"))],
  });
});
