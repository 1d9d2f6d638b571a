import { expect, test } from "bun:test";
import { responseText } from "./passthrough-answer.ts";

test("a client gets the ids of its users back, and not those that the provider was sent", () => {
  const text = '{"id":"r","model":"m","user":"hash-1","prompt_cache_key":"hash-2"}';
  const edits = { id: "resp_1", model: "acme/large", providerId: "acme" };
  const requestBody = { user: "alice", prompt_cache_key: "chat-7" };
  expect(JSON.parse(responseText(text, { ...edits, requestBody }))).toMatchObject({
    user: "alice",
    prompt_cache_key: "chat-7",
  });
});
