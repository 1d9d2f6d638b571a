import { expect, test } from "bun:test";
import type { Message } from "../../canonical/message.ts";
import { CallSignatures, withSignatures } from "./call-signatures.ts";

const call = (id: string, signature?: string) =>
  ({
    type: "tool-call",
    kind: "function",
    id,
    name: "f",
    arguments: "{}",
    ...(signature !== undefined && { signature }),
  }) as const;
const turn = (...parts: Extract<Message, { role: "assistant" }>["parts"]): Message[] => [
  { role: "assistant", parts },
];

test("a tool call without its signature gets it back, only in its own workspace", () => {
  const kept = new CallSignatures();
  kept.of("ws_1").keep("c1", { signature: "s", provenance: { providerId: "google" } });
  const bare = turn(call("c1"), call("c2"));
  expect(withSignatures(bare, kept.of("ws_1"))).toEqual(
    turn({ ...call("c1", "s"), provenance: { providerId: "google" } }, call("c2")),
  );
  expect(withSignatures(bare, kept.of("ws_2"))).toBe(bare);
});

test("a signature sent by the client is kept", () => {
  const kept = new CallSignatures();
  kept.of("ws_1").keep("c1", { signature: "old" });
  const own = turn(call("c1", "own"));
  expect(withSignatures(own, kept.of("ws_1"))).toBe(own);
});

test("the oldest signatures are dropped first", () => {
  const signatures = new CallSignatures().of("ws_1");
  for (let index = 0; index <= 20_000; index += 1) signatures.keep(`c${index}`, { signature: "s" });
  expect([signatures.find("c0"), signatures.find("c1")]).toEqual([undefined, { signature: "s" }]);
});
