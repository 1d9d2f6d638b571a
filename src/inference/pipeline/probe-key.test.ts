import { afterAll, beforeAll, expect, test } from "bun:test";
import { provider } from "../../../test/support/gateway.ts";
import {
  refusingBaseUrl,
  startFaultUpstream,
  type FaultUpstream,
} from "../../../test/support/upstream/fault-upstream.ts";
import { chatError } from "../../../test/support/upstream/openai-chat-fixtures.ts";
import { json } from "../../../test/support/upstream/steps.ts";
import { systemClock } from "../../platform/kernel/clock.ts";
import { buildCatalog } from "../catalog/build-catalog.ts";
import { probeKeyThrough } from "./unbilled-requests.ts";
import { UpstreamClient } from "../upstream/upstream-client.ts";
import { noFacts } from "../../../test/support/no-facts.ts";

const client = new UpstreamClient({ clock: systemClock });
let upstream: FaultUpstream;
beforeAll(async () => {
  upstream = await startFaultUpstream();
});
afterAll(() => {
  client.close();
  upstream.stop();
});

const probe = (providerId: string) => {
  const configuredProviders = [
    provider({ id: "acme", base_url: upstream.baseUrl }),
    provider({ id: "claude", base_url: upstream.baseUrl, dialect: "anthropic-messages" }),
    provider({ id: "gone", base_url: refusingBaseUrl() }),
  ];
  const catalog = buildCatalog({ environment: {}, configuredProviders, nowMs: 0, facts: noFacts });
  return probeKeyThrough({ catalog: () => catalog, upstream: client })({
    providerId,
    secret: "sk-of-somebody",
  });
};

test("a probe lists the provider's models with the key", async () => {
  upstream.script(json({ object: "list", data: [] }));
  expect(await probe("acme")).toEqual({ outcome: "accepted", reason: null });
  expect(await probe("claude")).toEqual({ outcome: "accepted", reason: null });
  const [first, second] = upstream.requests.slice(-2);
  expect([first?.method, first?.path, first?.body]).toEqual(["GET", "/v1/models", ""]);
  expect(first?.headers.get("authorization")).toBe("Bearer sk-of-somebody");
  expect(second?.headers.get("x-api-key")).toBe("sk-of-somebody");
});

test.each([
  [401, "no", "refused"],
  [402, "no", "refused"],
  [400, "API key not valid. Please pass a valid API key.", "refused"],
  [404, "no such path", "unknown"],
  [429, "slow down", "unknown"],
  [500, "down", "unknown"],
])("a provider that responds with %p %s: %s", async (status, message, outcome) => {
  upstream.script(json(chatError(message), { status }));
  expect(await probe("acme")).toEqual({ outcome: outcome as "unknown", reason: message });
});

test("a probe of an unreachable or unknown provider is unknown", async () => {
  expect(await probe("gone")).toEqual({ outcome: "unknown", reason: expect.any(String) });
  expect(await probe("nobody")).toEqual({ outcome: "unknown", reason: expect.any(String) });
});
