import { type KeyObject, randomBytes, createSecretKey } from "node:crypto";
import { type KeyVault, open, seal } from "../platform/vault/key-vault.ts";

/** The part of the vault that seals the keys of batches. */
export type BatchVault = Pick<KeyVault, "sealRecord" | "openRecord" | "learn">;

const placeOf = (workspaceId: string, batchId: string) => ({
  workspaceId,
  id: batchId,
  facts: ["batch"],
});

/** Creates the key of a batch's results, sealed for it. */
export const newResultKey =
  (vault: BatchVault, workspaceId: string) =>
  (batchId: string): Promise<string> =>
    vault.sealRecord(placeOf(workspaceId, batchId), randomBytes(32));

/** Seals the results of one batch until they are in its files, which are sealed as well. */
export class ResultSeal {
  private readonly key: { id: string; key: KeyObject };

  private constructor(key: KeyObject) {
    this.key = { id: "batch", key };
  }

  /** Opens the seal of a batch. */
  static async of(
    vault: BatchVault,
    { id, workspaceId, sealedKey }: { id: string; workspaceId: string; sealedKey: string },
  ): Promise<ResultSeal> {
    await vault.learn(workspaceId);
    return new ResultSeal(createSecretKey(vault.openRecord(placeOf(workspaceId, id), sealedKey)));
  }

  /** Seals the text of a line's result. */
  seal(line: number, text: string): string {
    return seal(this.key, { plain: Buffer.from(text, "utf8"), binding: [String(line)] });
  }

  /** Returns the text in clear. */
  open(line: number, sealed: string): string {
    return open(this.key, { sealed, binding: [String(line)] }).toString("utf8");
  }
}
