import { testManagementKey, type TestGateway } from "../../../support/gateway.ts";

/** Creates an LLM key as its owner would, and gives its secret. */
export async function createKey(
  gateway: TestGateway,
  fields: Record<string, unknown>,
): Promise<string> {
  const response = await gateway.post(
    "/keys",
    { name: "made by a test", ...fields },
    { headers: { authorization: `Bearer ${testManagementKey}` } },
  );
  const { key } = (await response.json()) as { key: string };
  return key;
}
