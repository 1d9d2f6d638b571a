import { expect, test } from "bun:test";
import { createSecretKey } from "node:crypto";
import { open, seal, sealingKeyIdOf } from "./envelope.ts";

const keyOf = (byte: number) => ({
  id: `k${byte}`,
  key: createSecretKey(new Uint8Array(32).fill(byte)),
});
const plain = new TextEncoder().encode("sk-a-key-of-somebody");
const binding = ["ws_1", "openai", "byok_1"];

test("what is sealed names its version and key, and holds nothing of the text", () => {
  const sealed = seal(keyOf(1), { plain, binding });
  expect(sealed).toMatch(/^v1\|k1\|[\w-]{16}\|[\w-]+$/);
  expect(sealingKeyIdOf(sealed)).toBe("k1");
  expect(Buffer.from(sealed.split("|")[3] ?? "", "base64url").toString("latin1")).not.toContain(
    "sk-a",
  );
  expect(open(keyOf(1), { sealed, binding }).toString()).toBe("sk-a-key-of-somebody");
});

test("the same text is never sealed twice to the same", () => {
  expect(seal(keyOf(1), { plain, binding })).not.toBe(seal(keyOf(1), { plain, binding }));
});

test.each([
  ["another workspace", ["ws_2", "openai", "byok_1"]],
  ["another provider", ["ws_1", "anthropic", "byok_1"]],
  ["another record", ["ws_1", "openai", "byok_2"]],
  // Without borders between the parts, this would be the same binding.
  ["parts that only look alike together", ["ws_1o", "penai", "byok_1"]],
])("it opens nowhere else: %s", (_, elsewhere) => {
  const sealed = seal(keyOf(1), { plain, binding });
  expect(() => open(keyOf(1), { sealed, binding: elsewhere })).toThrow();
});

test("it opens with no other key", () => {
  expect(() => open(keyOf(2), { sealed: seal(keyOf(1), { plain, binding }), binding })).toThrow();
});

test("a change of any character is noticed, and so is what is missing", () => {
  const sealed = seal(keyOf(1), { plain, binding });
  const [version, id, nonce = "", body = ""] = sealed.split("|");
  const flipped = (text: string, at: number): string =>
    text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1);
  for (let at = 0; at < body.length - 1; at += 1) {
    expect(() =>
      open(keyOf(1), { sealed: [version, id, nonce, flipped(body, at)].join("|"), binding }),
    ).toThrow();
  }
  for (let at = 0; at < nonce.length; at += 1) {
    expect(() =>
      open(keyOf(1), { sealed: [version, id, flipped(nonce, at), body].join("|"), binding }),
    ).toThrow();
  }
  for (const short of ["", "v1|k1||", `v1|k1|${nonce}|`, `v1|k1|${nonce}|${body.slice(0, 10)}`]) {
    expect(() => open(keyOf(1), { sealed: short, binding })).toThrow();
  }
  expect(sealingKeyIdOf("v2|k1|a|b")).toBeUndefined();
  expect(sealingKeyIdOf("nonsense")).toBeUndefined();
});
