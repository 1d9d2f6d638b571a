import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { provider } from "../../../test/support/gateway.ts";
import { callOn, planDependencies } from "../../../test/support/planned-body.ts";
import type { ReserveRequest } from "../../billing/ledger/hold-rule.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { buildCatalog } from "../catalog/build-catalog.ts";
import { type SessionPlace, StickySessions } from "../routing/sticky-sessions.ts";
import { beginExecution } from "./begin-execution.ts";
import type { Execution, InferenceDependencies } from "./execution.ts";
import { noFacts } from "../../../test/support/no-facts.ts";

const model = "acme/large";
const offer = (id: string, price: string) =>
  provider({
    id,
    base_url: "http://127.0.0.1:1/v1",
    api_key: "k",
    models: [{ id: model, upstream_model: "large", pricing: { prompt: price, completion: price } }],
  });
const catalog = buildCatalog({
  environment: {},
  configuredProviders: [offer("cheap", "1"), offer("dear", "2")],
  nowMs: 0,
  facts: noFacts,
});
const call = callOn("chat", {
  model,
  session_id: "s",
  messages: [{ role: "user", content: "Hello" }],
});

/** Prepares the call while other gateways' knowledge arrives only after its hold was requested. */
async function prepareWith(
  place: SessionPlace | undefined,
  reserve: () => Awaited<ReturnType<InferenceDependencies["ledger"]["reserve"]>>,
): Promise<{ execution: Execution; held: ReserveRequest[] }> {
  const requested = Promise.withResolvers<SessionPlace | undefined>();
  const held: ReserveRequest[] = [];
  const clock = new FakeClock();
  const deps = {
    ...planDependencies(catalog, {
      clock,
      sessions: new StickySessions(clock, {
        shared: { get: () => requested.promise, set: async () => undefined },
        recallMs: 30_000,
      }),
    }),
    chargesStall: () => false,
    disconnect: "abort",
    ledger: {
      async reserve(request: ReserveRequest) {
        held.push(request);
        requested.resolve(place);
        return reserve();
      },
    },
  } as unknown as InferenceDependencies;
  return { execution: await beginExecution(deps, call), held };
}

const holds = () =>
  ({
    ok: true,
    heldNano: 1n,
    freeNano: 1_000_000_000_000n,
    balanceNano: 1_000_000_000_000n,
  }) as const;
const providersOf = ({ candidates }: Execution): string[] =>
  candidates.map(({ route }) => route.provider.id);

test("a session's place is learned while the hold is taken, and is then tried first", async () => {
  const { execution, held } = await prepareWith({ provider: "dear", model }, holds);
  expect(providersOf(execution)).toEqual(["dear", "cheap"]);
  expect(execution.candidates[0]?.reason).toContain("served the session last");
  expect(held).toHaveLength(1);
});

test("a place that is not known, or that cannot serve, changes nothing", async () => {
  const unknown = await prepareWith(undefined, holds);
  expect(providersOf(unknown.execution)).toEqual(["cheap", "dear"]);
  const gone = await prepareWith({ provider: "closed", model }, holds);
  expect(providersOf(gone.execution)).toEqual(["cheap", "dear"]);
});

test("a request whose hold is refused fails with that refusal", async () => {
  const refuses = () =>
    ({ ok: false, reason: "away", balanceNano: 0n, freeNano: 0n, heldNano: 0n }) as const;
  const preparing = prepareWith({ provider: "dear", model }, refuses);
  const error = await preparing.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(GatewayError);
  expect(error).toMatchObject({ code: "service_unavailable" });
});
