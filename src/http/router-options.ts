import type { Caller } from "../account/keys/caller.ts";
import type { CredentialDirectory } from "../account/keys/credential-directory.ts";
import type { IdempotentAnswers } from "../account/idempotency/idempotent-answers.ts";
import type { Security } from "../account/security/open-security.ts";
import type { Clock } from "../platform/lib/clock.ts";
import type { GatewayError } from "../platform/lib/errors.ts";
import { timeOrderedHex } from "../platform/lib/ids.ts";
import type { RateCounters } from "./count-request.ts";
import type { Endpoint } from "./endpoint.ts";
import type { ServedRequest } from "./http-request.ts";
import { RequestContext, type RequestSource } from "./request-context.ts";
import type { SessionDoor } from "./session-door.ts";

/** What the router itself needs; handlers get their own dependencies. */
export interface RouterOptions<Dependencies> {
  endpoints: readonly Endpoint<Dependencies>[];
  dependencies: Dependencies;
  directory: CredentialDirectory;
  counters: RateCounters;
  clock: Clock;
  security: Security;
  sessions: SessionDoor;
  /** The workspace whose management keys are operators'. */
  operatorWorkspaceId: string;
  /** The address that anonymous requests are counted by, and that allowlists and the audit log look at. */
  clientAddress(request: ServedRequest): string;
  /** Whether a request was encrypted on its way. */
  isEncrypted(request: ServedRequest): boolean;
  /** Told of every refused or failed request, for logs and metrics. */
  onError(
    error: GatewayError,
    context: { traceId: string; method: string; path: string; caller: Caller },
  ): void;
  /** Renders an error as a page where a person asks with a browser; undefined for programs. */
  errorPage(
    error: GatewayError,
    answer: { context: RequestContext; headers: Readonly<Record<string, string>> },
  ): Response | undefined;
  /** Leads a person who asks with a browser to the page that has a path which no endpoint has; undefined where none does. */
  pageElsewhere(context: RequestContext): Response | undefined;
  /** Answers of requests that name themselves. */
  idempotentAnswers: IdempotentAnswers;
  /** Told when such an answer could not be kept. */
  onAnswerError(error: unknown): void;
  /** Told when the outcome of a change could not be written to the audit log. */
  onAuditError(error: unknown): void;
  /** Told when an endpoint begins to work on a request. */
  onBegin(): void;
  /** Told of every answer; `settled` when its settlement counts it, as it does for served inference. */
  onEnd(answer: { path: string; status: number; settled: boolean }): void;
}

/** What compiling is given: the router's options, and what every request is told of its source. */
export interface Compiling<Dependencies> extends RouterOptions<Dependencies> {
  source: RequestSource;
}

/** The context of a request that has just come. */
export function newContext<Dependencies>(
  request: ServedRequest,
  { clock, source }: Compiling<Dependencies>,
  traceId = timeOrderedHex(clock.nowMs()),
): RequestContext {
  return new RequestContext({
    request,
    traceId,
    startedMs: clock.monotonicMs(),
    caller: { kind: "anonymous", address: "" },
    source,
  });
}
