import {
  type AccessRule,
  asPattern,
  type Endpoint,
  type RouterGuard,
  shownPath,
} from "../http/endpoint.ts";
import type { Answer } from "../http/reply.ts";
import type { RequestHeaders } from "../http/served-request.ts";
import {
  type Caller,
  type Credential,
  isLive,
  keysOf,
  type LlmKeyCaller,
  requireOperator,
} from "../identity/keys/caller.ts";
import type { CredentialDirectory } from "../identity/keys/credential-directory.ts";
import type { KeyConnection } from "../identity/keys/llm-key-store.ts";
import { coversScope } from "../identity/keys/scopes.ts";
import { sessionCookieOf } from "../identity/people/sign-in/sessions.ts";
import { brand } from "../platform/kernel/brand.ts";
import type { Clock } from "../platform/kernel/clock.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import { admitSession, decidingCookie, type SessionDoor } from "./admit-session.ts";
import { auditChange, isAudited } from "./audit/audit-log.ts";
import {
  countAddress,
  countRefusedCredential,
  countRequest,
  describeWindow,
  type RateCounters,
  RefusedCredentialError,
} from "./count-request.ts";
import type { RequestContext } from "./define-endpoint.ts";
import { answerOnce, type IdempotentAnswers } from "./idempotent-answers.ts";
import { checkAddress } from "./allowlist/ip-allowlist.ts";
import { type DoorKeys, doorKeyFor } from "./door-keys.ts";
import type { Security } from "./open-security.ts";
import { bearerSecret, invalidKey, presentedSecrets } from "./presented-secrets.ts";
import type { InnerCall } from "../http/request-context.ts";

/** Options of the guard. */
interface GuardOptions {
  directory: CredentialDirectory;
  runs: RunDoor;
  counters: RateCounters;
  clock: Clock;
  security: Pick<Security, "allowlist" | "auditLog">;
  sessions: SessionDoor;
  /** The workspace whose management keys are operators' keys. */
  operatorWorkspaceId: string;
  idempotentAnswers: IdempotentAnswers;
  /** Keys of doors for callers who cannot send any; absent means none. */
  doors?: DoorKeys | undefined;
  /** Whether proxies may name the client. */
  isProxyTrusted?: boolean;
  /** Called when an answer with an idempotency key could not be stored. */
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
  | "protectedResource"
  | "unaudited"
  | "idempotent"
>;

/**
 * Decides who may use an endpoint, by credential, scope, allowed addresses and rate windows. Runs
 * endpoints with the audit log around them, and answers repeated requests.
 */
export class Guard implements RouterGuard<Caller> {
  readonly unknownCaller: Caller = { kind: "anonymous", address: "" };

  constructor(private readonly options: GuardOptions) {}

  /**
   * Finds the caller and checks credential and scope, then the rules for every caller. Sessions and
   * shared windows are awaited. Keys are in memory, so their requests create no promise here.
   * Throws `GatewayError`.
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
        headers: context.answerHeaders,
      });
      if (counted !== undefined) return counted.then(() => this.admitKey(endpoint, context));
    }
    return this.admitKey(endpoint, context);
  }

  /**
   * Admits the caller of a call from one endpoint to another. Such calls are not counted here, and
   * those of inference enter their runs.
   */
  admitInner(
    endpoint: GuardedEndpoint,
    context: RequestContext,
    { operator }: InnerCall<Caller>,
  ): Promise<void> | undefined {
    context.caller =
      operator !== undefined && endpoint.access.operator
        ? operator
        : this.credentialOf(endpoint, context, { isInner: true });
    this.checkPlace(endpoint, context);
    return endpoint.counting === "by-handler" ? this.options.runs.enter(context) : undefined;
  }

  /**
   * Admits a live key to an endpoint without its secret: for work that it has asked for before. The
   * address was checked then. Inference here enters its run; what a provider's batch runs does not.
   */
  admitCaller(
    endpoint: GuardedEndpoint,
    context: RequestContext,
    caller: Caller,
  ): Promise<void> | undefined {
    if (caller.kind !== "llm-key") throw invalidKey(context.request.headers, []);
    const { connection } = caller.key;
    if (connection !== undefined) connectedCaller(caller, connection, endpoint.access);
    assertAccepted(caller, endpoint.access);
    assertEndpointAllowed(caller, endpoint);
    context.caller = caller;
    const isRunHere = endpoint.counting === "by-handler" && context.background?.leg === undefined;
    return isRunHere ? this.options.runs.enter(context) : undefined;
  }

