import { testLlmKey, testManagementKey } from "../../../support/gateway.ts";

/** Variables that give a gateway the tests' keys and 10 USD. */
export const bootstrapVariables = {
  SWITCHYARD_BOOTSTRAP_LLM_KEY: testLlmKey,
  SWITCHYARD_BOOTSTRAP_MANAGEMENT_KEY: testManagementKey,
  SWITCHYARD_BOOTSTRAP_CREDITS: "10",
} as const;
