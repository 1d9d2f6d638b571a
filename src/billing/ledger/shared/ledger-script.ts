import type { SharedScript } from "../../../platform/shared-state/redis-client.ts";
import prelude from "./scripts/prelude.lua" with { type: "text" };

/**
 * Creates a script of the shared ledger: the names and functions of `scripts/prelude.lua`, which
 * also says what each key holds, and its own text.
 */
export const ledgerScript = (name: string, body: string): SharedScript => ({
  name: `switchyardLedger${name}`,
  lua: prelude + body,
});
