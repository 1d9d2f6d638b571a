import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../process/ports.ts";
import { onceOpen, type Peer, type PeerContext, type RunningPeer } from "./peer.ts";
import { idsOf, lockSqlite } from "./sqlite-books.ts";

const masterKey = "sk-bench";
const models = ["large", "paced", "quiet"];

/** The program; `GOMODEL` names one that is not on the PATH. */
const findGomodel = (): string | undefined =>
  process.env["GOMODEL"] ?? Bun.which("gomodel") ?? undefined;

/**
 * GoModel with its usage rows and prices on, in SQLite. It listens on every address, since it has
 * no setting for one, and asks for a key.
 */
export const gomodel: Peer = {
  name: "gomodel",
  path: "/v1/chat/completions",
  headers: { authorization: `Bearer ${masterKey}` },
  modelPrefix: "",
  chargesRequests: false,
  work: {
    credential: "one master key",
    limits: "off",
    price: "usage row priced",
    record: "row after the answer, a hundred or 5 s at a time",
  },
  books: {
    readIds: async (directory) =>
      idsOf(databaseIn(directory), "select provider_id as id from usage"),
    lock: async (directory) => lockSqlite(databaseIn(directory)),
  },
  prepare: async () => {
    const program = findGomodel();
    if (program === undefined)
      return { ready: false, reason: "gomodel is not on the PATH, and GOMODEL names none" };
    const { stdout } = Bun.spawnSync([program, "-version"], { stdout: "pipe", stderr: "ignore" });
    return { ready: true, version: stdout.toString().split(" (")[0]?.trim() || "gomodel" };
  },
  start,
};

const databaseIn = (directory: string): string => join(directory, "gomodel.db");

async function start({ children, cores, directory, mock }: PeerContext): Promise<RunningPeer> {
  const port = freePort();
  await mkdir(join(directory, "config"), { recursive: true });
  await writeFile(join(directory, "config", "config.yaml"), configuration(mock.port));
  const child = children.spawn({
    name: "gomodel",
    command: [findGomodel() ?? "gomodel"],
    directory,
    cores: cores.peer,
    environment: {
      PORT: String(port),
      LOG_LEVEL: "error",
      GOMODEL_MASTER_KEY: masterKey,
      // Its list of models and prices is asked for on the network otherwise.
      MODEL_LIST_URL: `http://127.0.0.1:${mock.port}/models.json`,
      CONFIGURED_PROVIDER_MODELS_MODE: "allowlist",
      STORAGE_TYPE: "sqlite",
      SQLITE_PATH: databaseIn(directory),
      USAGE_ENABLED: "true",
    },
  });
  return onceOpen(child, { port });
}

function configuration(mockPort: number): string {
  const model = (name: string): string => `
      - id: ${name}
        metadata: { pricing: { currency: USD, input_per_mtok: 0.5, output_per_mtok: 1.5 } }`;
  return `providers:
  openai:
    type: openai
    base_url: http://127.0.0.1:${mockPort}/v1
    api_key: x
    models:${models.map(model).join("")}
`;
}