  /** Runs an endpoint with its change audited and repeated requests answered. */
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
    const counted =
      endpoint.counting === "by-handler" ? tellingRuns(this.options.runs, work) : work;
    const change = isAudited(endpoint)
      ? (context: RequestContext) =>
          auditChange(auditing, { endpoint, context }, () => counted(context))
      : counted;
    if (!endpoint.idempotent) return change;
    return (context, bodyText) =>
      answerOnce(
        idempotentAnswers,
        { context, bodyText, onError: onAnswerError },
        async () => await change(context),
      );
  }

  /** Returns the headers of the rate window that a caller's requests count in. */
  windowHeaders(caller: Caller): Record<string, string> {
    return describeWindow(this.options.counters, caller);
  }

  /** Admits a caller with a key, or without any credential. */
  private admitKey(endpoint: GuardedEndpoint, context: RequestContext): Promise<void> | undefined {
    try {
      context.caller = this.credentialOf(endpoint, context);
    } catch (refusal) {
      const { headers } = context.request;
      const inQuery = endpoint.access.keyInQuery ? context.query.get("key") : null;
      const learned =
        refusal instanceof RefusedCredentialError &&
        this.options.runs.learn(presentedSecrets(headers, inQuery));
      return learned
        ? this.admitLearned(endpoint, context, { refusal, learned })
        : this.refuse(refusal, context);
    }
    return this.enter(endpoint, context);
  }

  /** Admits the key of a run that another gateway opened. */
  private async admitLearned(
    endpoint: GuardedEndpoint,
    context: RequestContext,
    { refusal, learned }: { refusal: unknown; learned: Promise<boolean> },
  ): Promise<void> {
    if (!(await learned)) return this.refuse(refusal, context);
    context.caller = this.credentialOf(endpoint, context);
    return this.enter(endpoint, context);
  }

  private credentialOf(
    endpoint: GuardedEndpoint,
    context: RequestContext,
    { isInner } = { isInner: false },
  ): Caller {
    const { directory, clock } = this.options;
    const { headers } = context.request;
    const doorKey = this.doorKeyOf(endpoint, context);
    return authenticate({
      headers,
      endpoint,
      directory,
      nowMs: clock.nowMs(),
      context,
      isInner,
      doorKey,
    });
  }

  /** Returns the key of the endpoint's door, where this caller has it. */
  private doorKeyOf(
    { access: { door } }: GuardedEndpoint,
    context: RequestContext,
  ): string | undefined {
    const { doors, isProxyTrusted = false } = this.options;
    if (door === undefined || doors === undefined) return undefined;
    const { request } = context;
    return doorKeyFor(doors, { door, address: context.clientAddress(), request, isProxyTrusted });
  }

  /**
   * Refuses a caller. Only refused credentials are counted: the lookup came first, so a valid one
   * never is.
   */
  private refuse(refusal: unknown, context: RequestContext): Promise<never> {
    if (!(refusal instanceof RefusedCredentialError)) throw refusal;
    return countRefusedCredential(this.options.counters, {
      refusal,
      address: context.clientAddress(),
      headers: context.answerHeaders,
    });
  }

  /** Checks the rules for every caller: allowed addresses, and endpoints of operators. */
  private checkPlace(endpoint: GuardedEndpoint, context: RequestContext): void {
    const { security, operatorWorkspaceId } = this.options;
    if (!endpoint.anywhere) checkAddress(security.allowlist, context);
    if (endpoint.access.operator) requireOperator(context.caller, operatorWorkspaceId);
  }

  /**
   * Checks an authenticated caller's address, and counts the request where the endpoint is counted
   * at the door.
   */
  private enter(endpoint: GuardedEndpoint, context: RequestContext): Promise<void> | undefined {
    this.checkPlace(endpoint, context);
    const { directory, clock, counters } = this.options;
    const { caller, answerHeaders: headers } = context;
    if (caller.kind !== "anonymous" && caller.kind !== "session")
      directory.uses.note(caller.key.id, clock.nowMs());
    if (endpoint.counting === "none") headers.share(describeWindow(counters, caller));
    if (endpoint.counting === "by-handler") return this.options.runs.enter(context);
    if (endpoint.counting !== "at-door") return undefined;
    return countRequest(counters, { caller, rateClass: "account", headers });
  }
}

