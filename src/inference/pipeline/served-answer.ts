import type { AttemptRecord } from "../../insights/generation-record.ts";
import type { MeteredUsage, ModelFallback } from "../canonical/response.ts";
import type { Loss } from "../canonical/request.ts";
import type { WholeAnswer } from "../dialects/shared/exchange.ts";
import type { Candidate } from "../routing/candidate.ts";
import type { PostedCharge } from "../../billing/ledger/ledger-port.ts";

/** The facts that accompany every answer, whole or streamed. */
export interface ServedFacts {
  candidate: Candidate;
  /**
   * The parts that the translation to the upstream's dialect dropped or changed and, for a whole
   * answer, those that the client's dialect cannot carry.
   */
  losses: readonly Loss[];
  attempts: readonly AttemptRecord[];
  /** The balance at admission, in nano-USD; undefined for a request that costs no credits. */
  balanceAtAdmissionNano: bigint | undefined;
  fallback: ModelFallback | undefined;
  /** The cap that replaced a larger one, which the caller cannot afford; undefined where none was. */
  outputCap: number | undefined;
  /** Whether this session was served by another provider before. */
  sessionMoved: boolean;
  timing: Omit<RequestTiming, "settledMs">;
}

/** A whole answer, settled. */
export interface ServedWhole extends ServedFacts {
  kind: "whole";
  answer: WholeAnswer;
  settled: Settled;
  metered: MeteredUsage;
}

/** When the phases of a request began or ended, in milliseconds of the monotonic clock. */
export interface RequestTiming {
  startedMs: number;
  /** When the first upstream request was sent. */
  firstSendMs: number;
  firstContentMs: number | null;
  /** When the last byte of the upstream's answer arrived. */
  upstreamEndMs: number;
  settledMs: number;
}

/** A settled request and its charge, which is durable before this is returned. */
export interface Settled extends PostedCharge {
  free: boolean;
  /** Whether the caller's own provider key paid. */
  isByok: boolean;
  settledMs: number;
}
