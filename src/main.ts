import { hostname } from "node:os";
import { resolve } from "node:path";
import { version } from "../package.json";
import type { App } from "./app/app.ts";
import { createApp } from "./app/create-app.ts";
import { exampleModel } from "./app/parts/build-operations.ts";
import {
  appSettings,
  databasePathOf,
  readConfiguration,
  type Settings,
} from "./app/settings-of.ts";
import { announcement, networkAddresses } from "./app/announcement.ts";
import { serveCommandSocket } from "./app/process/command-socket.ts";
import { keepFirstSecrets } from "./app/process/first-secrets-file.ts";
import { sendTelemetry } from "./app/process/send-telemetry.ts";
import {
  endOnSignal,
  endWhileStarting,
  reloadOnSignal,
  type ProcessPlace,
} from "./app/process/signals.ts";
import { SupervisorLine } from "./app/process/supervisor-line.ts";
import {
  countConnections,
  answerHeadersAt,
  HttpServer,
  openFilesWarning,
  serveMetrics,
} from "./http/http-server.ts";
import { hasPlatformCredential } from "./inference/catalog/model.ts";
import { balanceOf } from "./billing/ledger/book/account-book.ts";
import { ConfigurationError } from "./platform/config/configuration-error.ts";
import { keepPrivate } from "./platform/config/private-files.ts";
import { readTls, type TlsPair } from "./platform/config/tls-files.ts";
import { ServedCertificate } from "./app/process/served-certificate.ts";
import { systemClock } from "./platform/kernel/clock.ts";
import { processorsHere } from "./platform/kernel/control-group.ts";
import {
  SharedStateAwayError,
  SharedStateUnfitError,
} from "./platform/shared-state/shared-state-error.ts";
import {
  DatabaseError,
  SchemaMismatchError,
  StorageInUseError,
  StorageUnavailableError,
} from "./platform/storage/storage-error.ts";
import { type Logger, boundedLogger, createLogger } from "./platform/telemetry/logger.ts";
import { createMetrics, type Metrics } from "./platform/telemetry/metrics.ts";

/** Reads the options of the command line. Throws a `ConfigurationError` for an unknown one. */
function readOptions(parameters: readonly string[]): { noMigrate: boolean } {
  const unknown = parameters.find((parameter) => parameter !== "--no-migrate");
  if (unknown === undefined) return { noMigrate: parameters.length > 0 };
  throw new ConfigurationError([
    { key: unknown, message: "there is no such option; the one that exists is --no-migrate" },
  ]);
}

/** The built dashboard, and what builds it from a checkout; a release contains only the folder. */
const dashboardPlace = {
  folder: resolve(import.meta.dirname, "../dashboard/dist"),
  buildScript: resolve(import.meta.dirname, "../scripts/build-dashboard.ts"),
  // `npm run dev` restarts the server by Bun's `--watch`, which does not watch the dashboard's
  // sources.
  watchedSources: process.execArgv.includes("--watch")
    ? resolve(import.meta.dirname, "../dashboard/src")
    : undefined,
};

/**
 * Removes other users' permissions that earlier releases and restored copies left on files, and
 * reports where it cannot.
 */
function closeFiles(settings: Settings, logger: Logger): void {
  const path = databasePathOf(settings);
  const { tightened, left } = keepPrivate({
    dataDirectory: settings.dataDirectory,
    databasePath: path === undefined ? undefined : resolve(path),
  });
  if (tightened.length > 0)
    logger.warn(
      { files: tightened },
      "files that other users of this machine could read were made private",
    );
  for (const { path, reason } of left)
    logger.warn(
      { path, reason },
      "other users of this machine can read or replace the gateway's data",
    );
}

