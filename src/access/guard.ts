import type { Endpoint } from "../http/endpoint.ts";
import type { InnerCall } from "../http/inner-call.ts";
import type { Answer } from "../http/reply.ts";
import type { RouterGuard } from "../http/router-options.ts";
import { requireOperator, type Caller } from "../identity/keys/caller.ts";
import type { CredentialDirectory } from "../identity/keys/credential-directory.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import { admitSession, decidingCookie, type SessionDoor } from "./admit-session.ts";
import { auditChange, isAudited } from "./audit-log.ts";
import { authenticate } from "./authenticate.ts";
import {
  countAddress,
  countRefusedCredential,
  countRequest,
  describeWindow,
  RefusedCredentialError,
  type RateCounters,
} from "./count-request.ts";
import type { RequestContext } from "./define-endpoint.ts";
import { answerOnce, type IdempotentAnswers } from "./idempotent-answers.ts";
import { checkAddress } from "./ip-allowlist.ts";
import type { Security } from "./open-security.ts";

/** What the guard is built from. */
export interface GuardOptions {
  directory: CredentialDirectory;
  counters: RateCounters;
  clock: Clock;
  security: Pick<Security, "allowlist" | "auditLog">;
  sessions: SessionDoor;
  /** The workspace whose management keys are operators'. */
  operatorWorkspaceId: string;
  idempotentAnswers: IdempotentAnswers;
  /** Called when an answer with an idempotency key could not be kept. */
  onAnswerError(error: unknown): void;
  /** Called when the outcome of a change could not be written to the audit log. */
  onAuditError(error: unknown): void;
}

type GuardedEndpoint = Pick<
  Endpoint<never>,
  | "method"
  | "base"
  | "path"
  | "tag"
  | "access"
  | "counting"
  | "anywhere"
  | "unaudited"
  | "idempotent"
>;

/**
 * Decides who may use an endpoint: credential, scope, allowed addresses and rate windows. Surrounds
 * the work of an endpoint with the audit log and with answers to repeated requests.
 */
export class Guard implements RouterGuard<Caller> {
  readonly unknownCaller: Caller = { kind: "anonymous", address: "" };
  private readonly options: GuardOptions;

  constructor(options: GuardOptions) {
    this.options = options;
  }

  /**
   * Finds the caller and checks credential and scope, then what holds for every caller. Sessions
   * and shared windows are waited for; keys are in memory. Throws `GatewayError`.
   */
  admit(endpoint: GuardedEndpoint, context: RequestContext): Promise<void> | undefined {
    const { sessions, clock, counters } = this.options;
    const { request } = context;
    const { access } = endpoint;
    const cookie = decidingCookie(request.headers, access);
    if (cookie !== undefined) {
      const nowMs = clock.nowMs();
      return admitSession(sessions, { request, cookie, access, nowMs }).then(
        (caller) => {
          if (caller === undefined) return this.admitKey(endpoint, context);
          context.caller = caller;
          return this.enter(endpoint, context);
        },
        (refusal: unknown) => this.refuse(refusal, context),
      );
    }
    if (typeof endpoint.counting === "object") {
      const counted = countAddress(counters, {
        address: context.clientAddress(),
        tier: endpoint.counting.perAddress,
        headers: context.headers,
      });
      if (counted !== undefined) return counted.then(() => this.admitKey(endpoint, context));
    }
    return this.admitKey(endpoint, context);
  }

  /** Finds the caller of a call of one endpoint by another; such calls are not counted. */
  admitInner(
    endpoint: GuardedEndpoint,
    context: RequestContext,
    { operator }: InnerCall<Caller>,
  ): void {
    context.caller =
      operator !== undefined && endpoint.access.operator
        ? operator
        : this.credentialOf(endpoint, context);
    this.checkPlace(endpoint, context);
  }

  /** The work of an endpoint with its change audited and its repetitions answered. */
  around(
    endpoint: GuardedEndpoint,
    work: (context: RequestContext) => Answer | Promise<Answer>,
  ): (context: RequestContext, bodyText: string) => Answer | Promise<Answer> {
    const { security, operatorWorkspaceId, idempotentAnswers, onAnswerError } = this.options;
    const auditing = {
      log: security.auditLog,
      operatorWorkspaceId,
      onError: this.options.onAuditError,
    };
    const change = isAudited(endpoint)
      ? (context: RequestContext) =>
          auditChange(auditing, { endpoint, context }, () => work(context))
      : work;
    if (!endpoint.idempotent) return change;
    return (context, bodyText) =>
      answerOnce(
        idempotentAnswers,
        { context, bodyText, onError: onAnswerError },
        async () => await change(context),
      );
  }

  /** Headers of the rate window that a caller's requests count in. */
  windowHeaders(caller: Caller): Record<string, string> {
    return describeWindow(this.options.counters, caller);
  }

  /** Admits a caller with a key, or without any credential. */
  private admitKey(endpoint: GuardedEndpoint, context: RequestContext): Promise<void> | undefined {
    try {
      context.caller = this.credentialOf(endpoint, context);
    } catch (refusal) {
      return this.refuse(refusal, context);
    }
    return this.enter(endpoint, context);
  }

  private credentialOf(endpoint: GuardedEndpoint, context: RequestContext): Caller {
    const { directory, clock } = this.options;
    const { headers } = context.request;
    return authenticate({ headers, endpoint, directory, nowMs: clock.nowMs(), context });
  }

  /**
   * Refuses a caller. Only a credential that opens nothing is counted: the look-up came first, so a
   * good one never is.
   */
  private refuse(refusal: unknown, context: RequestContext): Promise<never> {
    if (!(refusal instanceof RefusedCredentialError)) throw refusal;
    return countRefusedCredential(this.options.counters, {
      refusal,
      address: context.clientAddress(),
      headers: context.headers,
    });
  }

  /** Checks what holds for every caller: allowed addresses, and who runs the service. */
  private checkPlace(endpoint: GuardedEndpoint, context: RequestContext): void {
    const { security, operatorWorkspaceId } = this.options;
    if (!endpoint.anywhere) checkAddress(security.allowlist, context);
    if (endpoint.access.operator) requireOperator(context.caller, operatorWorkspaceId);
  }

  /** Checks the place of an authenticated caller and counts the request where the door counts. */
  private enter(endpoint: GuardedEndpoint, context: RequestContext): Promise<void> | undefined {
    this.checkPlace(endpoint, context);
    const { directory, clock, counters } = this.options;
    const { caller, headers } = context;
    if (caller.kind !== "anonymous" && caller.kind !== "session")
      directory.uses.note(caller.key.id, clock.nowMs());
    if (endpoint.counting === "none") Object.assign(headers, describeWindow(counters, caller));
    if (endpoint.counting !== "at-door") return undefined;
    return countRequest(counters, { caller, rateClass: "account", headers });
  }
}
