import type { KeyUse } from "../../../byok/provider-key-usage.ts";
import type { ProviderKeys } from "../../../byok/provider-keys.ts";
import type { CustomerShare } from "../../../billing/budgets/budget.ts";
import { countedSenders, countedTags } from "../../../billing/budgets/counted-request.ts";
import { shortageFacts } from "../../../billing/budgets/refusal-facts.ts";
import {
  assertServed,
  noteShare,
  shareOfRequest,
} from "../../../billing/customers/customer-book.ts";
import type { NotReserved, TightHold } from "../../../billing/ledger/hold-rule.ts";
import type { LedgerPort } from "../../../billing/ledger/ledger-port.ts";
import {
  spendingKeyOf,
  spendingParentOf,
  teamOfKey,
  type LlmKeyCaller,
} from "../../../identity/keys/caller.ts";
import {
  generationRow,
  type GenerationRecord,
  singleCallRecord,
  timeOfId,
} from "../../../insights/generation-record.ts";
import { customerAdds, senderAdds, usageAdds } from "../../../insights/usage/usage-rollup.ts";
import type { Clock } from "../../../platform/kernel/clock.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { usdFromNano, usdPerMillionText, usdText } from "../../../platform/kernel/money.ts";
import type { Provider } from "../../catalog/model.ts";
import { AbortScope } from "../../upstream/abort-scope.ts";
import { upstreamTarget, type UpstreamClient } from "../../upstream/upstream-client.ts";
import { UpstreamFailure } from "../../upstream/upstream-failure.ts";
import { noteOwnKey, type PassedResponse, takeCredential } from "./passed-credential.ts";
import type { PassedTarget } from "./passthrough-route.ts";
import type { UpstreamResponse } from "../../upstream/response-parser.ts";

/** A request that is passed on to a provider. */
interface PassedCall {
  caller: LlmKeyCaller;
  /** The customer that the request names; that of its key comes first. */
  customer: string | undefined;
  /** The `gen_` id of its hold and of its record. */
  generationId: string;
  provider: Provider;
  target: PassedTarget;
  method: string;
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
  signalOf: () => AbortSignal;
  userAgent: string | undefined;
}

/** A request with the credential that it is sent with. */
interface SentCall extends PassedCall {
  /** The own key of the workspace that it is, which pays for it; undefined for the gateway's. */
  ownKey: KeyUse | undefined;
}

interface PassingDependencies {
  ledger: LedgerPort;
  providerKeys: ProviderKeys;
  upstream: UpstreamClient;
  clock: Clock;
}

/** An answer whose body is still to be read, and what it was charged. */
interface PassedAnswer {
  response: PassedResponse;
  chargedNano: bigint;
  /** The provider with the credential that was sent. */
  provider: Provider;
  credentialSource: "platform" | "own_byok";
}

const surface = "passthrough";

/** Returns the name under which analytics count a route. */
const recordedRoute = ({ provider, target }: PassedCall): string =>
  `${provider.id}${target.route.path}`;

const modelsOf = (call: PassedCall): string[] => [recordedRoute(call)];

/** Returns a call as budgets count it. */
const countedOf = (call: PassedCall) => ({
  ...call,
  models: modelsOf(call),
  providers: [call.provider.id],
  atMs: timeOfId(call.generationId),
});

const tagsOf = (
  ledger: LedgerPort,
  { call, share }: { call: PassedCall; share: CustomerShare | undefined },
): string[] => countedTags(countedOf(call), { ledger, share });

const shareOf = (ledger: LedgerPort, call: PassedCall): CustomerShare | undefined =>
  shareOfRequest(ledger, { ...call, models: modelsOf(call) });

/**
 * Passes a request on: holds its price, sends it with the workspace's own key or the gateway's
 * credential, and charges it when the provider has answered. What the provider refuses costs
 * nothing, nor does what an own key pays for. Throws `GatewayError`.
 */
