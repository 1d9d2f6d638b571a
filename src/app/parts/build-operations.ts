import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DocumentationSite } from "../../documentation/site.ts";
import type { AppSettings } from "../app-settings.ts";
import type { AppTables } from "./build-storage.ts";
import type { LiveCatalog } from "../live-catalog.ts";
import { type Shared, sharedProbe } from "../open-shared.ts";
import { type Nodes, joinNodes } from "../reload.ts";
import type { AppTools } from "../app.ts";
import type { Dependencies, Operations } from "../../endpoints/dependencies.ts";
import { endpoints } from "../../endpoints/index.ts";
import { fieldWords } from "../../endpoints/ops/field-words.ts";
import type { Endpoint } from "../../access/define-endpoint.ts";
import { EndpointPaths } from "../../http/endpoint.ts";
import { openApiDocument } from "../../http/open-api.ts";
import type { CatalogSnapshot } from "../../inference/catalog/model.ts";
import { isServable } from "../../inference/pipeline/upstream-targets.ts";
import { McpService } from "../../mcp/mcp-service.ts";
import type { ToolEndpoint } from "../../mcp/tool-endpoint.ts";
import { ToolServer } from "../../mcp/tool-server.ts";
import { tools } from "../../mcp/tools/index.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Metrics } from "../../platform/telemetry/metrics.ts";

/** Builds what operational endpoints tell, and joins the gateways on the database. */
export async function openOperations(
  settings: AppSettings,
  {
    storage,
    shared,
    metrics,
    ...parts
  }: {
    storage: Storage<AppTables>;
    shared: Shared | undefined;
    catalog: LiveCatalog;
    clock: Clock;
    logger: Logger;
    metrics: Metrics;
  },
): Promise<{ operations: Operations; nodes: Nodes; state: { draining: boolean } }> {
  const isSharedUp = sharedProbe(shared, settings);
  if (isSharedUp !== undefined) metrics.watchSharedState(() => (isSharedUp() ? 1 : 0));
  const nodes = await joinNodes(settings, {
    ...parts,
    shared,
    database: storage.database.withTables(),
  });
  metrics.watchConfigurations(() => nodes.configurations());
  const state = { draining: false };
  const operations: Operations = {
    async unreadyParts() {
      const isHealthy = await storage.isHealthy();
      return [
        ...(state.draining ? ["draining"] : []),
        ...(isHealthy ? [] : ["storage"]),
        ...(isSharedUp?.() === false ? ["shared_state"] : []),
      ];
    },
    metricsText: () => metrics.text(),
    metricsContentType: metrics.contentType,
    metricsHere: !settings.metricsElsewhere,
    version: settings.version,
    settings: settings.effective ?? [],
    nodes,
  };
  return { operations, nodes, state };
}

/** The MCP server over the table: its tools call the REST endpoints. */
export function buildMcp(
  { version }: AppSettings,
  { logger, buildMcpServer }: Pick<AppTools, "logger" | "buildMcpServer">,
): McpService {
  const table = endpoints as readonly ToolEndpoint[];
  const server = new ToolServer({
    version,
    tools,
    endpoints: table,
    onError: (error) => logger.error({ err: error }, "a tool of the MCP server failed"),
  });
  return new McpService({
    endpoints: table,
    tools,
    build: buildMcpServer ?? ((sdk, request) => server.build(sdk, request)),
  });
}

/** Documents of the table, made when they are first asked for. */
export function buildDocuments(
  settings: AppSettings,
  catalog: () => CatalogSnapshot,
): Pick<Dependencies, "openApiText" | "documentation" | "endpointPaths" | "exampleModel"> {
  const table = endpoints as readonly Endpoint<never>[];
  let openApi: string | undefined;
  let site: Promise<DocumentationSite> | undefined;
  return {
    endpointPaths: new EndpointPaths(table),
    openApiText: () =>
      (openApi ??= JSON.stringify(
        openApiDocument(table, {
          version: settings.version,
          publicUrl: settings.publicUrl(),
          words: fieldWords,
        }),
      )),
    exampleModel: () => exampleModel(catalog()),
    documentation: () =>
      (site ??= buildDocumentation({ version: settings.version, publicUrl: settings.publicUrl() })),
  };
}

/** The documentation site; what it is made with is loaded when it is first asked for. */
export async function buildDocumentation({
  version,
  publicUrl,
}: {
  version: string;
  publicUrl: string;
}): Promise<DocumentationSite> {
  const { DocumentationSite: Site } = await import("../../documentation/site.ts");
  const root = join(import.meta.dirname, "..", "..", "..");
  return new Site(join(root, "docs"), {
    openApi: openApiDocument(endpoints as readonly Endpoint<never>[], {
      version,
      publicUrl,
      words: fieldWords,
    }),
    tools,
    publicUrl,
    exampleYaml: readFileSync(join(root, "switchyard.example.yaml"), "utf8"),
  });
}

/** A model for examples: one that costs nothing if there is any, else any that can be served. */
export function exampleModel(catalog: CatalogSnapshot): string {
  const servable = [...catalog.models.values()].filter(
    (model) => model.surface === "chat" && model.routes.some((route) => isServable(route, model)),
  );
  return (
    (servable.find((model) => model.id.endsWith(":free")) ?? servable[0])?.id ?? "provider/model"
  );
}
