import {
  budgetKeyIdsOf,
  customerOfKey,
  teamOfKey,
  type LlmKeyCaller,
} from "../../identity/keys/caller.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import { budgetTags, type CustomerShare, type Sender } from "./budget.ts";

/** A request, as far as the budgets that count it follow from it. */
interface CountedRequest {
  caller: LlmKeyCaller;
  /** The customer that it names; that of its key comes first. */
  customer?: string | undefined;
  /** Its tags. */
  metadata?: Readonly<Record<string, unknown>> | undefined;
  /** The models, tools or routes that cost credits, and their providers. */
  models: readonly string[];
  providers: readonly string[];
  /** When it was admitted: the time that its id begins with. */
  atMs: number;
}

type SenderScopes = Pick<LedgerPort, "senderScopesOf" | "windowsOf">;

/** Returns the budget tags that a request counts towards. */
export function countedTags(
  request: CountedRequest,
  { ledger, share }: { ledger: SenderScopes; share: CustomerShare | undefined },
): string[] {
  return tagsWith(request, { senders: countedSenders(request, ledger), share });
}

/**
 * Returns whom a request counts towards beside its key, models and providers: its team, the customer
 * and the tags that budgets of its workspace count, and periods of budgets in a time zone.
 */
export function countedSenders(request: CountedRequest, ledger: SenderScopes): readonly Sender[] {
  const { caller, atMs } = request;
  const senders = sendersOf(request, ledger);
  const windows = ledger.windowsOf(caller.workspace.id, {
    tags: () => tagsWith(request, { senders, share: undefined }),
    atMs,
  });
  return windows.length === 0 ? senders : [...senders, ...windows];
}

const tagsWith = (
  { caller, models, providers }: CountedRequest,
  parts: { senders: readonly Sender[]; share: CustomerShare | undefined },
): string[] =>
  budgetTags({
    keyIds: budgetKeyIdsOf(caller),
    userId: caller.key.creatorUserId,
    models,
    providers,
    ...parts,
  });

function sendersOf(
  { caller, customer, metadata }: CountedRequest,
  ledger: SenderScopes,
): readonly Sender[] {
  const scopes = ledger.senderScopesOf(caller.workspace.id);
  const team = teamOfKey(caller);
  if (scopes === undefined && team === undefined) return noSenders;
  const named = (scopes ?? []).flatMap((scope) => {
    const value =
      scope === "customer"
        ? (customerOfKey(caller) ?? customer)
        : metadata?.[scope.slice("tag:".length)];
    const isValue = typeof value === "string" || typeof value === "number";
    // Half a character, such as a cut one, cannot be written into the name of a sum.
    return isValue && value !== ""
      ? [{ scope, subject: String(value).slice(0, 200).toWellFormed() }]
      : [];
  });
  return team === undefined ? named : [{ scope: "team", subject: team }, ...named];
}

const noSenders: readonly Sender[] = [];
