import type { Clock } from "../platform/kernel/clock.ts";
import type { GatewayError } from "../platform/kernel/errors.ts";
import { timeOrderedHex } from "../platform/kernel/ids.ts";
import type { Endpoint } from "./endpoint.ts";
import type { ServedRequest } from "./http-request.ts";
import type { InnerCall } from "./inner-call.ts";
import type { Answer } from "./reply.ts";
import { RequestContext, type RequestSource } from "./request-context.ts";

/** Decides who may use an endpoint, and surrounds its work. The router knows no credentials. */
export interface RouterGuard<Caller> {
  /** The caller of a request whose credential has not been looked at. */
  readonly unknownCaller: Caller;
  /** Finds the caller of a request and admits it, or throws the `GatewayError` that refuses it. */
  admit(
    endpoint: Endpoint<never>,
    context: RequestContext<unknown, Caller>,
  ): Promise<void> | undefined;
  /** The same for a call of one endpoint by another. */
  admitInner(
    endpoint: Endpoint<never>,
    context: RequestContext<unknown, Caller>,
    call: InnerCall<Caller>,
  ): void;
  /** The work of an endpoint with what has to happen before and after it. */
  around(
    endpoint: Endpoint<never>,
    work: (context: RequestContext<unknown, Caller>) => Answer | Promise<Answer>,
  ): (context: RequestContext<unknown, Caller>, bodyText: string) => Answer | Promise<Answer>;
  /** Headers that describe the rate window of a caller, for answers given before counting. */
  windowHeaders(caller: Caller): Record<string, string>;
}

/** What the router itself needs; handlers get their own dependencies. */
export interface RouterOptions<Dependencies, Caller> {
  endpoints: readonly Endpoint<Dependencies, unknown, Caller>[];
  dependencies: Dependencies;
  clock: Clock;
  guard: RouterGuard<Caller>;
  /** Where people reach the service, without a trailing slash. */
  publicUrl(): string;
  /**
   * The address that anonymous requests are counted by, and that allowlists and the audit log use.
   */
  clientAddress(request: ServedRequest): string;
  /** Whether a request was encrypted on its way. */
  isEncrypted(request: ServedRequest): boolean;
  /** Called for every refused or failed request, for logs and metrics. */
  onError(
    error: GatewayError,
    context: { traceId: string; method: string; path: string; caller: Caller },
  ): void;
  /** Renders an error as a page where a person asks with a browser; undefined for programs. */
  errorPage(
    error: GatewayError,
    answer: { context: RequestContext<unknown, Caller>; headers: Readonly<Record<string, string>> },
  ): Response | undefined;
  /**
   * Leads a person who asks with a browser to the page that has a path which no endpoint has;
   * undefined where none does.
   */
  pageElsewhere(context: RequestContext<unknown, Caller>): Response | undefined;
  /** Called when an endpoint begins to work on a request. */
  onBegin(): void;
  /**
   * Called for every answer; `settled` when its settlement counts it, as it does for served inference.
   */
  onEnd(answer: { path: string; status: number; settled: boolean }): void;
}

/** What compiling is given: the router's options, and where each request comes from. */
export interface Compiling<Dependencies, Caller> extends RouterOptions<Dependencies, Caller> {
  source: RequestSource<Caller>;
}

/** The context of a request that has just come, or that an outer one makes. */
export function newContext<Dependencies, Caller>(
  request: ServedRequest,
  { clock, source, guard }: Compiling<Dependencies, Caller>,
  outer?: RequestContext<unknown, Caller>,
): RequestContext<unknown, Caller> {
  return new RequestContext({
    request,
    traceId: outer?.traceId ?? timeOrderedHex(clock.nowMs()),
    isInner: outer !== undefined,
    startedMs: clock.monotonicMs(),
    caller: guard.unknownCaller,
    source,
  });
}