/** Lets requests into their runs, and tells their callers what is left. */
export interface RunDoor {
  /**
   * Puts the runs of secrets in force that other gateways opened; undefined where none may be a
   * run's.
   */
  learn(secrets: readonly string[]): Promise<boolean> | undefined;
  /**
   * Lets a request into the run of its key, or into the one that its header names, and makes the
   * run its caller. Undefined where it belongs to none.
   */
  enter(context: RequestContext): Promise<void> | undefined;
  /** Returns whether a request is in a run. */
  isIn(context: RequestContext): boolean;
  /** Adds the headers that tell what is left of a request's run. */
  tell(context: RequestContext, answer: Promise<Answer>): Promise<Answer>;
}

const tellingRuns =
  (runs: RunDoor, work: (context: RequestContext) => Answer | Promise<Answer>): typeof work =>
  (context) => {
    if (!runs.isIn(context)) return work(context);
    return runs.tell(context, (async () => await work(context))());
  };

const needsSession = (): GatewayError =>
  new GatewayError(
    "unauthorized",
    "This endpoint is for people who have signed in; keys are for programs.",
    { metadata: { hint: "Sign in with POST /api/auth/sign-in/email and send the cookie." } },
  );

/**
 * Builds the refusal of a request without a key. A browser sends its session to every endpoint, so
 * where sessions are not accepted the message names what is.
 */
function missingKey(
  headers: RequestHeaders,
  { session, managementScope }: AccessRule,
): GatewayError {
  if (session && managementScope === undefined)
    return new GatewayError("authentication_required", "Sign in to use this endpoint.");
  if (!session && sessionCookieOf(headers.get("cookie")) !== undefined) {
    const message = `This endpoint needs an LLM key (prefix ${brand.llmKeyFamilyPrefix}); sessions are for administration.`;
    return new GatewayError("unauthorized", message, {
      metadata: { hint: "Create an LLM key with POST /keys and send it as Authorization: Bearer." },
    });
  }
  return new GatewayError(
    "missing_api_key",
    "No API key was sent. Send one as `Authorization: Bearer <key>`.",
  );
}

/**
 * Admits a connected app, which may use only what its person granted. Where an endpoint names a
 * scope, that scope decides; inference needs `inference`. Throws `insufficient_scope`, or
 * `unauthorized` where connected apps are not accepted.
 */
function connectedCaller(
  credential: LlmKeyCaller,
  connection: KeyConnection,
  access: AccessRule,
): Caller {
  const { managementScope, llmKey, ofItself, operator, session } = access;
  if (ofItself || access.anonymous) return credential;
  const connected: Caller = {
    kind: "connection",
    key: credential.key,
    connection,
    workspace: credential.workspace,
  };
  if (access.anyScope) return connected;
  if (access.keyHeldDirectly || operator || (session && managementScope === undefined)) {
    throw new GatewayError(
      "insufficient_scope",
      "Connected apps may not use this endpoint. Use a key of your own, or sign in.",
    );
  }
  const scope = managementScope ?? "inference";
  if (!coversScope(connection.scopes, scope)) {
    throw new GatewayError(
      "insufficient_scope",
      `This app was not granted the scope ${scope}. Connect it again and grant it.`,
      { metadata: { required_scope: scope, granted_scopes: [...connection.scopes] } },
    );
  }
  return llmKey ? credential : connected;
}

/**
 * Throws for an access token of the other audience, so that the MCP server's tokens cannot be used
 * at the API, nor the API's at the MCP server (RFC 8707; MCP, "Token Audience Binding").
 */
function assertAudience(
  { audience }: KeyConnection,
  { protectedResource }: Pick<GuardedEndpoint, "protectedResource">,
): void {
  if (audience === undefined || (audience === "mcp") === (protectedResource === true)) return;
  const places = ["the MCP server", "the API"];
  const [own, other] = audience === "mcp" ? places : places.toReversed();
  throw new GatewayError(
    "unauthorized",
    `This access token is for ${own} alone. Connect the app again for the resource of ${other}, or without resource.`,
  );
}

