import type { GenerationDetail } from "../../../../src/insights/generation-record.ts";
import type { AttemptRecord } from "../../../../src/insights/generation-record.ts";
import type { TestGateway } from "../../../support/gateway.ts";

/** One settled request as it is stored. */
export interface SettledRow {
  id: string;
  model: string;
  provider: string;
  status: string;
  finishReason: string | null;
  promptTokens: number;
  completionTokens: number;
  costNano: bigint;
  detail: GenerationDetail & { attempts?: AttemptRecord[] };
}

/** Every settled request so far, oldest first. */
export async function settledRows({ app }: TestGateway): Promise<SettledRow[]> {
  await app.storage.commits.flush();
  const rows = await app.storage.database
    .selectFrom("generations")
    .selectAll()
    .where("status", "not in", ["failed", "cached"])
    .orderBy("id")
    .execute();
  return rows.map((row) => ({
    id: row.id,
    model: row.model,
    provider: row.provider,
    status: row.status,
    finishReason: row.finish_reason,
    promptTokens: row.prompt_tokens,
    completionTokens: row.completion_tokens,
    costNano: BigInt(row.cost_nano),
    detail: JSON.parse(row.detail) as SettledRow["detail"],
  }));
}

/** The row of one request, by the trace id of its answer; undefined when it was not settled. */
export async function settledRow(
  gateway: TestGateway,
  traceId: string | null,
): Promise<SettledRow | undefined> {
  return (await settledRows(gateway)).find(({ id }) => id === `gen_${traceId}`);
}
