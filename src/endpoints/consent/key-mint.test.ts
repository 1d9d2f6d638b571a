import { expect, test } from "bun:test";
import fc from "fast-check";
import { plainLlmKey } from "../../../test/support/plain-llm-key.ts";
import type { LlmKey } from "../../identity/keys/llm-key-store.ts";
import type { NewLlmKey } from "../../identity/keys/llm-key-editor.ts";
import { EndpointPaths } from "../../http/endpoint-paths.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { childFields } from "../keys/child-keys.ts";
import { childOf, termsFor } from "./key-mint.ts";

const nowMs = Date.UTC(2026, 0, 1);
const endpointPaths = new EndpointPaths([]);
const models = ["acme/large", "acme/small", "other/model"];

const orNull = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> =>
  fc.oneof(value, fc.constant(null));
const limitNano = orNull(fc.bigInt(0n, 9_000n).map((milli) => milli * 1_000_000n));
const momentMs = orNull(
  fc.integer({ min: 1, max: 1_000 }).map((hours) => nowMs + hours * 3_600_000),
);
const someModels = orNull(fc.uniqueArray(fc.constantFrom(...models), { minLength: 1 }));
const perMinute = orNull(fc.integer({ min: 1, max: 1_000 }));
const reset = fc.constantFrom("daily", "weekly", "monthly", null);

const bounds = fc.record({
  limitNanoUsd: limitNano,
  limitReset: reset,
  expiresAtMs: momentMs,
  allowedModels: someModels,
  rateLimitPerMinute: perMinute,
  tokensPerMinute: perMinute,
  runLimitNano: limitNano,
});

const asked = fc.record(
  {
    limit: orNull(fc.integer({ min: 0, max: 9_000 }).map((milli) => milli / 1_000)),
    limit_reset: reset,
    allowed_models: someModels,
    expires_at: momentMs.map((atMs) => (atMs === null ? null : new Date(atMs).toISOString())),
    rate_limit: perMinute,
    tpm: perMinute,
    run_limit: orNull(fc.integer({ min: 0, max: 9_000 }).map((milli) => milli / 1_000)),
  },
  { requiredKeys: [] },
);

const atMost = (own: bigint | number | null | undefined, bound: bigint | number | null): boolean =>
  bound === null || (own !== null && own !== undefined && own <= bound);

const isWithin = (
  own: readonly string[] | null | undefined,
  bound: readonly string[] | null,
): boolean => bound === null || own?.every((model) => bound.includes(model)) === true;

/** Names of the bounds that a key passes over. */
const widerThan = (parent: LlmKey, key: NewLlmKey): string[] => [
  ...(atMost(key.limitNanoUsd, parent.limitNanoUsd) ? [] : ["limit"]),
  ...(atMost(key.expiresAtMs, parent.expiresAtMs) ? [] : ["expires_at"]),
  ...(atMost(key.rateLimitPerMinute, parent.rateLimitPerMinute) ? [] : ["rate_limit"]),
  ...(atMost(key.tokensPerMinute, parent.tokensPerMinute) ? [] : ["tpm"]),
  ...(atMost(key.runLimitNano, parent.runLimitNano ?? null) ? [] : ["run_limit"]),
  ...(isWithin(key.allowedModels, parent.allowedModels) ? [] : ["allowed_models"]),
  ...(JSON.stringify(key.allowedEndpoints ?? null) === JSON.stringify(parent.allowedEndpoints)
    ? []
    : ["allowed_endpoints"]),
  ...(key.parentKeyId === parent.id && key.workspaceId === parent.workspaceId ? [] : ["parent"]),
];

test("a child key never has wider limits than its parent, for any requested limits", () => {
  fc.assert(
    fc.property(bounds, asked, (own, body) => {
      const parent = plainLlmKey(own);
      try {
        expect(
          widerThan(
            parent,
            childFields(parent, { body: { name: "child", ...body }, nowMs, endpointPaths }),
          ),
        ).toEqual([]);
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== "bad_request") throw error;
      }
    }),
    { numRuns: 2_000 },
  );
});

test("a key from a code is limited by the code and by its parent at the time of the exchange", () => {
  fc.assert(
    fc.property(
      bounds,
      bounds,
      fc.option(fc.integer({ min: 0, max: 9_000 })),
      (before, after, milli) => {
        const [then, now] = [plainLlmKey(before), plainLlmKey(after)];
        const limitNanoUsd = milli === null ? then.limitNanoUsd : BigInt(milli) * 1_000_000n;
        fc.pre(atMost(limitNanoUsd, then.limitNanoUsd));
        const body = {
          name: "child",
          limit: limitNanoUsd === null ? null : usdFromNano(limitNanoUsd),
        };
        const terms = termsFor(childFields(then, { body, nowMs, endpointPaths }));
        const key = childOf(now, {
          purpose: "mint",
          clientId: null,
          clientName: "app",
          callbackUrl: "https://app.example/",
          challenge: "",
          method: "S256",
          userId: "usr_1",
          workspaceId: now.workspaceId,
          parentKeyId: now.id,
          terms,
          resource: null,
        });
        expect(widerThan(now, key)).toEqual([]);
        expect([
          atMost(key.limitNanoUsd, limitNanoUsd),
          atMost(key.expiresAtMs, then.expiresAtMs),
        ]).toEqual([true, true]);
        expect(isWithin(key.allowedModels, then.allowedModels)).toBe(true);
      },
    ),
    { numRuns: 2_000 },
  );
});
