import { existsSync, readFileSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { getCACertificates } from "node:tls";
import { placesOf } from "../app/open-shared.ts";
import {
  databasePathOf,
  encryptionKeyOf,
  readConfiguration,
  type Settings,
} from "../app/settings-of.ts";
import { buildProviders } from "../inference/catalog/build-catalog.ts";
import { hasCredential, type Provider } from "../inference/catalog/model.ts";
import { ConfigurationError } from "../platform/config/configuration-error.ts";
import { readTls } from "../platform/config/tls-files.ts";
import { countText } from "../platform/kernel/count-text.ts";
import { systemClock } from "../platform/kernel/clock.ts";
import { openSharedState } from "../platform/shared-state/open-shared-state.ts";
import type { SharedParts } from "../platform/shared-state/shared-state.ts";
import { redactText } from "../platform/telemetry/redact.ts";
import { pairingDifference } from "../app/database-pairing.ts";
import { otherKeyFinding, type Query } from "../access/audit/audit-chain.ts";
import type { CommandContext } from "./terminal.ts";
import {
  checkBooks,
  checkPages,
  missingParts,
  compareSchema,
  openPostgres,
  openSqlite,
  type OpenedForReading,
} from "./database.ts";

/** A finding of the doctor. */
interface Finding {
  check: string;
  state: "ok" | "warning" | "problem";
  text: string;
}

const ok = (check: string, text: string): Finding => ({ check, state: "ok", text });
const warning = (check: string, text: string): Finding => ({ check, state: "warning", text });
const problem = (check: string, text: string): Finding => ({ check, state: "problem", text });

const diskBytesWanted = 2e9;
const diskBytesLeast = 200e6;
const clockSkewMsMax = 30_000;
const providerTimeoutMs = 5_000;
const root = join(import.meta.dirname, "..", "..");

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

function checkVersions(): Finding[] {
  const { dependencies, version } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  ) as {
    dependencies: Record<string, string>;
    version: string;
  };
  const wanted = dependencies["bun"];
  return [
    Bun.version === wanted
      ? ok("versions", `switchyard ${version} on Bun ${Bun.version}`)
      : warning(
          "versions",
          `switchyard ${version} was tested on Bun ${wanted}, this is Bun ${Bun.version}: run \`npm ci\``,
        ),
  ];
}

function checkDisk({ dataDirectory }: Settings): Finding[] {
  if (!existsSync(dataDirectory))
    return [warning("disk", `${dataDirectory} does not exist yet; the first start makes it`)];
  const { bavail, bsize } = statfsSync(dataDirectory);
  const freeBytes = bavail * bsize;
  const text = `${(freeBytes / 1e9).toFixed(1)} GB free at ${dataDirectory}`;
  const isOpen = (statSync(dataDirectory).mode & 0o077) !== 0;
  return [
    freeBytes < diskBytesLeast
      ? problem("disk", `${text}: the database needs room to write`)
      : freeBytes < diskBytesWanted
        ? warning("disk", text)
        : ok("disk", text),
    ...(isOpen
      ? [
          warning(
            "files",
            `other users of this machine can read ${dataDirectory}; the next start makes it private`,
          ),
        ]
      : []),
  ];
}

/** Finds damaged pages of SQLite, and what a complete schema has and the database lacks. */
async function checkSchema(
  query: Query,
  { missing, path }: { missing: readonly string[]; path: string | undefined },
): Promise<Finding[]> {
  const pages = path === undefined ? [] : await checkPages(query);
  if (pages.length > 0)
    return pages.map((text) =>
      problem("database", `damaged: ${text}; restore a backup (\`switchyard restore\`)`),
    );
  // What migrations are to bring is missing rightly.
  const lacking = missing.length > 0 ? [] : await missingParts(query, path === undefined);
  return lacking.slice(0, 10).map((part) => problem("database", `the ${part} is missing`));
}

