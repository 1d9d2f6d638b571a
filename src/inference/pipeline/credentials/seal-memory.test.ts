import { expect, test } from "bun:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import type { Candidate } from "../../routing/candidate.ts";
import { SealMemory } from "./seal-memory.ts";

const candidateOf = (id: string, apiKey: string, keyId?: string): Candidate =>
  ({
    route: { provider: { id, apiKey } },
    credential: keyId === undefined ? undefined : { key: { id: keyId } },
  }) as unknown as Candidate;

const text = (seal: string) => (): string =>
  JSON.stringify({ input: [{ text: `"signature":"${seal}x"` }, { encrypted_content: seal }] });

test("a seal is remembered for the account that refused it, and for an hour", () => {
  const clock = new FakeClock();
  const memory = new SealMemory(clock);
  const one = candidateOf("openai", "a");
  memory.note(one, ["seal"]);
  const refused = memory.refusedOf(one, text("seal"));
  expect([refused?.("seal"), refused?.("other")]).toEqual([true, false]);
  expect(memory.refusedOf(one, text("other"))).toBeUndefined();
  for (const other of [
    candidateOf("openai", "b"),
    candidateOf("azure", "a"),
    candidateOf("openai", "a", "key_1"),
  ])
    expect(memory.refusedOf(other, text("seal"))).toBeUndefined();
  clock.advance(3_600_001);
  expect(memory.refusedOf(one, text("seal"))).toBeUndefined();
});

test("the memory is bounded, and forgets the oldest first", () => {
  const memory = new SealMemory(new FakeClock());
  const one = candidateOf("openai", "a");
  memory.note(one, ["first"]);
  memory.note(
    one,
    Array.from({ length: 8_192 }, (_, index) => `seal ${index}`),
  );
  expect(memory.refusedOf(one, text("first"))).toBeUndefined();
  expect(memory.refusedOf(one, text("seal 0"))).toBeDefined();
});
