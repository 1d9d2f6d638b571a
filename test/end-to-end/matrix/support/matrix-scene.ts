import type { AppSettings } from "../../../../src/app/settings-of.ts";
import type { ScriptedDialect as DialectId } from "../../../support/scripted-upstream/scripted-upstream.ts";
import type { ConfiguredProvider } from "../../../../src/inference/catalog/configured/configured-provider.ts";
import { provider, startGateway, type TestGateway } from "../../../support/gateway.ts";
import type { Fault } from "../../../support/upstream/fault.ts";
import {
  refusingBaseUrl,
  startFaultUpstream,
  type FaultUpstream,
} from "../../../support/upstream/fault-upstream.ts";
import { expectSoundBooks } from "../../scenarios/support/expect-sound-books.ts";
import { haltingTimeouts } from "../../scenarios/support/scene.ts";
import { addressOf, type ClientDialect } from "./client-dialect.ts";
import type { Fields } from "./json-value.ts";
import { upstreams } from "./pairs.ts";
import { readReply, type Reply } from "./reply.ts";

/** The model that every provider of the matrix serves. */
export const model = "acme/large";

/** Timeouts that are over soon, for upstreams that stall after they have answered at once. */
const hastyTimeouts = { connect: 1_000, first_token: 120, idle: 120, total: 1_000 };

/**
 * How one provider of a dialect behaves: it has time, it has none, it has none once it began, or it
 * is not there.
 */
export type Manner = "patient" | "hasty" | "halting" | "absent";

/** The provider of a dialect that behaves so. */
export const providerId = (dialect: DialectId, manner: Manner = "patient"): string =>
  `${dialect}-${manner}`;

/** The provider under which a fault is met. */
export function providerUnder(
  dialect: DialectId,
  { refusesConnections, waits, effect }: Fault,
): string {
  if (refusesConnections) return providerId(dialect, "absent");
  if (!waits) return providerId(dialect);
  return providerId(dialect, effect === "after-content" ? "halting" : "hasty");
}

/** A gateway before one upstream of every dialect. */
export interface MatrixScene {
  gateway: TestGateway;
  upstreams: Readonly<Record<DialectId, FaultUpstream>>;
  /** Sends a client's request to these providers, in this order, and to no others. */
  ask(
    client: ClientDialect,
    body: Fields,
    options: { providers: readonly string[]; headers?: Record<string, string> },
  ): Promise<Reply>;
  /** Checks the books, then lets everything go. */
  end(): Promise<void>;
}

export interface MatrixOptions {
  settings?: Partial<AppSettings>;
  /** Further fields of the model's entry. */
  modelFields?: Fields;
}

function entries(at: (dialect: DialectId) => string, modelFields: Fields): ConfiguredProvider[] {
  const models = [
    {
      id: model,
      upstream_model: "large-v2",
      context_length: 131_072,
      max_completion_tokens: 8_192,
      pricing: { prompt: "0.50", completion: "1.50", search: "0.01" },
      ...modelFields,
    },
  ];
  return upstreams.flatMap((dialect) => {
    const entry = (manner: Manner, baseUrl: string, timeouts: Fields = {}) =>
      provider({
        id: providerId(dialect, manner),
        dialect,
        base_url: baseUrl,
        api_key: "upstream-secret",
        timeouts_ms: timeouts,
        models,
      });
    return [
      entry("patient", at(dialect)),
      entry("hasty", at(dialect), hastyTimeouts),
      entry("halting", at(dialect), haltingTimeouts),
      entry("absent", refusingBaseUrl()),
    ];
  });
}

/** A request that only these providers may serve, in this order. */
export const routed = (body: Fields, providers: readonly string[]): Fields => ({
  model,
  ...body,
  provider: { order: providers, only: providers },
});

/** Starts the gateway and its four upstreams. */
export async function startMatrix({
  settings = {},
  modelFields = {},
}: MatrixOptions = {}): Promise<MatrixScene> {
  const started = await Promise.all(
    upstreams.map(async (dialect) => [dialect, await startFaultUpstream()] as const),
  );
  const byDialect = Object.fromEntries(started) as Record<DialectId, FaultUpstream>;
  const gateway = await startGateway({
    providers: entries((dialect) => byDialect[dialect].baseUrl, modelFields),
    plans: { enterprise: { perMinute: 1_000_000 } },
    ...settings,
  });
  return {
    gateway,
    upstreams: byDialect,
    async ask(client, asked, { providers, headers = {} }) {
      const whole = routed(asked, providers);
      const { path, body } = addressOf(client, whole);
      return readReply(client, await gateway.post(path, body, { headers }));
    },
    async end() {
      try {
        await expectSoundBooks(gateway);
      } finally {
        await gateway.stop();
        for (const [, upstream] of started) upstream.stop();
      }
    },
  };
}
