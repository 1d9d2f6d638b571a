import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { version } from "../../package.json";
import { createApp } from "../app/create-app.ts";
import {
  askForCommandKey,
  commandKeyName,
  type ReachedGateway,
} from "../app/process/command-socket.ts";
import { appSettings, databasePathOf, readConfiguration } from "../app/settings-of.ts";
import { HttpServer } from "../http/http-server.ts";
import { brand } from "../platform/kernel/brand.ts";
import { createLogger } from "../platform/telemetry/logger.ts";
import { createMetrics } from "../platform/telemetry/metrics.ts";
import { noTracing } from "../platform/telemetry/tracing.ts";
import { type CommandContext, CommandError } from "./terminal.ts";

const probeTimeoutMs = 2_000;

/** A gateway that a command calls over its API. */
export class GatewayApi {
  private readonly isOwn: boolean;

  /**
   * `isOwn` is for a gateway of this machine that named its own address: its certificate is made
   * for the names that clients use, and is not checked.
   */
  constructor(
    readonly url: string,
    private readonly secret: string | undefined,
    { isOwn = false } = {},
  ) {
    this.isOwn = isOwn;
  }

  /** Sends a request below `/api/v1`. Throws `CommandError` where it is refused. */
  async send(method: string, path: string, body?: unknown): Promise<Response> {
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = body === undefined ? {} : { "content-type": "application/json" };
    return this.exchange(method, path, { ...init, headers });
  }

  /** Sends a form below `/api/v1` and reads its answer as JSON. Throws as `send` does. */
  async upload(path: string, form: FormData): Promise<unknown> {
    return (await this.exchange("POST", path, { body: form, headers: {} })).json();
  }

  private async exchange(
    method: string,
    path: string,
    { body, headers }: { body?: string | FormData; headers: Record<string, string> },
  ): Promise<Response> {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: {
        ...(this.secret === undefined ? {} : { authorization: `Bearer ${this.secret}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
      ...(this.isOwn && { tls: { rejectUnauthorized: false } }),
    });
    if (response.ok) return response;
    if (response.status === 401 && this.secret === undefined)
      throw new CommandError("this command needs a key: set SWITCHYARD_KEY, or send --key");
    throw new CommandError(`${method} ${path} was refused: ${await refusalText(response)}`);
  }

  /** Sends a request and reads its answer as JSON. */
  async ask(method: string, path: string, body?: unknown): Promise<unknown> {
    return (await this.send(method, path, body)).json();
  }
}

async function refusalText(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as { error?: { code?: string; message?: string } };
    if (error?.message !== undefined)
      return `${error.message} (${response.status} ${error.code ?? ""})`;
  } catch {
    // Not a gateway's error; the raw text is shown below.
  }
  return `${response.status} ${text.slice(0, 200)}`;
}

/** Returns whether a gateway answers at an address. */
async function isRunning(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(probeTimeoutMs) });
    return response.ok;
  } catch {
    return false;
  }
}

/** Returns the address that was named, or where the configuration has the gateway listen. */
async function addressOf({
  url,
  environment,
  workingDirectory,
}: CommandContext): Promise<{ url: string; named: boolean }> {
  const named = url ?? environment["SWITCHYARD_URL"];
  if (named !== undefined)
    return { url: named.replace(/\/+$/, "").replace(/\/(?:api\/)?v1$/, ""), named: true };
  const { server } = await readConfiguration({ environment, workingDirectory });
  const host = server.host === "0.0.0.0" || server.host === "::" ? "localhost" : server.host;
  const scheme = server.tls === undefined ? "http" : "https";
  return {
    url: `${scheme}://${host.includes(":") ? `[${host}]` : host}:${server.port}`,
    named: false,
  };
}

/** Returns the running gateway with an LLM key, for what only a running gateway does. */
export async function runningGateway(context: CommandContext): Promise<GatewayApi> {
  const { url } = await addressOf(context);
  if (!(await isRunning(url)))
    throw new CommandError(
      `no gateway answers at ${url}: start one with \`switchyard start\`, or name it with --url`,
    );
  return new GatewayApi(url, context.key ?? context.environment["SWITCHYARD_KEY"]);
}

/**
 * Runs an account command: over the API of a running gateway, or on the data directory, for which
 * the whole gateway is opened with a management key that is revoked at the end.
 */
export async function withAccount<Result>(
  context: CommandContext,
  run: (api: GatewayApi) => Promise<Result>,
): Promise<Result> {
  const { url, named } = await addressOf(context);
  const secret = context.key ?? context.environment["SWITCHYARD_MANAGEMENT_KEY"];
  if (secret === undefined && !named) {
    const { dataDirectory } = await readConfiguration(context);
    const reached = await askForCommandKey(dataDirectory);
    if (reached !== undefined) return runAsOperator(context, { reached, run });
  }
  if (await isRunning(url)) {
    if (secret !== undefined) return run(new GatewayApi(url, secret));
    throw new CommandError(
      `a gateway runs at ${url}: set SWITCHYARD_MANAGEMENT_KEY or --key to a management key (ak_...), made in its ` +
        "dashboard, or run the command as the gateway's user, with its data directory",
    );
  }
  if (named) throw new CommandError(`no gateway answers at ${url}`);
  const local = await openLocalGateway(context);
  try {
    return await run(new GatewayApi(local.url, local.managementKey));
  } finally {
    await local.close();
  }
}

/**
 * Runs an account command on the running gateway of this data directory, with a key that ends with
 * it.
 */
async function runAsOperator<Result>(
  { terminal }: CommandContext,
  { reached, run }: { reached: ReachedGateway; run: (api: GatewayApi) => Promise<Result> },
): Promise<Result> {
  const { url, secret, workspace } = reached;
  terminal.note(`As the operator of ${url}, in the workspace ${workspace.name}.`);
  const api = new GatewayApi(url, secret, { isOwn: true });
  try {
    return await run(api);
  } finally {
    await revokeOwnKey(api);
  }
}

/** A gateway of this process on the configured data, for one command. */
interface LocalGateway {
  url: string;
  managementKey: string;
  /** Revokes the key and closes the database. */
  close(): Promise<void>;
}

/**
 * Opens the gateway on its data, on a free loopback port, with a key that only this command has.
 */
async function openLocalGateway(context: CommandContext): Promise<LocalGateway> {
  const configuration = await readConfiguration(context);
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
    publicUrl: () => configuration.server.publicUrl ?? url,
  });
  const bootstrap = { ...settings.bootstrap, managementKey, managementKeyName: commandKeyName };
  const app = await createApp(
    { ...settings, bootstrap },
    {
      logger,
      metrics: createMetrics(),
      tracing: noTracing,
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
      await revokeOwnKey(new GatewayApi(url, managementKey));
      await server.stop(true);
      await app.close();
    },
  };
}

/** Revokes the command's key, as its last use. */
async function revokeOwnKey(api: GatewayApi): Promise<void> {
  const { data } = (await api.ask("GET", "/management-keys")) as {
    data: { id: string; name: string }[];
  };
  for (const { id } of data.filter(({ name }) => name === commandKeyName))
    await api.send("DELETE", `/management-keys/${id}`);
}
