import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { resolve } from "node:path";
import { version } from "../package.json";
import type { App } from "./app/app.ts";
import { createApp } from "./app/create-app.ts";
import { exampleModel } from "./app/build-operations.ts";
import {
  appSettings,
  catalogSources,
  databasePathOf,
  readConfiguration,
  type Settings,
} from "./app/settings-of.ts";
import { announcement } from "./app/announcement.ts";
import { endOnSignal } from "./app/end-on-signal.ts";
import { HttpServer, type TlsPair } from "./http/http-server.ts";
import { countConnections, openFilesWarning } from "./http/open-files.ts";
import { serveMetrics } from "./http/serve-metrics.ts";
import { hasPlatformCredential } from "./inference/catalog/reachability.ts";
import { balanceOf } from "./account/ledger/account-book.ts";
import { reloadOnSignal } from "./app/reload-on-signal.ts";
import { ConfigurationError } from "./platform/config/configuration-error.ts";
import { keepPrivate } from "./platform/config/private-files.ts";
import { withSecretFiles } from "./platform/config/secret-files.ts";
import { systemClock } from "./platform/lib/clock.ts";
import {
  SharedStateAwayError,
  SharedStateUnfitError,
} from "./platform/shared-state/shared-state-error.ts";
import {
  SchemaMismatchError,
  StorageInUseError,
  StorageUnavailableError,
} from "./platform/storage/storage-error.ts";
import { boundedLogger } from "./platform/telemetry/bounded-logger.ts";
import { createLogger, type Logger } from "./platform/telemetry/logger.ts";
import { createMetrics } from "./platform/telemetry/metrics.ts";
import { createTracing } from "./platform/telemetry/tracing.ts";

/** Options of the command line; throws a `ConfigurationError` for one that does not exist. */
function readOptions(parameters: readonly string[]): { noMigrate: boolean } {
  const unknown = parameters.find((parameter) => parameter !== "--no-migrate");
  if (unknown === undefined) return { noMigrate: parameters.length > 0 };
  throw new ConfigurationError([
    { key: unknown, message: "there is no such option; the one that exists is --no-migrate" },
  ]);
}

/** The built dashboard, and what builds it from a checkout; a release carries the folder alone. */
const dashboardPlace = {
  folder: resolve(import.meta.dirname, "../dashboard/dist"),
  buildScript: resolve(import.meta.dirname, "../scripts/build-dashboard.ts"),
};

/** Takes what earlier releases and restored copies left open to others, and reports what it cannot. */
function closeFiles(settings: Settings, logger: Logger): void {
  const path = databasePathOf(settings);
  const { tightened, left } = keepPrivate({
    dataDirectory: settings.dataDirectory,
    databasePath: path === undefined ? undefined : resolve(path),
  });
  if (tightened.length > 0)
    logger.warn(
      { files: tightened },
      "files that other users of this machine could read are private now",
    );
  for (const { path, reason } of left)
    logger.warn(
      { path, reason },
      "other users of this machine can read or replace the gateway's data",
    );
}

async function start(): Promise<void> {
  // Whatever is made from here on, databases, logs of them and temporary files, is for this user alone.
  process.umask(0o077);
  const environment = withSecretFiles(process.env);
  const readSettings = (): Promise<Settings> =>
    readConfiguration(withSecretFiles(process.env), process.cwd());
  const configuration = await readSettings();
  const logger = boundedLogger(createLogger({ level: configuration.logLevel }), systemClock);
  closeFiles(configuration, logger);
  const metrics = createMetrics();
  const tracing = createTracing({
    ...configuration.tracing,
    version,
    onExportError: (error) => logger.warn({ err: error }, "traces could not be delivered"),
  });
  let listeningUrl = "";
  const publicUrl = (): string => configuration.server.publicUrl ?? listeningUrl;
  const app = await createApp(
    appSettings(configuration, {
      version,
      environment,
      publicUrl,
      mayMigrate: !readOptions(process.argv.slice(2)).noMigrate,
      dashboard: configuration.dashboard ? dashboardPlace : undefined,
    }),
    { logger, metrics, tracing },
  );
  const { host, port, tls, bodyMemoryBytes } = configuration.server;
  const server = listenAt(
    { host, port },
    () =>
      new HttpServer({
        host,
        port,
        ...app,
        tls: tls && readTls(tls),
        bodyMemoryBytes,
        onError: (error) => logger.error({ err: error }, "an answer could not be written"),
      }),
  );
  metrics.watchServer({
    connections: () => countConnections(server.port),
    bodyBytes: () => server.bodies.heldBytes,
  });
  const filesWarning = openFilesWarning();
  if (filesWarning !== undefined) logger.warn({}, filesWarning);
  const scheme = tls === undefined ? "http" : "https";
  // No browser opens the address that means every one of this machine, so links name the machine itself.
  listeningUrl = urlOf(scheme, isEveryAddress(host) ? "localhost" : host, server.port);
  const { metricsPort } = configuration;
  if (metricsPort !== undefined)
    listenAt({ host, port: metricsPort }, () => serveMetrics(metrics, { host, port: metricsPort }));
  endOnSignal(app, { ...configuration.server, server, logger });
  reloadOnSignal(app, {
    readSources: async () => catalogSources(await readSettings()),
    hasTerminal: process.stdout.isTTY,
    logger,
  });
  watchForMistakes(logger);
  const shownOnce = { firstSecret: await app.mintFirstKey(), claimToken: await app.issueClaim() };
  const otherUrls =
    configuration.server.publicUrl === undefined && isEveryAddress(host)
      ? networkAddresses().map((address) => urlOf(scheme, address, server.port))
      : [];
  for (const line of startLines(app, { url: publicUrl(), otherUrls, ...shownOnce }))
    console.log(line);
  console.log(`switchyard ready ${urlOf(scheme, host, server.port)}`);
}

