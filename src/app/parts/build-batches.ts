import { randomUUID } from "node:crypto";
import { shownBatchId } from "../../batches/batch.ts";
import type { ModelRefusal } from "../../batches/input-reader.ts";
import type { LineOutcome, LineRequest, RunLine } from "../../batches/line-form.ts";
import { type Batches, openBatches } from "../../batches/open-batches.ts";
import { buildProviderBatches } from "./build-provider-batches.ts";
import { type BudgetScope, isSenderScope } from "../../billing/budgets/budget.ts";
import type { LedgerPort } from "../../billing/ledger/ledger-port.ts";
import type { UpstreamClient } from "../../inference/upstream/upstream-client.ts";
import type { Files } from "../../files/open-files.ts";
import type { BackgroundAnswer } from "../../http/inner-call.ts";
import type { compileRoutes } from "../../http/router.ts";
import { type Caller, customerOfKey, type LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { CatalogModel, CatalogSnapshot } from "../../inference/catalog/model.ts";
import type { JsonObject } from "../../inference/canonical/json.ts";
import { isModelAllowed, resolveModel } from "../../inference/routing/resolve-models.ts";
import { chatOfCompletion, completionOfChat } from "../../inference/surfaces/completion-shaper.ts";
import { parseRange } from "../../platform/kernel/network/address-range.ts";
import { WebhookSender } from "../../platform/notify/webhook-sender.ts";
import { WebhookSecrets } from "../../platform/notify/webhook-secrets.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Account } from "../open-account.ts";
import { hasSeveralGateways, type Shared } from "../open-shared.ts";
import type { AppSettings } from "../settings-of.ts";
import type { AppTables } from "./build-storage.ts";

type RunInBackground = ReturnType<typeof compileRoutes<unknown, Caller>>["runInBackground"];

/** The batches, and how they are given the routes, which are compiled later. */
export interface BuiltBatches {
  batches: Batches;
  connect(run: RunInBackground): void;
}

/** What batches need of the account. */
type BatchAccount = Pick<
  Account,
  "directory" | "ledger" | "providerKeyVault" | "providerKeys" | "mailer" | "people"
>;

/** The version that requests in Anthropic's dialect name. */
const anthropicVersion = { "anthropic-version": "2023-06-01" };

/** Reasons of refusals for want of money that no money ends. */
const lastingReasons: ReadonlySet<unknown> = new Set([
  "customer_suspended",
  "too_many_customers",
  "run_requests_reached",
  "run_ended",
  "run_expired",
]);

/** Returns whether money for the key, its workspace or its customer would let a line be served. */
function waitsForMoney({ fault, status, code, metadata }: GatewayError, caller: LlmKeyCaller) {
  if (fault !== "client" || (status !== 402 && code !== "spend_limit_reached")) return false;
  const { reason, budget_scope: scope } = metadata;
  if (lastingReasons.has(reason)) return false;
  // Lines of other senders are not refused with it.
  const isOfSender =
    reason === "customer_limit_reached" ||
    (reason === "budget_reached" && isSenderScope(scope as BudgetScope));
  return !isOfSender || customerOfKey(caller) !== undefined;
}

const outcomeOf = (
  { status, traceId, text, error }: BackgroundAnswer,
  caller: LlmKeyCaller,
): LineOutcome => ({
  status,
  requestId: traceId,
  text,
  mayRetry: error?.retry === true && status !== 402,
  retryAfterMs:
    error?.retryAfterSeconds === undefined ? undefined : error.retryAfterSeconds * 1_000,
  lacksMoney: error !== undefined && waitsForMoney(error, caller),
});

/** Returns the answer to a line as its endpoint writes it; plain completions are answered as chats. */
function answerTextOf(endpoint: string, bodyText: string, text: string): string {
  if (endpoint !== "/v1/completions") return text;
  const { prompt } = chatOfCompletion(JSON.parse(bodyText) as JsonObject);
  return JSON.stringify(completionOfChat(JSON.parse(text) as JsonObject, prompt));
}

/** The lines that run now, by the trace ids of their requests. */
class RunningLines {
  private readonly traceIds = new Set<string>();

  /** Returns how many of them have a hold. */
  heldBy(ledger: Pick<LedgerPort, "hasHold">): number {
    let count = 0;
    for (const traceId of this.traceIds) if (ledger.hasHold(`gen_${traceId}`)) count += 1;
    return count;
  }

  /** Returns a function that runs lines as requests of their keys, in rate windows of their own. */
  runner(run: () => RunInBackground): RunLine {
    return (request) => this.run(run(), request);
  }

  private async run(
    run: RunInBackground,
    { caller, batch, bodyText, rowOf, leg }: LineRequest,
  ): Promise<LineOutcome> {
    const { endpoint } = batch;
    let id = "";
    try {
      const answer = await run({
        endpoint: `POST ${endpoint.replace(/^\/v1/, "")}`,
        caller,
        headers: endpoint === "/v1/messages" ? anthropicVersion : {},
        bodyText,
        work: {
          pool: "batch",
          leg,
          batchId: shownBatchId(batch),
          began: (traceId) => {
            id = traceId;
            this.traceIds.add(traceId);
          },
          rowOf: (answer) =>
            rowOf(
              answer && {
                status: 200,
                requestId: answer.traceId,
                text: answerTextOf(endpoint, bodyText, answer.text),
                costNano: Number(answer.costNano),
              },
            ),
        },
      });
      return outcomeOf(answer, caller);
    } finally {
      this.traceIds.delete(id);
    }
  }
}

/** Returns why a key cannot use a model by that name; a preset is looked up when a line runs. */
function refuseModel(
  catalog: CatalogSnapshot,
  { key, parent }: LlmKeyCaller,
  id: string,
): ModelRefusal | undefined {
  if (id.startsWith("@")) return undefined;
  const model = modelNamed(catalog, id);
  if (model === undefined)
    return {
      code: "model_not_found",
      message: `The provided model '${id.slice(0, 200)}' is not supported by the Batch API.`,
    };
  const isAllowed = [key, parent].every(
    (each) => each === undefined || isModelAllowed(each.allowedModels, model),
  );
  return isAllowed
    ? undefined
    : { code: "invalid_model", message: `The key of this batch may not use the model '${id}'.` };
}

/** Returns a model by its id, with or without shortcuts; undefined where there is none. */
function modelNamed(catalog: CatalogSnapshot, id: string): CatalogModel | undefined {
  try {
    return resolveModel(catalog, id).model;
  } catch (error) {
    if (error instanceof GatewayError) return undefined;
    throw error;
  }
}

/** Returns by what notices of batches are sent. */
function noticesOf(
  { webhookNetworks = [], encryptionKey }: AppSettings,
  { account: { mailer, people }, clock }: { account: BatchAccount; clock: Clock },
): Parameters<typeof openBatches>[0]["notices"] {
  const allowed = webhookNetworks.flatMap((range) => parseRange(range) ?? []);
  return {
    webhooks: new WebhookSender({ guard: { allowed }, clock }),
    secrets: new WebhookSecrets(encryptionKey),
    mailer,
    emailsOf: async (workspaceId) =>
      (await people.users.peopleIn(workspaceId)).map(({ email }) => email),
  };
}

/** Builds the batches of workspaces, whose lines run as requests of this gateway. */
export function buildBatches(
  settings: AppSettings,
  {
    account,
    storage,
    shared,
    catalog,
    files,
    upstream,
    clock,
    logger,
  }: {
    account: BatchAccount;
    upstream: UpstreamClient;
    storage: Storage<AppTables>;
    shared: Shared | undefined;
    catalog(workspaceId?: string): CatalogSnapshot;
    files: Files;
    clock: Clock;
    logger: Logger;
  },
): BuiltBatches {
  let connected: RunInBackground | undefined;
  const running = new RunningLines();
  const { concurrency = 8, native = "auto", pollSeconds = 60 } = settings.batch ?? {};
  const { ledger } = account;
  const provider =
    native === "never"
      ? undefined
      : buildProviderBatches({
          ledger,
          directory: account.directory,
          database: withTables(storage.database),
          upstream,
          clock,
          catalog,
          providerKeys: account.providerKeys,
          isShared: shared !== undefined,
          pollMs: pollSeconds * 1_000,
        });
  const batches = openBatches({
    provider,
    notices: noticesOf(settings, { account, clock }),
    database: withTables(storage.database),
    commits: storage.commits,
    kind: storage.kind,
    nodeId: shared?.nodeId ?? randomUUID(),
    files,
    vault: account.providerKeyVault,
    clock,
    run: running.runner(() => {
      if (connected === undefined) throw new Error("the routes are not compiled yet");
      return connected;
    }),
    callerOf: (keyId) => account.directory.liveLlmKey(keyId, clock.nowMs()),
    refuseModel: (caller, model) => refuseModel(catalog(caller.workspace.id), caller, model),
    concurrency,
    requestsInProgress: () =>
      ledger.openHoldCount - (provider?.holds.size ?? 0) - running.heldBy(ledger),
    isShared: hasSeveralGateways(settings),
    onError: (error) => logger.error({ err: error }, "a batch could not be worked on"),
  });
  return { batches, connect: (run) => (connected = run) };
}
