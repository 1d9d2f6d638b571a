import { expect, test } from "bun:test";
import { LazyIdentity, type Identity } from "./lazy-identity.ts";

const answering = (text: string, providerIds: readonly string[]): Identity => ({
  handle: () => Promise.resolve(new Response(text)),
  providerIds,
});

/** An identity that is loaded as a list says, one after the other; an error is thrown. */
function lazy(loads: (Identity | Error)[], providerCount: number) {
  const state = { nowMs: 0, loaded: 0 };
  const identity = new LazyIdentity({
    providerCount,
    nowMs: () => state.nowMs,
    load: async () => {
      const next = loads[state.loaded++];
      if (next === undefined || next instanceof Error) throw next ?? new Error("loaded too often");
      return next;
    },
  });
  const ask = async (): Promise<string> =>
    (await identity.handle(new Request("http://127.0.0.1/"))).text();
  return { state, ask };
}

test("the library is loaded once, by its first use", async () => {
  const { state, ask } = lazy([answering("first", [])], 0);
  expect(state.loaded).toBe(0);
  expect(await Promise.all([ask(), ask(), ask()])).toEqual(["first", "first", "first"]);
  expect(state.loaded).toBe(1);
});

test("a failed load is retried with the next use", async () => {
  const { ask } = lazy([new Error("no"), answering("second", [])], 0);
  expect(await ask().catch(String)).toBe("Error: no");
  expect(await ask()).toBe("second");
});

test("an unavailable provider is retried after 30 seconds, not with every use", async () => {
  const { state, ask } = lazy([answering("without", []), answering("with", ["acme"])], 1);
  expect(await ask()).toBe("without");
  state.nowMs = 29_999;
  expect(await ask()).toBe("without");
  state.nowMs = 30_000;
  expect(await ask()).toBe("with");
  state.nowMs = 1_000_000;
  expect(await ask()).toBe("with");
  expect(state.loaded).toBe(2);
});