async function checkDatabase(settings: Settings): Promise<Finding[]> {
  const path = databasePathOf(settings);
  if (path !== undefined && !existsSync(path)) {
    return [
      problem(
        "database",
        `the database could not be checked: there is no database at ${path}; \`switchyard start\` makes it`,
      ),
    ];
  }
  let opened: OpenedForReading | undefined;
  try {
    opened = path === undefined ? await openPostgres(settings.storage.url) : openSqlite(path);
    const { query } = opened;
    const key = encryptionKeyOf(settings);
    const { missing, unknown } = await compareSchema(query);
    if (unknown.length > 0)
      return [
        problem(
          "database",
          `a newer release wrote it (${unknown.join(", ")}): install that release`,
        ),
      ];
    const damage = await checkSchema(query, { missing, path });
    if (damage.length > 0) return damage;
    const books = await checkBooks(query, key);
    const isOtherKey = books.includes(otherKeyFinding);
    const sums = books.filter((text) => text !== otherKeyFinding);
    return [
      missing.length === 0
        ? ok("database", path ?? "Postgres")
        : warning("database", `the next start runs ${countText(missing.length, "migration")}`),
      isOtherKey
        ? problem("keys", `${otherKeyFinding}: bring back the one of its backup`)
        : ok("keys", "the encryption key is that of the database"),
      ...(sums.length === 0
        ? [ok("sums", `the ledger adds up${isOtherKey ? "" : ", and the audit log is whole"}`)]
        : sums.map((text) => problem("sums", text))),
    ];
  } catch (error) {
    const check = error instanceof ConfigurationError ? "keys" : "database";
    return [problem(check, `the database could not be checked: ${reasonOf(error)}`)];
  } finally {
    await opened?.close();
  }
}

/**
 * Reports whether a provider's address answers, with any status, and how far its clock differs. The
 * provider's own proxy is used, and the certificates of `tls.ca_files` are trusted, as in requests.
 */
async function askProvider(
  { baseUrl = "", proxy = "none" }: Pick<Provider, "baseUrl" | "proxy">,
  extraCertificates: readonly string[],
): Promise<{ skewMs: number | undefined } | { error: string }> {
  try {
    const response = await fetch(baseUrl, {
      method: "HEAD",
      redirect: "manual",
      signal: AbortSignal.timeout(providerTimeoutMs),
      ...(proxy === "none" ? {} : { proxy: proxy.includes("://") ? proxy : `http://${proxy}` }),
      ...(extraCertificates.length === 0
        ? {}
        : { tls: { ca: [...getCACertificates("default"), ...extraCertificates] } }),
    });
    const date = Date.parse(response.headers.get("date") ?? "");
    return { skewMs: Number.isNaN(date) ? undefined : systemClock.nowMs() - date };
  } catch (error) {
    return { error: reasonOf(error) };
  }
}

async function checkProviders(settings: Settings): Promise<Finding[]> {
  const providers = buildProviders({
    environment: settings.environment,
    configuredProviders: settings.providers,
    nowMs: systemClock.nowMs(),
  });
  const asked = [...providers.values()].filter(
    (provider) => hasCredential(provider) && provider.baseUrl !== undefined,
  );
  if (asked.length === 0)
    return [
      warning(
        "providers",
        "none has a key, so the sandbox answers; set OPENAI_API_KEY or another provider's key",
      ),
    ];
  const answers = await Promise.all(
    asked.map(async (provider) => ({
      id: provider.id,
      shownUrl: redactText(provider.baseUrl ?? ""),
      answer: await askProvider(provider, settings.extraCertificates),
    })),
  );
  const skews = answers
    .flatMap(({ answer }) =>
      "skewMs" in answer && answer.skewMs !== undefined ? [answer.skewMs] : [],
    )
    .sort((a, b) => a - b);
  const skewMs = skews[Math.floor(skews.length / 2)];
  return [
    ...answers.map(({ id, shownUrl, answer }) =>
      "error" in answer
        ? problem("providers", `${id} cannot be reached at ${shownUrl}: ${answer.error}`)
        : ok("providers", `${id} answers at ${shownUrl}`),
    ),
    ...(skewMs === undefined
      ? []
      : [
          Math.abs(skewMs) > clockSkewMsMax
            ? problem(
                "clock",
                `this machine's clock is ${Math.round(skewMs / 1000)} s off the providers': set it, or expiries and signatures fail`,
              )
            : ok("clock", `within ${clockSkewMsMax / 1000} s of the providers'`),
        ]),
  ];
}

