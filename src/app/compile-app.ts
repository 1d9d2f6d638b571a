import type { Account } from "../account/open-account.ts";
import type { AppSettings } from "./app-settings.ts";
import type { AppTools } from "./app-tools.ts";
import type { Dependencies } from "../endpoints/dependencies.ts";
import { endpoints } from "../endpoints/index.ts";
import { screenAtRoot } from "../endpoints/pages/dashboard.ts";
import { errorPage } from "../endpoints/pages/error-page.ts";
import { clientAddressReader, encryptionReader } from "../http/client-address.ts";
import type { RateCounters } from "../http/count-request.ts";
import { compileRoutes } from "../http/router.ts";
import { observeErrors, observeRequests } from "./observe.ts";
import type { Clock } from "../platform/lib/clock.ts";

/** The routes of the endpoint table, guarded, counted and watched. */
export function compileApp(
  settings: AppSettings,
  {
    tools,
    people,
    ...parts
  }: Pick<
    Account,
    "directory" | "security" | "people" | "operatorWorkspaceId" | "idempotentAnswers"
  > & {
    dependencies: Dependencies;
    counters: RateCounters;
    clock: Clock;
    tools: AppTools;
  },
): ReturnType<typeof compileRoutes> {
  const observe = observeErrors({ ...tools, clock: parts.clock });
  const { refused } = parts.dependencies.insights;
  const addressOf = clientAddressReader(settings.trustProxy);
  const encrypted = encryptionReader(settings.trustProxy);
  return compileRoutes({
    ...parts,
    endpoints,
    errorPage,
    pageElsewhere: (context) => screenAtRoot(context, parts.dependencies),
    sessions: { reader: people.reader, publicUrl: settings.publicUrl },
    clientAddress: (request) => addressOf(request, request.peerAddress),
    isEncrypted: (request) => encrypted(request, request.peerAddress),
    onError(error, context) {
      observe(error, context);
      const { caller } = context;
      if (caller.kind === "llm-key")
        refused.note({ workspaceId: caller.workspace.id, keyId: caller.key.id, code: error.code });
    },
    onAnswerError: (error) =>
      tools.logger.error(
        { err: error },
        "the answer of a request with an idempotency key could not be kept",
      ),
    onAuditError: (error) =>
      tools.logger.error(
        { err: error },
        "the outcome of a change could not be written to the audit log",
      ),
    ...observeRequests(tools.metrics),
  });
}