async function start(): Promise<void> {
  // Every file that is created from here on (databases, their journals, temporary files) is private
  // to this user.
  process.umask(0o077);
  const reading = new SettingsReading();
  const configuration = await reading.read();
  const logger = boundedLogger(createLogger({ level: configuration.logLevel }), systemClock);
  const metrics = createMetrics({ usage: configuration.telemetry.usage });
  const line = SupervisorLine.open(process.env, { ownMetrics: () => metrics.text() });
  const isStarted = endWhileStarting(logger);
  if (line === undefined && configuration.server.processes !== 1)
    return supervise(configuration, { logger, isStarted });
  closeFiles(configuration, logger);
  const nodeName = line && `${hostname()}/${line.place.number}`;
  const telemetry = sendTelemetry(configuration, { logger, metrics, version, nodeName });
  const announced = Promise.withResolvers<void>();
  let listeningUrl = "";
  const publicUrl = (): string => configuration.server.publicUrl ?? listeningUrl;
  const app = await createApp(
    appSettings(configuration, {
      version,
      publicUrl,
      readAgain: () => reading.readAgain(),
      mayMigrate: !readOptions(process.argv.slice(2)).noMigrate,
      dashboard: configuration.dashboard
        ? { ...dashboardPlace, buildAfter: announced.promise }
        : undefined,
      nodeName,
    }),
    {
      logger,
      metrics: line ? { ...metrics, text: () => line.allMetrics() } : metrics,
      ...telemetry,
    },
  ).catch((error: unknown) => {
    throw asUnusableFile(error, databasePathOf(configuration));
  });
  const { host, tls } = configuration.server;
  const pair = tls && readTls(tls);
  const server = openServer(configuration, { app, place: line?.place, logger, pair });
  const certificate = pair && new ServedCertificate(pair, { server, logger });
  reading.prepare = ({ server: { tls: files } }) => {
    const renewed = files && readTls(files);
    return () => renewed && certificate?.renew(renewed);
  };
  watchServer(metrics, { server, line, certificate });
  const filesWarning = openFilesWarning();
  if (filesWarning !== undefined) logger.warn({}, filesWarning);
  const scheme = tls === undefined ? "http" : "https";
  // Browsers cannot open the wildcard address, so links name the machine itself.
  listeningUrl = urlOf(scheme, isEveryAddress(host) ? "localhost" : host, server.port);
  const { metricsPort } = configuration;
  const metricsLines = line === undefined ? openMetrics(metrics, { host, port: metricsPort }) : [];
  endOnSignal(app, { ...configuration.server, server, logger });
  isStarted();
  // One of several processes serves the command.
  if ((line?.place.number ?? 1) === 1)
    serveCommand(app, { ...configuration, url: listeningUrl, logger });
  reloadOnSignal(app, { hasTerminal: process.stdout.isTTY });
  watchForMistakes(logger);
  const shownOnce = (line?.place.announces ?? true) ? await mintShownOnce(app) : noneShown;
  const otherUrls = addressesFor(configuration, server.port);
  const secretsFile = keepFirstSecrets(configuration, { ...shownOnce, url: publicUrl() });
  const lines = startLines(app, { url: publicUrl(), otherUrls, ...shownOnce, secretsFile });
  const url = urlOf(scheme, host, server.port);
  const ready = { port: server.port, url, lines: [...lines, ...metricsLines] };
  if (line === undefined) tellReady(ready);
  else line.ready(ready);
  announced.resolve();
}

const noneShown = { firstSecret: undefined, claimToken: undefined };

/** Makes what a first start shows once. */
const mintShownOnce = async (app: App) => ({
  firstSecret: await app.mintFirstKey(),
  claimToken: await app.issueClaim(),
});

/** Reads the configuration of this process, and takes part of it over when it was read again. */
class SettingsReading {
  /** Returns what takes over what was read again; throws where that cannot be used. */
  prepare: (settings: Settings) => () => void = () => () => undefined;

  read(): Promise<Settings> {
    return readConfiguration({ environment: process.env, workingDirectory: process.cwd() });
  }

  async readAgain(): Promise<{ settings: Settings; accept(): void }> {
    const settings = await this.read();
    return { settings, accept: this.prepare(settings) };
  }
}

