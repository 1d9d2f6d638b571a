import { expect, test } from "bun:test";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { PasswordHasher } from "./password-hasher.ts";

test("a hash is argon2id with its own salt, and verifies only its password", async () => {
  const hasher = new PasswordHasher();
  const [first, second] = await Promise.all([
    hasher.hash("correct horse"),
    hasher.hash("correct horse"),
  ]);
  expect(first).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
  expect(first).not.toBe(second);
  expect(await hasher.verify({ password: "correct horse", hash: first })).toBe(true);
  expect(await hasher.verify({ password: "correct horsf", hash: first })).toBe(false);
});

test("hashing is limited in concurrency, and refuses new work while too much is queued", async () => {
  const hasher = new PasswordHasher();
  const running = Array.from({ length: 66 }, () =>
    hasher.verify({ password: "a", hash: "no hash" }).catch(() => "done"),
  );
  expect(() => hasher.assertRoom()).toThrow(GatewayError);
  expect(new Set(await Promise.all(running))).toEqual(new Set(["done"]));
  expect(() => hasher.assertRoom()).not.toThrow();
});
