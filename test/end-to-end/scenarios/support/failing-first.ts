import { provider, testLlmKey, testManagementKey } from "../../../support/gateway.ts";
import { faults } from "../../../support/upstream/faults.ts";
import { readReply, type ChatReply } from "./chat-reply.ts";
import { chatRequest, startScene, type Scene } from "./scene.ts";

/** A model that costs nothing, at acme. */
export const free = "acme/tiny:free";
/** A model that costs `paidPrice`, at the backup. */
export const paid = "backup/large";
export const paidPrice = { prompt: "1.00", completion: "3.00" };

export interface FailingFirst {
  creditsUsd?: number;
  /** Models of acme, whose upstream always fails, and of the backup, which always serves. */
  acmeModels?: unknown[];
  backupModels?: unknown[];
  acmePolicy?: Record<string, unknown>;
}

/** A gateway whose acme always fails and whose backup always serves. */
export async function startFailingFirst({
  creditsUsd = 10,
  acmeModels = [{ id: free }],
  backupModels = [{ id: paid, pricing: paidPrice }],
  acmePolicy = {},
}: FailingFirst): Promise<Scene> {
  const entry = (id: string, baseUrl: string, fields: Record<string, unknown>) =>
    provider({ id, base_url: baseUrl, dialect: "openai-chat", api_key: "k", ...fields });
  const scene = await startScene({
    settings: {
      bootstrap: {
        llmKey: testLlmKey,
        managementKey: testManagementKey,
        creditsNanoUsd: BigInt(creditsUsd * 1e9),
        plan: "enterprise",
      },
    },
    providers: (first, second) => [
      entry("acme", first, { models: acmeModels, data_policy: acmePolicy }),
      entry("backup", second, { models: backupModels }),
    ],
  });
  scene.acme.script(faults["503"].script);
  return scene;
}

/** Sends a chat request that leaves the order of providers to the gateway. */
export async function askFor(
  { gateway }: Scene,
  changes: Record<string, unknown>,
  secret = testLlmKey,
): Promise<ChatReply> {
  const body = chatRequest({ provider: undefined, ...changes });
  const headers = { authorization: `Bearer ${secret}` };
  return readReply(await gateway.post("/chat/completions", body, { headers }));
}
