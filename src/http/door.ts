import { requireOperator } from "../account/people/operator.ts";
import { authenticate } from "./authenticate.ts";
import { checkAddress } from "./check-address.ts";
import { countAddress, countRequest, describeWindow } from "./count-request.ts";
import type { Endpoint } from "./endpoint.ts";
import { countRefusedCredential, RefusedCredentialError } from "./refused-credential.ts";
import type { RequestContext } from "./request-context.ts";
import type { Compiling } from "./router-options.ts";
import { admitSession, decidingCookie } from "./session-door.ts";

/** A request that has come, and what the door needs to judge it. */
export interface Arrival<Dependencies> {
  context: RequestContext;
  options: Compiling<Dependencies>;
}

/** The guard: credential and scope, then what holds for every caller. Sessions and shared windows are waited for; keys are in memory. */
export function admit<Dependencies>(
  endpoint: Endpoint<Dependencies>,
  arrival: Arrival<Dependencies>,
): Promise<void> | undefined {
  const { context, options } = arrival;
  const { request } = context;
  const { access } = endpoint;
  const cookie = decidingCookie(request.headers, access);
  if (cookie !== undefined) {
    return admitSession(options.sessions, {
      request,
      cookie,
      access,
      nowMs: options.clock.nowMs(),
    }).then(
      (caller) => {
        context.caller = caller;
        return enter(endpoint, arrival);
      },
      (refusal: unknown) => refuse(refusal, arrival),
    );
  }
  if (typeof endpoint.counting === "object") {
    const counted = countAddress(options.counters, {
      address: context.clientAddress(),
      tier: endpoint.counting.perAddress,
      headers: context.headers,
    });
    if (counted !== undefined) return counted.then(() => admitKey(endpoint, arrival));
  }
  return admitKey(endpoint, arrival);
}

/** The guard for those who come with a key, or with no credential at all. */
function admitKey<Dependencies>(
  endpoint: Endpoint<Dependencies>,
  arrival: Arrival<Dependencies>,
): Promise<void> | undefined {
  const { context, options } = arrival;
  try {
    context.caller = authenticate({
      headers: context.request.headers,
      endpoint,
      directory: options.directory,
      nowMs: options.clock.nowMs(),
      context,
    });
  } catch (refusal) {
    return refuse(refusal, arrival);
  }
  return enter(endpoint, arrival);
}

/** Refuses a caller. Only a credential that opens nothing is counted: the look-up came first, so a good one never is. */
function refuse<Dependencies>(
  refusal: unknown,
  { context, options }: Arrival<Dependencies>,
): Promise<never> {
  if (!(refusal instanceof RefusedCredentialError)) throw refusal;
  return countRefusedCredential(options.counters, {
    refusal,
    address: context.clientAddress(),
    headers: context.headers,
  });
}

/** What holds for every caller wherever a request comes from: allowed addresses, and who runs the service. */
export function checkPlace<Dependencies>(
  endpoint: Endpoint<Dependencies>,
  { context, options }: Arrival<Dependencies>,
): void {
  if (!endpoint.anywhere) checkAddress(options.security.allowlist, context);
  if (endpoint.access.operator) requireOperator(context.caller, options.operatorWorkspaceId);
}

/** What holds for every caller at the door: its place and, where the door counts, the rate window. */
function enter<Dependencies>(
  endpoint: Endpoint<Dependencies>,
  arrival: Arrival<Dependencies>,
): Promise<void> | undefined {
  checkPlace(endpoint, arrival);
  const { context, options } = arrival;
  const { caller } = context;
  if (caller.kind !== "anonymous" && caller.kind !== "session")
    options.directory.uses.note(caller.key.id, options.clock.nowMs());
  if (endpoint.counting === "none")
    Object.assign(context.headers, describeWindow(options.counters, caller));
  if (endpoint.counting !== "at-door") return undefined;
  return countRequest(options.counters, {
    caller: context.caller,
    rateClass: "account",
    headers: context.headers,
  });
}
