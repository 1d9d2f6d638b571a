import type { Caller } from "../account/keys/caller.ts";
import { lowerBrandHeader } from "../platform/lib/brand.ts";
import { queryOf } from "./request-target.ts";
import type { ServedRequest } from "./http-request.ts";
import type { InnerAnswer, InnerCall } from "./inner-call.ts";
import { Reply } from "./reply.ts";

/** Header names of the trace id, in lower case: the service's, the one that OpenAI's clients read, and Anthropic's. */
const traceHeaders = [lowerBrandHeader("Trace-Id"), "x-request-id", "request-id"] as const;

/** What the router tells of any request. */
export interface RequestSource {
  /** Finds the address that a request came from. */
  addressOf(request: ServedRequest): string;
  /** Says whether a request was encrypted on its way. */
  isEncrypted(request: ServedRequest): boolean;
  /** Calls another endpoint for the client of a request. */
  ask(context: RequestContext, call: InnerCall): Promise<InnerAnswer>;
}

/** What a handler knows of its request. */
export class RequestContext<Body = unknown> {
  readonly request: ServedRequest;
  /** 32 hexadecimal digits; sorts by time. */
  readonly traceId: string;
  /** Monotonic time at which the request was seen, in milliseconds. */
  readonly startedMs: number;
  /** Headers of the response to come, whatever it will be. */
  readonly headers: Record<string, string>;
  caller: Caller;
  body!: Body;
  /** Whether a settlement counts this request in the metrics, where its handler knows better than its endpoint. */
  settled?: boolean;
  /** Id of the record that the handler made or changed, where the path does not say it; for the audit log. */
  changed?: string;
  /** Workspace that the change concerns, where it is not the caller's; its audit log has the change as well. */
  changedIn?: string;
  private readonly source: RequestSource;

  constructor(options: {
    request: ServedRequest;
    traceId: string;
    startedMs: number;
    caller: Caller;
    source: RequestSource;
  }) {
    this.source = options.source;
    this.request = options.request;
    this.traceId = options.traceId;
    this.startedMs = options.startedMs;
    this.caller = options.caller;
    const { traceId } = options;
    this.headers = {
      [traceHeaders[0]]: traceId,
      [traceHeaders[1]]: traceId,
      [traceHeaders[2]]: traceId,
    };
  }

  /** The address that the request came from, past the proxies that are trusted. */
  clientAddress(): string {
    return this.source.addressOf(this.request);
  }

  /** Whether the request was encrypted on its way, as far as this server and the proxies that it trusts can tell. */
  isEncrypted(): boolean {
    return this.source.isEncrypted(this.request);
  }

  /** Calls another endpoint for the same client, under the same checks. Throws the `GatewayError` that refuses it. */
  ask(call: InnerCall): Promise<InnerAnswer> {
    return this.source.ask(this, call);
  }

  /** The caller of a request without a credential. */
  anonymousCaller(): Caller {
    return { kind: "anonymous", address: this.clientAddress() };
  }

  /** Path parameter, decoded; empty when the route has none of that name. */
  param(name: string): string {
    return this.request.params[name] ?? "";
  }

  get query(): URLSearchParams {
    return queryOf(this.request);
  }

  /** A JSON response with the headers gathered so far. */
  json(body: unknown, options: { status?: number; headers?: Record<string, string> } = {}): Reply {
    return new Reply(JSON.stringify(body), {
      status: options.status ?? 200,
      headers: { "content-type": "application/json", ...this.headers, ...options.headers },
    });
  }
}
