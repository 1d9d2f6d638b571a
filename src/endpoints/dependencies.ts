import type { LlmKeyMinter } from "../account/keys/llm-key-minter.ts";
import type { LlmKeyStore } from "../account/keys/llm-key-store.ts";
import type { Ledger } from "../account/ledger/ledger.ts";
import type { LedgerStore } from "../account/ledger/ledger-store.ts";
import type { RateCounters } from "../http/count-request.ts";
import type { InferenceDependencies } from "../inference/dependencies.ts";
import type { GenerationStore } from "../insights/generation-store.ts";
import type { Clock } from "../platform/lib/clock.ts";

/** What operational endpoints tell about the process. */
export interface Operations {
  /** Names of what is not ready yet; empty when requests can be served. */
  unreadyParts(): Promise<string[]>;
  metricsText(): Promise<string>;
  metricsContentType: string;
  /** Whether `/metrics` is served here or on a port of its own. */
  metricsHere: boolean;
  version: string;
}

/** Everything that endpoints are given. */
export interface Dependencies {
  inference: InferenceDependencies;
  ledger: Ledger;
  ledgerStore: LedgerStore;
  llmKeys: LlmKeyStore;
  llmKeyMinter: LlmKeyMinter;
  generations: GenerationStore;
  counters: RateCounters;
  operations: Operations;
  clock: Clock;
  /** Text of the OpenAPI document of the table. */
  openApiText(): string;
  docsHtml(): string;
}
