import type { Caller } from "../identity/keys/caller.ts";
import type { InferenceObserver } from "../inference/pipeline/execution.ts";
import type { RequestTiming } from "../inference/pipeline/served-answer.ts";
import type { GenerationRecord } from "../insights/generation-record.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import { usdText } from "../platform/kernel/money.ts";
import type { RequestLog } from "../platform/telemetry/log-exporter.ts";
import type { AnsweredRequest } from "../http/router.ts";

/** What the router does not know of an inference request that failed. */
interface FailedRequest {
  model: string;
  provider: string | undefined;
  code: string;
}

/** The most failures that wait for their answer; those of work without a client never have one. */
const failingMax = 1_000;

/** Writes the lines of an access log as JSON objects. */
export const asJsonLines =
  (write: (line: string) => void) =>
  ({ timeMs, fields }: RequestLog): void =>
    write(`${JSON.stringify({ time: new Date(timeMs).toISOString(), ...fields })}\n`);

/**
 * The access log: one line for each request, without any content. A stream has its line once it is
 * settled.
 */
export class AccessLog {
  /** Failed requests between their failure and their answer, by trace id. */
  private readonly failing = new Map<string, FailedRequest>();

  constructor(
    private readonly write: (line: RequestLog) => void,
    private readonly clock: Clock,
  ) {}

  /** Returns an observer that also writes the line of each settled request. */
  observing(observer: InferenceObserver): InferenceObserver {
    return {
      ...observer,
      settled: (record, timing) => {
        observer.settled(record, timing);
        this.line(statusOf[record.status] ?? 200, settledFields(record, timing));
      },
      failed: (request) => {
        observer.failed(request);
        const { traceId, requestedModel, attempts, error } = request;
        const provider = attempts.at(-1)?.provider;
        const [oldest] = this.failing.keys();
        if (oldest !== undefined && this.failing.size >= failingMax) this.failing.delete(oldest);
        this.failing.set(traceId, { model: requestedModel, provider, code: error.code });
      },
    };
  }

  /** Writes the line of a request that no settlement writes. */
  answered({
    traceId,
    method,
    path,
    status,
    settled,
    caller,
    startedMs,
  }: AnsweredRequest<Caller>): void {
    const failed = this.failing.get(traceId);
    this.failing.delete(traceId);
    if (settled) return;
    this.line(status, {
      trace_id: traceId,
      method,
      path,
      status,
      ...senderFields(caller),
      ...(failed && { model: failed.model, provider: failed.provider, error: failed.code }),
      duration_ms: tenths(this.clock.monotonicMs() - startedMs),
    });
  }

  private line(status: number, fields: RequestLog["fields"]): void {
    this.write({ timeMs: this.clock.nowMs(), status, fields });
  }
}

const tenths = (milliseconds: number): number => Math.round(milliseconds * 10) / 10;

const senderFields = (caller: Caller): Record<string, string> =>
  "workspace" in caller
    ? {
        workspace_id: caller.workspace.id,
        ...("key" in caller && { key_id: caller.key.id }),
      }
    : {};

const statusOf: Partial<Record<GenerationRecord["status"], number>> = { cancelled: 499 };

const settledFields = (
  record: GenerationRecord,
  { startedMs, settledMs }: RequestTiming,
): RequestLog["fields"] => ({
  trace_id: record.id.replace(/^gen_/, ""),
  generation_id: record.id,
  method: "POST",
  surface: record.surface,
  status: statusOf[record.status] ?? 200,
  outcome: record.status,
  workspace_id: record.workspaceId,
  key_id: record.keyId,
  model: record.requestedModel,
  served_model: record.model,
  provider: record.provider,
  attempts: record.attempts.length,
  streamed: record.streamed,
  input_tokens: record.promptTokens,
  output_tokens: record.completionTokens,
  cost_usd: usdText(record.costNanoUsd),
  duration_ms: tenths(settledMs - startedMs),
  first_token_ms: record.firstTokenMs,
});
