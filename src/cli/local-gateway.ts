import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { version } from "../../package.json";
import { createApp } from "../app/create-app.ts";
import {
  appSettings,
  databasePathOf,
  readConfiguration,
  type Settings,
} from "../app/settings-of.ts";
import { HttpServer } from "../http/http-server.ts";
import { withSecretFiles } from "../platform/config/secret-files.ts";
import { brand } from "../platform/lib/brand.ts";
import { createLogger } from "../platform/telemetry/logger.ts";
import { createMetrics } from "../platform/telemetry/metrics.ts";
import { createTracing } from "../platform/telemetry/tracing.ts";
import type { CommandContext } from "./command-context.ts";
import { CommandError } from "./terminal.ts";

/** A gateway of this process on the configured data, for one command. */
export interface LocalGateway {
  url: string;
  managementKey: string;
  /** Revokes the key and closes the database. */
  close(): Promise<void>;
}

/** What the command's own key is called in the audit log. */
const keyName = "switchyard command";

/** Reads the configuration with the secrets that files hold. Throws `ConfigurationError`. */
export const createSettings = ({
  environment,
  workingDirectory,
}: Pick<CommandContext, "environment" | "workingDirectory">): Promise<Settings> =>
  readConfiguration(withSecretFiles(environment), workingDirectory);

/** Opens the gateway on its data, on a free port of loopback that only this command knows the key of. */
export async function openLocalGateway(context: CommandContext): Promise<LocalGateway> {
  const configuration = await createSettings(context);
  const path = databasePathOf(configuration);
  if (path !== undefined && !existsSync(path)) {
    throw new CommandError(
      `no gateway runs, and there is no database at ${path}: run \`switchyard start\` first, or name the data with SWITCHYARD_DATA_DIR`,
    );
  }
  const managementKey = `${brand.managementKeyPrefix}${randomBytes(32).toString("base64url")}`;
  const logger = createLogger({ level: "silent" });
  let url = "";
  const settings = appSettings(configuration, {
    version,
    environment: withSecretFiles(context.environment),
    publicUrl: () => configuration.server.publicUrl ?? url,
  });
  const bootstrap = { ...settings.bootstrap, managementKey, managementKeyName: keyName };
  const app = await createApp(
    { ...settings, bootstrap },
    {
      logger,
      metrics: createMetrics(),
      tracing: createTracing({ ...configuration.tracing, version, onExportError: () => undefined }),
    },
  );
  const server = new HttpServer({
    ...app,
    host: "127.0.0.1",
    port: 0,
    bodyMemoryBytes: configuration.server.bodyMemoryBytes,
    onError: () => undefined,
  });
  url = `http://127.0.0.1:${server.port}`;
  return {
    url,
    managementKey,
    async close() {
      await revokeOwnKey(url, managementKey);
      await server.stop(true);
      await app.close();
    },
  };
}

/** Revokes the command's key, the last thing that it is used for. */
async function revokeOwnKey(url: string, secret: string): Promise<void> {
  const headers = { authorization: `Bearer ${secret}` };
  const { data } = (await (await fetch(`${url}/api/v1/management-keys`, { headers })).json()) as {
    data: { id: string; name: string }[];
  };
  for (const { id } of data.filter(({ name }) => name === keyName)) {
    await fetch(`${url}/api/v1/management-keys/${id}`, { method: "DELETE", headers });
  }
}
