import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { waitForLine } from "../process/children.ts";
import { idsOf, lockSqlite } from "./sqlite-books.ts";
import { startTimeoutMs, type Peer, type PeerContext, type RunningPeer } from "./peer.ts";

/**
 * What a charge survives once its `usage.cost` is shown: the loss of power, or the end of the
 * process.
 */
export type Durability = "power" | "process";

const lossOf: Readonly<Record<Durability, string>> = {
  power: "power loss",
  process: "kill -9",
};

const databaseIn = (directory: string): string => join(directory, "data", "switchyard.db");
/** A generation and the answer that shows it have the same id behind another prefix. */
const chargedIdsSql =
  "select 'chatcmpl-' || substr(reference, 5) as id from transfers where kind = 'charge'";

const root = fileURLToPath(new URL("../..", import.meta.url));

interface Program {
  name?: string;
  /** Root of the checkout; a release from before, measured beside this one, has another. */
  directory?: string;
  entry?: string;
  /** Further variables, such as options of the runtime. */
  environment?: Readonly<Record<string, string>>;
}

/** This gateway with a credential check, a hold, a charge and a generation row for each request. */
export function gateway(
  durability: Durability,
  { name = "gateway", directory = root, entry = "src/main.ts", environment = {} }: Program = {},
): Peer {
  const key = `sk-svc-v1-${randomBytes(24).toString("hex")}`;
  return {
    name: `${name} ${durability}`,
    path: "/v1/chat/completions",
    headers: { authorization: `Bearer ${key}` },
    modelPrefix: "mock/",
    chargesRequests: true,
    work: {
      credential: "key of a workspace",
      limits: "rate window and credit hold",
      price: "charged to the nano-dollar",
      record: `charge and row, before the answer, survive ${lossOf[durability]}`,
    },
    books: {
      readIds: async (directory) => idsOf(databaseIn(directory), chargedIdsSql),
      lock: async (directory) => lockSqlite(databaseIn(directory)),
    },
    prepare: async () =>
      existsSync(resolve(directory, entry))
        ? { ready: true, version: `bun ${Bun.version}` }
        : { ready: false, reason: `${resolve(directory, entry)} does not exist` },
    start: (context) =>
      start(context, { durability, checkout: directory, entry, key, environment }),
  };
}

/** Variables of a gateway on a free port, whose key has credits and no limits that a load meets. */
export const gatewayEnvironment = (own: {
  configPath: string;
  dataDirectory: string;
  key: string;
}): Readonly<Record<string, string>> => ({
  BUN_CONFIG_MAX_HTTP_REQUESTS: "16384",
  MIMALLOC_PURGE_DELAY: "1000",
  HOST: "127.0.0.1",
  PORT: "0",
  SWITCHYARD_CONFIG: own.configPath,
  SWITCHYARD_DATA_DIR: own.dataDirectory,
  SWITCHYARD_BOOTSTRAP_LLM_KEY: own.key,
  SWITCHYARD_BOOTSTRAP_CREDITS: "100000",
  SWITCHYARD_BOOTSTRAP_PLAN: "enterprise",
  NODE_ENV: "production",
});

interface StartOptions {
  durability: Durability;
  checkout: string;
  entry: string;
  key: string;
  environment: Readonly<Record<string, string>>;
}

async function start(
  context: PeerContext,
  { durability, checkout, entry, key, environment }: StartOptions,
): Promise<RunningPeer> {
  const { children, cores, directory, mock } = context;
  const dataDirectory = join(directory, "data");
  const configPath = join(directory, "switchyard.yaml");
  await mkdir(dataDirectory, { recursive: true });
  await writeFile(configPath, configuration({ durability, dataDirectory, mockPort: mock.port }));
  const child = children.spawn({
    name: `gateway-${durability}`,
    command: [process.execPath, entry],
    directory: checkout,
    cores: cores.peer,
    environment: { ...gatewayEnvironment({ configPath, dataDirectory, key }), ...environment },
  });
  const pattern = /^switchyard ready http:\/\/\S+:(\d+)/;
  const [, port] = await waitForLine(child, { pattern, timeoutMs: startTimeoutMs });
  const readyMs = performance.now() - child.startedAtMs;
  return { port: Number(port), pid: child.pid, readyMs, stop: () => child.stop() };
}

interface Configuration {
  durability: Durability;
  dataDirectory: string;
  mockPort: number;
}

const configuration = ({ durability, dataDirectory, mockPort }: Configuration): string =>
  `storage: { url: "sqlite:${join(dataDirectory, "switchyard.db")}", durability: ${durability} }
shared: { url: "memory:" }
${mockProviderYaml(mockPort)}`;

/** The rest of a switchyard.yaml: the mock as the one provider, and no limit that a load reaches. */
export function mockProviderYaml(mockPort: number): string {
  const model = (name: string): string => `
      - id: mock/${name}
        upstream_model: ${name}
        surface: chat
        context_length: 4000000
        max_completion_tokens: 16384
        pricing: { prompt: "0.50", completion: "1.50" }
        capabilities: [chat]`;
  return `archive: { url: "none" }
sandbox: { enabled: false }
plans: { enterprise: { per_minute: 1000000000 } }
providers:
  - id: mock
    name: Mock
    base_url: http://127.0.0.1:${mockPort}/v1
    dialect: openai-chat
    api_key: x
    timeouts_ms: { connect: 5000, first_token: 60000, idle: 600000, total: 600000 }
    models:${["large", "paced", "quiet"].map(model).join("")}
`;
}
