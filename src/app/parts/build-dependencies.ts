import type { Dependencies } from "../../endpoints/dependencies.ts";
import { withDoor } from "../../endpoints/runs/runs-door.ts";
import { RouteHistory } from "../../inference/catalog/route-history.ts";
import { PriceHistory } from "../../inference/catalog/price-history.ts";
import type { CatalogModel, CatalogSnapshot } from "../../inference/catalog/model.ts";
import { providerTrial } from "../../inference/pipeline/unbilled-requests.ts";
import { findModel } from "../../inference/routing/resolve-models.ts";
import { openConsent } from "../../consent/open-consent.ts";
import { ConfigurationError } from "../../platform/config/configuration-error.ts";
import type { AppTools } from "../app.ts";
import type { Core, Parts } from "./built-parts.ts";
import { openDashboard } from "../dashboard-files.ts";
import { hasSeveralGateways, openEmbeddingCache } from "../open-shared.ts";
import { buildDocuments, buildMcp } from "./build-operations.ts";
import { buildSpools } from "./build-spools.ts";
import type { AppSettings } from "../settings-of.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

/** Returns the dependencies of the endpoints' handlers, each by its name. */
export const buildDependencies = (
  settings: AppSettings,
  { parts, tools }: { parts: Parts; tools: AppTools },
): Dependencies => ({
  ...ofAccount(settings, parts.core),
  ...ofCatalog(settings, parts.core),
  ...ofTools(parts),
  ...buildSpools(settings, parts.core.clock),
  mcp: buildMcp(settings, tools),
  dashboard: openDashboard(settings.dashboard, tools.logger),
  hasOllamaDoor: settings.doors?.["ollama"] !== undefined,
  publicUrl: settings.publicUrl,
  socketLanes: settings.sockets?.lanes ?? 8,
  claudeCode: settings.claudeCode ?? {},
  audioBytesMax: settings.audioBytesMax ?? 200 * 1024 ** 2,
  documents: parts.documents,
  files: parts.files,
  batches: parts.built.batches,
  payments: parts.payments,
  meterEvents: parts.meterEvents,
  inference: parts.core.inference,
  operations: parts.joined.operations,
  entries: parts.core.entries,
  insights: parts.core.insights,
  generations: parts.core.insights.generations,
  clock: parts.core.clock,
  counters: parts.core.counters,
  keyProber: parts.core.keyProber,
  hub: parts.hub.hub,
  conversations: parts.hub.conversations,
  responses: parts.stored.responses,
  background: parts.stored.background,
});

/** Returns what handlers use of the account plane. */
const ofAccount = (settings: AppSettings, { account, storage, shared, clock }: Core) => ({
  ledger: account.ledger,
  ledgerStore: account.ledgerStore,
  statements: account.statements,
  grants: account.grants,
  grantStore: account.grantStore,
  operatorWorkspaceId: account.operatorWorkspaceId,
  customers: account.customers,
  teamEditor: account.teamEditor,
  teamStore: account.teamStore,
  runs: withDoor(account.runs, shared !== undefined && hasSeveralGateways(settings)),
  planCredits: account.planCredits,
  llmKeys: account.llmKeys,
  llmKeyMinter: account.llmKeyMinter,
  llmKeyEditor: account.llmKeyEditor,
  managementKeys: account.managementKeys,
  managementKeyEditor: account.managementKeyEditor,
  directory: account.directory,
  people: account.people,
  userEditor: account.userEditor,
  workspaceEditor: account.workspaceEditor,
  presets: account.presets,
  presetEditor: account.presetEditor,
  aliases: account.aliases,
  aliasEditor: account.aliasEditor,
  providerKeys: account.providerKeys,
  providerKeyDirectory: account.providerKeyDirectory,
  providerKeyEditor: account.providerKeyEditor,
  providerKeyUsage: account.providerKeyUsage,
  idempotentAnswers: account.idempotentAnswers,
  security: account.security,
  budgets: account.budgets,
  referrals: account.referrals,
  consent: openConsent({
    database: withTables(storage.database),
    hasher: account.hasher,
    directory: account.directory,
    llmKeyMinter: account.llmKeyMinter,
    llmKeyEditor: account.llmKeyEditor,
    clock,
    documents: {
      networks: settings.clientDocumentNetworks,
      certificates: settings.extraCertificates,
    },
  }),
});

/** Returns what handlers use of the catalog, and of the tables beside it. */
function ofCatalog(settings: AppSettings, { storage, shared, catalog, inference, clock }: Core) {
  const { endpointPaths, openApiText, documentation, exampleModel } = buildDocuments(
    settings,
    catalog.snapshot,
  );
  return {
    routeHistory: new RouteHistory({ database: withTables(storage.database), clock }),
    priceHistory: new PriceHistory({
      database: withTables(storage.database),
      catalog: catalog.snapshot,
      clock,
    }),
    embeddingCache: openEmbeddingCache(shared, clock),
    ocrModel: ocrModelOf(settings.ocrModel, catalog.snapshot()),
    tryProvider: providerTrial(inference, settings.environment),
    endpointPaths,
    openApiText,
    documentation,
    exampleModel,
  };
}

/** Returns what runs the tools that models and agents call. */
const ofTools = ({ gateway }: Parts) => ({
  upstreamServers: gateway.upstreamServers,
  toolCalls: gateway.toolCalls,
  mcpGrants: gateway.mcpGrants,
  serverWatch: gateway.serverWatch,
  toolSecrets: gateway.toolSecrets,
  agentServer: gateway.agentServer,
  agentStreams: gateway.agentStreams,
  maxToolRounds: gateway.maxToolRounds,
  hiddenTurns: gateway.hiddenTurns,
  search: gateway.search,
});

/**
 * Returns the catalog id of the model that `ocr.model` of switchyard.yaml names. Throws
 * `ConfigurationError` for a model that cannot read pages.
 */
function ocrModelOf(id: string | undefined, catalog: CatalogSnapshot): string | undefined {
  if (id === undefined) return undefined;
  const model = findModel(catalog, id);
  const reason = unfit(model);
  if (model === undefined || reason !== undefined) {
    const message = `${reason ?? "there is no such model in the catalog"}, got ${JSON.stringify(id)}`;
    throw new ConfigurationError([{ key: "ocr.model", message }]);
  }
  return model.id;
}

function unfit(model: CatalogModel | undefined): string | undefined {
  if (model?.router !== undefined) return "expected one model; this is a pool of models";
  if (model !== undefined && model.surface !== "chat")
    return `expected a model that chats; this one serves ${model.surface}`;
  return undefined;
}
