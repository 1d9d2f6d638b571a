import { testManagementKey } from "../../../support/gateway.ts";
import { textAt } from "../../api/at.ts";
import type { AskedGateway } from "../../process/support/ask.ts";
import { until } from "./until.ts";

/** Asks for a change with the tests' management key and gives the answer's JSON. */
export async function manage(
  { url }: AskedGateway,
  path: string,
  { method = "POST", body }: { method?: string; body?: unknown } = {},
): Promise<unknown> {
  const response = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
  return JSON.parse(text);
}

/** Makes a key at one gateway and waits until every gateway takes it. */
export async function createKey(
  gateways: readonly AskedGateway[],
  fields: Record<string, unknown>,
): Promise<{ key: string; hash: string }> {
  const [first] = gateways;
  if (first === undefined) throw new Error("no gateway");
  const created = await manage(first, "/keys", { body: { name: "of two", ...fields } });
  const key = textAt(created, "key");
  for (const { url } of gateways) {
    const isTaken = async (): Promise<boolean> =>
      (await fetch(`${url}/api/v1/auth/key`, { headers: { authorization: `Bearer ${key}` } })).ok;
    await until(isTaken, { patienceMs: 50_000, what: "a new key is taken" });
  }
  return { key, hash: textAt(created, "data.hash") };
}

/** Gives the first workspace credits. */
export async function give(gateway: AskedGateway, usd: number): Promise<void> {
  const workspaceId = textAt(
    await manage(gateway, "/admin/workspaces", { method: "GET" }),
    "data.0.id",
  );
  await manage(gateway, "/admin/grants", { body: { amount: usd, workspace_id: workspaceId } });
}
