import { describe, expect, test } from "bun:test";
import { withoutSeals } from "./refused-seals.ts";

const user = { role: "user", content: "Hi" };
const sealed = (id: string) => ({
  type: "reasoning",
  id,
  summary: [],
  encrypted_content: `gAAAAAB${id}==`,
});
const said = { type: "message", role: "assistant", content: "Hello.", id: "msg_1" };

const inputOf = (input: unknown, message: string, code: string | null = null): unknown => {
  const unsealed = withoutSeals(JSON.stringify({ input }), { refusal: { code, message } });
  return unsealed && (JSON.parse(unsealed.text) as { input: unknown }).input;
};

test.each([
  ["The encrypted content gAAA...Rg== could not be verified.", null, true],
  ["The encrypted content for item rs_1 could not be verified.", null, true],
  ["Encrypted content could not be decrypted or parsed.", null, true],
  ["Refused.", "invalid_encrypted_content", true],
  ["Encrypted content is not supported with this model.", null, false],
  ["Refused.", "invalid_value", false],
])("%j with the code %p is about a seal: %p", (message, code, isOne) => {
  const input = [user, sealed("rs_1"), said, user];
  expect(inputOf(input, message, code) !== undefined).toBe(isOne);
});

test("a refusal that names the turn under way by its id takes all thoughts out", () => {
  const input = [user, sealed("rs_1"), said, user, sealed("rs_2"), said];
  const { id: _, ...idless } = said;
  const earlier = "The encrypted content for item rs_1 could not be verified.";
  expect(inputOf(input, earlier)).toEqual([user, idless, user, sealed("rs_2"), said]);
  expect(inputOf(input, earlier.replace("rs_1", "rs_2"))).toEqual([user, idless, user, idless]);
});

test.each([["Hi"], [[user]], [[user, { type: "reasoning", summary: [] }, said]]])(
  "an input without seals is not sent again: %j",
  (input) => {
    expect(inputOf(input, "", "invalid_encrypted_content")).toBeUndefined();
  },
);

describe("a summary of earlier turns", () => {
  const summary = { type: "compaction", id: "cmp_1", encrypted_content: "gAAAAABsum==" };
  const { id: _, ...idless } = said;
  const input = [summary, user, sealed("rs_1"), said, user];
  const missing = { type: "message", role: "developer", content: expect.any(String) };

  test("goes with the rest where the refusal names it or nothing, and the model is told", () => {
    for (const name of ["for item cmp_1", ""])
      expect(inputOf(input, `The encrypted content ${name} could not be verified.`)).toEqual([
        missing,
        user,
        idless,
        user,
      ]);
    const alone = [summary, user];
    expect(inputOf(alone, "", "invalid_encrypted_content")).toEqual([missing, user]);
  });

  test("stays where the refusal names another seal", () => {
    const message = "The encrypted content for item rs_1 could not be verified.";
    expect(inputOf(input, message)).toEqual([summary, user, idless, user]);
  });
});

test("seals that were refused before go wherever they are", () => {
  const input = [user, sealed("rs_1"), said, user, sealed("rs_2"), said];
  const { id: _, ...idless } = said;
  const isRefused = (seal: string): boolean => seal.includes("rs_1");
  const unsealed = withoutSeals(JSON.stringify({ input }), { isRefused });
  expect(unsealed).toMatchObject({ seals: ["gAAAAABrs_1=="], lacksHistory: false });
  expect(JSON.parse(unsealed?.text ?? "")).toEqual({
    input: [user, idless, user, sealed("rs_2"), said],
  });
});