export async function passOn(deps: PassingDependencies, asked: PassedCall): Promise<PassedAnswer> {
  const { generationId, provider, target, caller } = asked;
  try {
    const credentialed = takeCredential(deps.providerKeys, {
      provider,
      workspaceId: caller.workspace.id,
      generationId,
      priceNano: target.route.priceNanoUsd,
    });
    return await sendAndSettle(deps, { ...asked, ...credentialed });
  } finally {
    deps.providerKeys.release(generationId);
  }
}

async function sendAndSettle(deps: PassingDependencies, call: SentCall): Promise<PassedAnswer> {
  await hold(deps, call);
  const startedMs = deps.clock.monotonicMs();
  let response: UpstreamResponse;
  try {
    response = await send(deps, call);
  } catch (error) {
    await settle(deps, call, { startedMs, status: null });
    if (!(error instanceof UpstreamFailure)) throw error;
    throw new GatewayError("bad_gateway", "The provider could not be reached, or did not answer.", {
      cause: error,
    });
  }
  try {
    const { ownKey, provider } = call;
    const chargedNano = await settle(deps, call, { startedMs, status: response.status });
    if (ownKey === undefined)
      return { response, chargedNano, provider, credentialSource: "platform" };
    const noted = await noteOwnKey(deps.providerKeys, ownKey, response);
    return { response: noted, chargedNano, provider, credentialSource: "own_byok" };
  } catch (error) {
    response.abort();
    throw error;
  }
}

/** Returns what a call costs its workspace, and what its own key pays, in nano-USD. */
const pricesOf = ({ ownKey, target: { route } }: SentCall) =>
  ownKey === undefined
    ? { priceNano: route.priceNanoUsd, byokNano: 0n }
    : { priceNano: 0n, byokNano: route.priceNanoUsd };

/** A request is paid whole or not sent. */
const wholeOrNothing = (nano: bigint) => (): TightHold => ({
  beginNano: nano,
  leastNano: nano,
  takesShare: false,
});

async function hold({ ledger }: PassingDependencies, call: SentCall): Promise<void> {
  const { caller, generationId } = call;
  assertServed(ledger, call);
  const { priceNano, byokNano } = pricesOf(call);
  const share = shareOf(ledger, call);
  const outcome = await ledger.reserve({
    holdId: generationId,
    workspaceId: caller.workspace.id,
    ceilingNano: priceNano,
    byokNano,
    tight: wholeOrNothing(priceNano),
    byokTight: wholeOrNothing(byokNano),
    ...spendingKeyOf(caller.key),
    parent: spendingParentOf(caller),
    tags: () => tagsOf(ledger, { call, share }),
  });
  if (!outcome.ok) throw unpaid(call, outcome);
}

function send({ upstream }: PassingDependencies, call: PassedCall): Promise<UpstreamResponse> {
  const { provider, target, method, headers, body, signalOf } = call;
  const { name, prefix } = provider.credentialHeader;
  const sent = upstreamTarget(
    target.url,
    {
      "user-agent": "switchyard",
      ...provider.headers,
      ...(provider.apiKey ? { [name]: prefix + provider.apiKey } : {}),
    },
    provider,
  );
  const abortScope = new AbortScope(signalOf, { aborts: true });
  abortScope.listen();
  const { timeouts } = provider;
  const own = new Set(["user-agent", name, ...Object.keys(provider.headers ?? {})]);
  return upstream.send({
    target: { ...sent, headPrefix: sent.headPrefix.replace(/^POST /, `${method} `) },
    body: body.byteLength === 0 ? "" : [body],
    headers: Object.fromEntries(
      Object.entries(headers).filter(([header]) => !own.has(header.toLowerCase())),
    ),
    connectTimeoutMs: timeouts.connectMs,
    timeouts: {
      firstTokenMs: timeouts.totalMs,
      idleMs: timeouts.totalMs,
      totalMs: timeouts.totalMs,
    },
    abortScope,
  });
}