const isEveryAddress = (host: string): boolean => host === "0.0.0.0" || host === "::";

const urlOf = (scheme: string, host: string, port: number): string =>
  `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;

/** IPv4 addresses by which other machines may reach this one. */
const networkAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses
      .filter(({ internal, family }) => !internal && family === "IPv4")
      .map(({ address }) => address),
  );

function startLines(
  app: App,
  shown: {
    url: string;
    otherUrls: readonly string[];
    firstSecret: string | undefined;
    claimToken: string | undefined;
  },
): string[] {
  const [workspaceBalance] = app.ledger.book
    .workspaceIds()
    .map((id) => balanceOf(app.ledger.book.workspace(id)));
  return announcement({
    ...shown,
    version,
    model: exampleModel(app.catalog()),
    sandbox:
      app.sandbox === undefined
        ? undefined
        : hasPlatformCredential(app.catalog())
          ? "beside"
          : "alone",
    hasBalance: (workspaceBalance ?? 0n) > 0n,
  });
}

/** Throws where a key is not that of its certificate: the platform says so in words of its own. */
function assertPair({ cert, key }: TlsPair): void {
  const wrong = (reason: string): Error =>
    Object.assign(new Error(`server.tls: ${reason}`), { code: "EINVAL" });
  try {
    if (new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) return;
  } catch (error) {
    throw wrong(
      `cert and key have to be files in PEM (${error instanceof Error ? error.message : String(error)})`,
    );
  }
  throw wrong("the key is not that of the certificate");
}

/** The certificate and its key, which only their files' owner may be able to read. */
function readTls({ certPath, keyPath }: NonNullable<Settings["server"]["tls"]>): TlsPair {
  const read = (name: string, path: string): string => {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      if (error instanceof Error)
        error.message = `server.tls.${name} cannot be read: ${error.message}`;
      throw error;
    }
  };
  const pair = { cert: read("cert", certPath), key: read("key", keyPath) };
  assertPair(pair);
  return pair;
}

/** What nobody caught is a mistake of ours: it is logged, and only a broken process ends. */
function watchForMistakes(logger: Logger): void {
  process.on("unhandledRejection", (error) =>
    logger.error({ err: error }, "a rejection was handled nowhere"),
  );
  process.on("uncaughtException", (error) => {
    logger.error({ err: error }, "an exception was caught nowhere; the process ends");
    process.exit(70);
  });
}

const takenPort = (port: number): string =>
  `port ${port} is taken by another program; end that one, or choose a port with PORT=${port + 1} (PORT=0 picks a free one)`;

/** Opens a listening socket; of a failure the system reports only what, so this adds where and what to do. */
function listenAt<Listener>(
  { host, port }: { host: string; port: number },
  open: () => Listener,
): Listener {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const isTaken = "code" in error && error.code === "EADDRINUSE";
    error.message = isTaken
      ? takenPort(port)
      : `cannot listen at ${host}, port ${port}: ${error.message}`;
    throw error;
  }
}

const plainErrors = [
  SchemaMismatchError,
  SharedStateAwayError,
  SharedStateUnfitError,
  StorageInUseError,
  StorageUnavailableError,
];

/** Errors that an operator can mend are told in plain words; others with their stack. */
function startFailure(error: unknown): string {
  if (error instanceof ConfigurationError)
    return `switchyard cannot start; the configuration is wrong:\n${error.toString()}`;
  const plain =
    plainErrors.some((kind) => error instanceof kind) ||
    (error instanceof Error &&
      "code" in error &&
      typeof error.code === "string" &&
      error.code.startsWith("E"));
  if (error instanceof Error)
    return `switchyard cannot start: ${plain ? error.message : error.stack}`;
  return `switchyard cannot start: ${String(error)}`;
}

try {
  await start();
} catch (error) {
  console.error(startFailure(error));
  process.exit(1);
}
