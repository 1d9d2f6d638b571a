import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DocumentationSite } from "../../documentation/documentation-site.ts";
import type { AppSettings } from "../settings-of.ts";
import type { AppTables } from "./build-storage.ts";
import type { LiveCatalog } from "../live-catalog.ts";
import { type Shared, sharedProbe } from "../open-shared.ts";
import { type Nodes, joinNodes } from "../reload.ts";
import type { AppTools } from "../app.ts";
import type { Dependencies, Operations } from "../../endpoints/dependencies.ts";
import { endpoints } from "../../endpoints/index.ts";
import type { Endpoint } from "../../access/define-endpoint.ts";
import { EndpointPaths } from "../../http/endpoint-paths.ts";
import type { CatalogSnapshot } from "../../inference/catalog/model.ts";
import { isServable } from "../../inference/pipeline/upstream-targets.ts";
import { McpService } from "../../mcp/mcp-service.ts";
import type { ToolEndpoint } from "../../mcp/tool.ts";
import { EntryStore } from "../../operator/entry-store.ts";
import { OperatorEntries } from "../../operator/operator-entries.ts";
import type { Account } from "../open-account.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { withTables } from "../../platform/storage/with-tables.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { lazily } from "../../platform/kernel/keyed-mutex.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Metrics } from "../../platform/telemetry/metrics.ts";

/** The data of the operational endpoints, and this gateway among those on its database. */
export interface JoinedOperations {
  operations: Operations;
  nodes: Nodes;
  state: { draining: boolean };
}

/** Builds what the operational endpoints report, and joins the gateways on the database. */
export async function openOperations(
  settings: AppSettings,
  {
    storage,
    shared,
    metrics,
    catalog,
    entries,
    clock,
    logger,
  }: {
    storage: Storage<AppTables>;
    shared: Shared | undefined;
    catalog: LiveCatalog;
    entries: OperatorEntries;
    clock: Clock;
    logger: Logger;
    metrics: Metrics;
  },
): Promise<JoinedOperations> {
  const sharedUp = sharedProbe(shared, settings);
  if (sharedUp !== undefined) metrics.watchSharedState(sharedUp);
  const nodes = await joinNodes(settings, {
    shared,
    database: withTables(storage.database),
    catalog,
    entries,
    clock,
    logger,
  });
  entries.appliedBy(async () => (await nodes.reload()).change);
  metrics.watchConfigurations(() => nodes.configurations());
  const state = { draining: false };
  const operations: Operations = {
    async unreadyParts() {
      const isHealthy = await storage.isHealthy();
      return [
        ...(state.draining ? ["draining"] : []),
        ...(isHealthy ? [] : ["storage"]),
        // Every gateway lacks the same parts, so not being ready because of one part would end the
        // service of all the others.
        ...(sharedUp?.() === 0 ? ["shared_state"] : []),
      ];
    },
    metricsText: () => metrics.text(),
    metricsContentType: metrics.contentType,
    metricsHere: !settings.metricsElsewhere,
    version: settings.version,
    settings: settings.effective ?? [],
    nodes,
  };
  metrics.watchReadiness(() => operations.unreadyParts());
  return { operations, nodes, state };
}

/** Layers what operators configured in the page over the file, before anything is served. */
export async function layerEntries(
  settings: AppSettings,
  {
    account,
    storage,
    catalog,
    clock,
    logger,
  }: {
    account: Pick<Account, "providerKeyVault" | "operatorWorkspaceId">;
    storage: Storage<AppTables>;
    catalog: LiveCatalog;
    clock: Clock;
    logger: Logger;
  },
): Promise<OperatorEntries> {
  const entries = new OperatorEntries({
    store: new EntryStore({
      database: withTables(storage.database),
      vault: account.providerKeyVault,
      workspaceId: account.operatorWorkspaceId,
    }),
    clock,
  });
  try {
    const { sources, accept } = await entries.over(
      settings.configuration?.read.sources ?? settings,
    );
    accept();
    if (entries.list().some(({ source }) => source === "page")) catalog.refresh(sources);
  } catch (error) {
    logger.error({ err: error }, "what is configured in the page cannot be used, the file is");
  }
  return entries;
}

/**
 * Builds the MCP server over the endpoint table. Its tools call the REST endpoints, and are loaded
 * by the first request.
 */
export function buildMcp(
  { version }: AppSettings,
  { logger, buildMcpServer }: Pick<AppTools, "logger" | "buildMcpServer">,
): McpService {
  const table = endpoints as readonly ToolEndpoint[];
  return new McpService({
    endpoints: table,
    async loadTools() {
      const [{ tools }, { ToolServer }] = await Promise.all([
        import("../../mcp/tools/index.ts"),
        import("../../mcp/tool-server.ts"),
      ]);
      const server = new ToolServer({
        version,
        tools,
        endpoints: table,
        onError: (error) => logger.error({ err: error }, "a tool of the MCP server failed"),
      });
      return { tools, build: buildMcpServer ?? ((sdk, request) => server.build(sdk, request)) };
    },
  });
}

/** Builds the documents of the endpoint table, which are created on first use. */
export function buildDocuments(
  settings: AppSettings,
  catalog: () => CatalogSnapshot,
): Pick<Dependencies, "openApiText" | "documentation" | "endpointPaths" | "exampleModel"> {
  return {
    endpointPaths: new EndpointPaths(endpoints as readonly Endpoint<never>[]),
    openApiText: lazily(async () => JSON.stringify(await describeApi(placeOf(settings)))),
    exampleModel: () => exampleModel(catalog()),
    documentation: lazily(() => buildDocumentation(placeOf(settings))),
  };
}

/** The version and URL that generated documents state. */
interface DocumentPlace {
  version: string;
  publicUrl: string;
}

const placeOf = ({ version, publicUrl }: AppSettings): DocumentPlace => ({
  version,
  publicUrl: publicUrl(),
});

/** Returns the OpenAPI document of the endpoint table. */
async function describeApi(place: DocumentPlace): Promise<Record<string, unknown>> {
  const [{ openApiDocument }, { fieldWords }] = await Promise.all([
    import("../../http/open-api/open-api.ts"),
    import("../../endpoints/ops/field-words.ts"),
  ]);
  const table = endpoints as readonly Endpoint<never>[];
  return openApiDocument(table, { ...place, words: fieldWords });
}

/** Builds the documentation site. The code that renders it is loaded on first use. */
export async function buildDocumentation(place: DocumentPlace): Promise<DocumentationSite> {
  const [{ DocumentationSite: Site }, { tools }, openApi] = await Promise.all([
    import("../../documentation/documentation-site.ts"),
    import("../../mcp/tools/index.ts"),
    describeApi(place),
  ]);
  const root = join(import.meta.dirname, "..", "..", "..");
  return new Site(join(root, "docs"), {
    openApi,
    tools,
    publicUrl: place.publicUrl,
    exampleYaml: readFileSync(join(root, "switchyard.example.yaml"), "utf8"),
  });
}

/** Returns a model for examples: a free one if there is any, or else any that can be served. */
export function exampleModel(catalog: CatalogSnapshot): string {
  const servable = [...catalog.models.values()].filter(
    (model) => model.surface === "chat" && model.routes.some((route) => isServable(route, model)),
  );
  return (
    (servable.find((model) => model.id.endsWith(":free")) ?? servable[0])?.id ?? "provider/model"
  );
}
