import { provider, startGateway, testLlmKey } from "../../test/support/gateway.ts";

/**
 * Starts a gateway in this process with one provider and credits enough for any bench, prints its
 * address, and runs until it is ended.
 */
export async function serveGateway(entry: Readonly<Record<string, unknown>>): Promise<void> {
  const gateway = await startGateway({
    // One client sends thousands of requests in a minute.
    plans: { enterprise: { perMinute: 1_000_000, fiveHour: 10_000_000 } },
    bootstrap: {
      llmKey: testLlmKey,
      managementKey: "ak_bench_management_key",
      creditsNanoUsd: 10_000_000_000_000n,
      plan: "enterprise",
    },
    providers: [provider({ id: "bench", api_key: "k", ...entry })],
  });
  console.log(gateway.origin);
}
