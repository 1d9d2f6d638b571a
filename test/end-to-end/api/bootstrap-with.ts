import type { BootstrapSettings } from "../../../src/identity/workspaces/bootstrap.ts";
import type { PlanId } from "../../../src/identity/workspaces/workspace-store.ts";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";

/**
 * Bootstrap settings with the test's keys; 10 USD on the plan `enterprise` where nothing else is
 * named.
 */
export const bootstrapWith = (changes: {
  creditsNanoUsd?: bigint;
  plan?: PlanId;
}): BootstrapSettings => ({
  llmKey: testLlmKey,
  managementKey: testManagementKey,
  creditsNanoUsd: 10_000_000_000n,
  plan: "enterprise",
  ...changes,
});