/** Checks whether the archive can be used, without changing anything in it. */
async function checkArchive({ archive, extraCertificates }: Settings): Promise<Finding[]> {
  if (archive.url === "none") return [];
  const { ArchiveClient } = await import("../insights/archive/archive-client.ts");
  const client = new ArchiveClient({ url: archive.url, certificates: extraCertificates });
  const { address, database } = client.target;
  try {
    return [ok("archive", `ClickHouse ${await client.version()} at ${address}/${database}`)];
  } catch (error) {
    return [
      problem("archive", `ClickHouse cannot be used at ${address}/${database}: ${reasonOf(error)}`),
    ];
  } finally {
    await client.close();
  }
}

/** Checks that the shared state and the database name each other, without changing anything. */
async function checkShared(settings: Settings): Promise<Finding[]> {
  const { url, sentinels } = settings.shared;
  if (url === "memory:" || databasePathOf(settings) !== undefined) return [];
  const logger = { info: () => undefined, warn: () => undefined };
  const places = placesOf({
    sharedUrl: url,
    sharedSentinels: sentinels,
    storageUrl: settings.storage.url,
  });
  let state: SharedParts | undefined;
  let opened: OpenedForReading | undefined;
  try {
    const certificates = settings.extraCertificates;
    state = await openSharedState({ url, sentinels, certificates, logger, waitMs: 1_000 });
    opened = await openPostgres(settings.storage.url);
    const difference = await pairingDifference(state.parts, { query: opened.query, places });
    return [
      difference === undefined
        ? ok("shared state", `the Valkey or Redis at ${places.shared} is that of the database`)
        : problem("shared state", difference),
    ];
  } catch (error) {
    return [problem("shared state", `could not be checked: ${reasonOf(error)}`)];
  } finally {
    state?.close();
    await opened?.close();
  }
}

/** Examines the installation, with or without a running gateway. */
async function examine(
  context: CommandContext,
  { offline }: { offline: boolean },
): Promise<Finding[]> {
  try {
    const settings = await readConfiguration(context);
    if (settings.server.tls !== undefined) readTls(settings.server.tls);
    return [
      ...checkVersions(),
      ok("configuration", "can be used"),
      ...settings.warnings.map(({ key, message }) =>
        warning("configuration", `${key}: ${message}`),
      ),
      ...checkDisk(settings),
      ...(await checkDatabase(settings)),
      ...(await checkShared(settings)),
      ...(offline ? [] : [...(await checkArchive(settings)), ...(await checkProviders(settings))]),
    ];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return [
      ...checkVersions(),
      ...error
        .toString()
        .split("\n")
        .map((line) => problem("configuration", line)),
    ];
  }
}

const marks = {
  ok: ["green", "ok"],
  warning: ["yellow", "warning"],
  problem: ["red", "problem"],
} as const;

/**
 * Shows what the doctor found. Returns the exit code: 0, 1 where there is a problem, 2 where the
 * database could not be checked.
 */
export async function doctor(
  context: CommandContext,
  options: { offline: boolean },
): Promise<number> {
  const { terminal } = context;
  const findings = await examine(context, options);
  const problems = findings.filter(({ state }) => state === "problem");
  const unreadable = problems.some(({ text }) =>
    text.startsWith("the database could not be checked"),
  );
  if (!terminal.result({ healthy: problems.length === 0, findings })) {
    for (const { check, state, text } of findings) {
      const [style, mark] = marks[state];
      const line = `${terminal.colour(style, mark.padEnd(8))} ${check.padEnd(14)} ${text}`;
      if (state === "problem") terminal.note(line);
      else terminal.line(line);
    }
  }
  return unreadable ? 2 : problems.length === 0 ? 0 : 1;
}