function assertAccepted(credential: Credential, access: AccessRule): void {
  if (access.session && access.managementScope === undefined && !access.anonymous)
    throw needsSession();
  if (credential.kind === "llm-key") {
    if (access.llmKey || access.anonymous) return;
    if (access.llmKeysMiss !== undefined) throw new GatewayError("not_found", access.llmKeysMiss);
    throw new GatewayError(
      "unauthorized",
      `This endpoint needs a management key (prefix ${brand.managementKeyFamilyPrefix}); LLM keys are for inference.`,
      {
        metadata: {
          hint: `Create a management key with the scope ${access.managementScope ?? "of this endpoint"} and send it as Authorization: Bearer.`,
        },
      },
    );
  }
  if (access.anyScope) return;
  if (access.managementScope !== undefined) {
    if (coversScope(credential.key.scopes, access.managementScope)) return;
    throw new GatewayError(
      "insufficient_scope",
      `This management key lacks the scope ${access.managementScope}.`,
      { metadata: { required_scope: access.managementScope } },
    );
  }
  if (access.anonymous) return;
  throw new GatewayError(
    "unauthorized",
    `This endpoint needs an LLM key (prefix ${brand.llmKeyFamilyPrefix}); management keys are for administration.`,
    {
      metadata: { hint: "Create an LLM key with POST /keys and send it as Authorization: Bearer." },
    },
  );
}

type EndpointPath = Pick<Endpoint<never>, "base" | "path">;

function assertEndpointAllowed(credential: Credential, endpoint: EndpointPath): void {
  if (credential.kind !== "llm-key") return;
  for (const { allowedEndpoints: allowed } of keysOf(credential)) {
    if (allowed === null || allowed.length === 0) continue;
    const pattern = asPattern(endpoint.path);
    if (allowed.some((entry) => asPattern(entry) === pattern)) continue;
    throw new GatewayError(
      "insufficient_scope",
      `This key may not call ${shownPath(endpoint)}; its allowed_endpoints do not list it.`,
      { metadata: { allowed_endpoints: allowed } },
    );
  }
}

const anonymousIn = (context: Pick<RequestContext, "clientAddress">): Caller => ({
  kind: "anonymous",
  address: context.clientAddress(),
});

/**
 * Returns the credential for the first valid secret. Anthropic's clients may send a key of their
 * own in one header and the gateway's in the other.
 */
function liveCredential(
  secrets: readonly string[],
  { directory, nowMs }: { directory: CredentialDirectory; nowMs: number },
): Credential | undefined {
  for (const secret of secrets) {
    const found = directory.find(secret);
    if (found !== undefined && isLive(found, nowMs)) return found;
  }
  return undefined;
}

/**
 * Returns the caller, if it may use the endpoint. Denies by default: an access rule that names no
 * credential family refuses every caller.
 */
function authenticate(options: {
  headers: RequestHeaders;
  endpoint: EndpointPath & Pick<GuardedEndpoint, "access" | "protectedResource">;
  directory: CredentialDirectory;
  nowMs: number;
  /** Provides the address that a request without a credential is counted by. */
  context: Pick<RequestContext, "clientAddress" | "query">;
  /** Whether another endpoint calls, whose caller was admitted there. */
  isInner: boolean;
  /** The key of a caller that sends none. */
  doorKey: string | undefined;
}): Caller {
  const { access } = options.endpoint;
  if (access.open) return anonymousIn(options.context);
  const inQuery = access.keyInQuery ? options.context.query.get("key") : null;
  const bearer = bearerSecret(options.headers);
  let credential = bearer === null ? undefined : liveCredential([bearer], options);
  if (credential === undefined) {
    const sent = presentedSecrets(options.headers, inQuery);
    const secrets = sent.length === 0 && options.doorKey !== undefined ? [options.doorKey] : sent;
    if (secrets.length === 0) {
      if (access.anonymous) return anonymousIn(options.context);
      throw missingKey(options.headers, access);
    }
    credential = liveCredential(secrets, options);
    if (credential === undefined) throw invalidKey(options.headers, secrets);
  }
  const connection = credential.kind === "llm-key" ? credential.key.connection : undefined;
  if (connection !== undefined && !options.isInner) assertAudience(connection, options.endpoint);
  if (credential.kind === "llm-key" && connection !== undefined)
    return connectedCaller(credential, connection, access);
  assertAccepted(credential, access);
  if (!access.ofItself) assertEndpointAllowed(credential, options.endpoint);
  return credential;
}