/** Lets the metrics read the state of the server. */
function watchServer(
  metrics: Pick<Metrics, "watchServer">,
  {
    server,
    line,
    certificate,
  }: {
    server: HttpServer;
    line: SupervisorLine | undefined;
    certificate: ServedCertificate | undefined;
  },
): void {
  metrics.watchServer({
    // The kernel's table does not say which process has a connection, so the first process reports
    // all.
    connections: async () => ((line?.place.number ?? 1) === 1 ? countConnections(server.port) : 0),
    sockets: () => ({
      open: server.sockets.count,
      frames: server.sockets.framesReceived,
      seconds: server.sockets.secondsOpen,
    }),
    bodyBytes: () => server.bodyMemory.heldBytes,
    bodyBytesMax: server.bodyMemory.bytesMax,
    certificateExpirySeconds: certificate && (() => certificate.secondsLeft(systemClock.nowMs())),
  });
}

/** Serves keys to the command `switchyard` of this data directory, until the process ends. */
function serveCommand(
  app: App,
  { dataDirectory, url, logger }: { dataDirectory: string; url: string; logger: Logger },
): void {
  const close = serveCommandSocket({ dataDirectory, mint: app.mintCommandKey, url, logger });
  process.on("exit", close);
}

/** Returns the addresses of this machine at which others reach a gateway on every address. */
const addressesFor = ({ server: { publicUrl, host, tls } }: Settings, port: number): string[] =>
  publicUrl === undefined && isEveryAddress(host)
    ? networkAddresses().map((address) => urlOf(tls ? "https" : "http", address, port))
    : [];

/** Opens the gateway's server, at a port of its own or one that several processes share. */
function openServer(
  { server: { host, port: ownPort, bodyMemoryBytes, publicUrl } }: Settings,
  {
    app,
    place,
    logger,
    pair,
  }: {
    app: App;
    place: ProcessPlace | undefined;
    logger: Logger;
    pair: TlsPair | undefined;
  },
): HttpServer {
  const port = place?.port ?? ownPort;
  return listenAt(
    { host, port },
    () =>
      new HttpServer({
        host,
        port,
        ...app,
        sharesPort: place !== undefined,
        tls: pair,
        bodyMemoryBytes,
        headers: answerHeadersAt(publicUrl ?? ""),
        onError: (error) => logger.error({ err: error }, "an answer could not be written"),
      }),
  );
}

/** Serves metrics at a port of their own, if there is one. Returns the lines that say where. */
function openMetrics(
  metrics: Pick<Metrics, "text" | "contentType">,
  { host, port }: { host: string; port: number | undefined },
): string[] {
  if (port === undefined) return [];
  const server = listenAt({ host, port, variable: "SWITCHYARD_METRICS_PORT" }, () =>
    serveMetrics(metrics, { host, port }),
  );
  return [`${"Metrics".padEnd(10)} ${urlOf("http", host, server.port ?? port)}/metrics`];
}

function tellReady({ lines, url }: { lines: readonly string[]; url: string }): void {
  for (const line of lines) console.log(line);
  console.log(`switchyard ready ${url}`);
}

/** Milliseconds that any process takes to end by itself at most, once its grace period is over. */
const endMarginMs = 10_000;

