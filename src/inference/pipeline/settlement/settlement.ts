import type { PriceRow } from "../../../billing/ledger/price.ts";
import type { PostedCharge } from "../../../billing/ledger/ledger-port.ts";
import type {
  AttemptRecord,
  GenerationDetail,
  GenerationRecord,
} from "../../../insights/generation-record.ts";
import type { CommitUnit } from "../../../platform/storage/commit-queue.ts";
import type { Loss } from "../../canonical/request.ts";
import type { Usage } from "../../../platform/kernel/usage.ts";
import type { MeteredUsage } from "../../canonical/response.ts";
import type { RequestTiming } from "../served-answer.ts";
import type { InferenceCall } from "../inference-call.ts";
import type { Candidate } from "../../routing/candidate.ts";

/** The facts with which an answer, whole or cut, is settled. */
export interface Settlement {
  call: InferenceCall;
  candidate: Candidate;
  /** The parts that the translation to the upstream's dialect dropped or changed. */
  losses: readonly Loss[];
  /** The output cap that the provider was given in place of a larger one. */
  outputCap: number | undefined;
  /** The reason for the routing; undefined where there was only one route. */
  routing: GenerationDetail["routing"];
  requestedModel: string;
  metered: MeteredUsage;
  finishReason: string | null;
  status: GenerationRecord["status"];
  streamed: boolean;
  /** Whether the gateway cut the answer because its provider passed the output cap. */
  passedCap: boolean;
  upstreamId: string | null;
  attempts: readonly AttemptRecord[];
  timing: Omit<RequestTiming, "settledMs">;
  /** Returns the rows that are committed with the charge, beside the record; absent for none. */
  rows?: ((posted: PostedCharge) => CommitUnit["inserts"]) | undefined;
}

/** The price that a request is charged at, and the usage as it is charged. */
export interface Priced {
  price: PriceRow | undefined;
  usage: Usage;
}
