import { expect, test } from "bun:test";
import { type ClientSecret, ClientSecrets } from "./client-secrets.ts";

const key = new Uint8Array(32).fill(1);
const secret: ClientSecret = {
  keyId: "key_1",
  model: "acme/voice",
  transcription: "acme/whisper",
  expiresAtMs: 1_000,
  session: { instructions: "Whisper." },
};

test("a secret is opened by every gateway with the same key, and by no other", () => {
  const text = new ClientSecrets(key).issue(secret);
  expect(text).toStartWith("ek_");
  expect(new ClientSecrets(key).open(text)).toEqual(secret);
  expect(new ClientSecrets(new Uint8Array(32).fill(2)).open(text)).toBeUndefined();
});

test.each([
  [
    "changed in one character",
    (text: string) => text.slice(0, -2) + (text.endsWith("A") ? "BB" : "AA"),
  ],
  ["cut short", (text: string) => text.slice(0, 20)],
  ["with another prefix", (text: string) => text.replace("ek_", "sk_")],
  ["far too long", (text: string) => text + "A".repeat(64 * 1024)],
  ["empty", () => "ek_"],
])("a secret %s is none", (_, change) => {
  const secrets = new ClientSecrets(key);
  expect(secrets.open(change(secrets.issue(secret)))).toBeUndefined();
});