/** Charges the hold where the provider has served, and leaves a record. */
async function settle(
  { ledger, providerKeys, clock }: PassingDependencies,
  call: SentCall,
  { startedMs, status }: { startedMs: number; status: number | null },
): Promise<bigint> {
  const isServed = status !== null && status < 400;
  const { priceNano, byokNano } = isServed ? pricesOf(call) : { priceNano: 0n, byokNano: 0n };
  const latencyMs = Math.round(clock.monotonicMs() - startedMs);
  const share = shareOf(ledger, call);
  let counted: ReturnType<ProviderKeys["settle"]> | undefined;
  const { durable } = ledger.post({
    holdId: call.generationId,
    amountNano: priceNano,
    byokNano,
    tags: () => tagsOf(ledger, { call, share }),
    alongside: ({ chargedNano, heldNano, chargeId }) => {
      const record = recordOf(call, { status, isServed, latencyMs, chargedNano, heldNano });
      if (chargeId !== undefined) record.detail = { ...record.detail, chargeId };
      noteShare(record, share);
      const team = teamOfKey(call.caller);
      if (team !== undefined) record.detail.team = team;
      const adds = [
        ...usageAdds(record),
        ...senderAdds(record, countedSenders(countedOf(call), ledger)),
        ...customerAdds(record),
      ];
      // Counted once, also where the ledger asks for the rows again.
      if (isServed && call.ownKey !== undefined)
        counted ??= providerKeys.settle(call.generationId, call.ownKey, byokNano);
      return { inserts: [generationRow(record)], adds: [...adds, ...(counted?.adds ?? [])] };
    },
  });
  // A key is given back what the database refused to write.
  durable.catch(() => counted?.undo());
  const posted = await durable;
  return posted.ok ? posted.chargedNano : 0n;
}

function recordOf(
  call: SentCall,
  {
    status,
    isServed,
    latencyMs,
    chargedNano,
    heldNano,
  }: {
    status: number | null;
    isServed: boolean;
    latencyMs: number;
    chargedNano: bigint;
    heldNano: bigint;
  },
): GenerationRecord {
  const { caller, provider, target, generationId, userAgent, ownKey } = call;
  return singleCallRecord({
    id: generationId,
    workspaceId: caller.workspace.id,
    keyId: caller.key.id,
    surface,
    model: recordedRoute(call),
    provider: provider.id,
    upstreamModel: `${call.method} ${target.route.path}`,
    status: isServed ? "served" : "failed",
    upstreamStatus: status,
    credentialSource: ownKey?.source,
    costNanoUsd: chargedNano,
    latencyMs,
    detail: {
      usage: {},
      priceVersion: null,
      price: { request: usdPerMillionText(target.route.priceNanoUsd * 1_000n) },
      holdNanoUsd: String(heldNano),
      ...(ownKey !== undefined && {
        credentialSource: ownKey.source,
        providerKeyId: ownKey.key.id,
      }),
      ...(userAgent !== undefined && { userAgent: userAgent.slice(0, 256) }),
    },
  });
}

function unpaid(call: SentCall, refused: NotReserved): GatewayError {
  const { reason, freeNano, heldNano } = refused;
  if (reason === "away" || reason === "mismatch" || reason === "exists")
    return new GatewayError(
      "service_unavailable",
      "The gateway cannot hold the price of this request at the moment. Try again in a few seconds.",
      { retryAfterSeconds: 2 },
    );
  const price = call.target.route.priceNanoUsd;
  const left = freeNano < 0n ? 0n : freeNano;
  const message =
    `A request to ${recordedRoute(call)} costs ${usdText(price)} USD, and ${usdText(left)} USD is left. ` +
    "Add credits, or raise the limit.";
  return new GatewayError("insufficient_balance", message, {
    metadata: {
      ...shortageFacts(refused),
      worst_case_usd: usdFromNano(price),
      available_usd: usdFromNano(left),
      held_usd: usdFromNano(heldNano),
    },
  });
}