/** Runs as many gateways as the configuration says, in processes of their own. */
async function supervise(
  { server, metricsPort }: Settings,
  { logger, isStarted }: { logger: Logger; isStarted(): void },
): Promise<void> {
  const { ProcessFailedError, Supervisor } = await import("./app/process/supervisor.ts");
  const { host, port, processes } = server;
  if (port !== 0) {
    // The processes share the port, which would succeed beside another gateway that shares it. This
    // exclusive probe fails there.
    const probe = listenAt({ host, port }, () =>
      Bun.listen({ hostname: host, port, exclusive: true, socket: { data: () => undefined } }),
    );
    probe.stop(true);
  }
  const supervisor = new Supervisor({
    count: processes === "auto" ? processorsHere() : processes,
    command: [process.execPath, import.meta.path, ...process.argv.slice(2)],
    environment: process.env,
    port,
    endMs: server.drainDelayMs + server.drainGraceMs + endMarginMs,
    logger,
  });
  process.on("SIGTERM", () => supervisor.end());
  process.on("SIGINT", () => supervisor.end());
  isStarted();
  if (!process.stdout.isTTY) process.on("SIGHUP", () => supervisor.reload());
  void supervisor.exitCode.then((code) => process.exit(code));
  watchForMistakes(logger);
  try {
    const ready = await supervisor.start();
    if (ready === undefined) return;
    const metrics = {
      text: () => supervisor.metricsText(),
      contentType: createMetrics().contentType,
    };
    const metricsLines = openMetrics(metrics, { host, port: metricsPort });
    tellReady({ ...ready, lines: [...ready.lines, ...metricsLines] });
  } catch (error) {
    // The process itself has logged the reason.
    if (error instanceof ProcessFailedError) process.exit(error.exitCode);
    throw error;
  }
}

const isEveryAddress = (host: string): boolean => host === "0.0.0.0" || host === "::";

const urlOf = (scheme: string, host: string, port: number): string =>
  `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;

function startLines(
  app: App,
  shown: {
    url: string;
    otherUrls: readonly string[];
    firstSecret: string | undefined;
    claimToken: string | undefined;
    secretsFile: string | undefined;
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

/** Logs errors that no handler caught, which are bugs; an uncaught exception ends the process. */
function watchForMistakes(logger: Logger): void {
  process.on("unhandledRejection", (error) =>
    logger.error({ err: error }, "a promise was rejected and nothing handled it"),
  );
  process.on("uncaughtException", (error) => {
    logger.error({ err: error }, "an exception was not caught; the process ends");
    process.exit(70);
  });
}

const takenPort = (port: number, variable: string): string =>
  `port ${port} is taken by another program; end that one, or choose a port with ${variable}=${port + 1} (${variable}=0 picks a free one)`;

/**
 * Opens a listening socket. The system reports only what failed, so this adds where, and what to
 * do.
 */
function listenAt<Listener>(
  { host, port, variable = "PORT" }: { host: string; port: number; variable?: string },
  open: () => Listener,
): Listener {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const isTaken = "code" in error && error.code === "EADDRINUSE";
    error.message = isTaken
      ? takenPort(port, variable)
      : `cannot listen at ${host}, port ${port}: ${error.message}`;
    throw error;
  }
}

/** Advice for codes of SQLite that say that its file cannot be used (sqlite.org/rescode.html). */
const fileAdvice: readonly [code: RegExp, advice: string][] = [
  [/^SQLITE_(?:NOTADB|CORRUPT)/, "restore a backup with `switchyard restore`"],
  [/^SQLITE_(?:READONLY|CANTOPEN|PERM)/, "the gateway has to write to it and to its folder"],
  [/^SQLITE_(?:FULL|IOERR)/, "check the disk and the space left on it"],
];

/** Names the file and what to do where SQLite cannot use it; returns any other error as it is. */
function asUnusableFile(error: unknown, path: string | undefined): unknown {
  if (!(error instanceof DatabaseError)) return error;
  const advice = fileAdvice.find(([code]) => code.test(error.code))?.[1];
  if (advice === undefined) return error;
  const message = `the database ${path ?? ""} cannot be used: ${error.message}; ${advice}`;
  return new StorageUnavailableError(message, { cause: error });
}

const plainErrors = [
  SchemaMismatchError,
  SharedStateAwayError,
  SharedStateUnfitError,
  StorageInUseError,
  StorageUnavailableError,
];

/**
 * Returns the message of a failed start: plain words for errors that an operator can fix, and the
 * stack for others.
 */
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

start().catch((error: unknown) => {
  console.error(startFailure(error));
  process.exit(1);
});
