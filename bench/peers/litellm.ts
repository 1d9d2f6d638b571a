import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../process/ports.ts";
import { cacheDirectory } from "./cache-directory.ts";
import { onceOpen, type Peer, type PeerContext, type RunningPeer } from "./peer.ts";
import { SpendCollector } from "./spend-collector.ts";

/** Named exactly: releases of this package were withdrawn for what they carried. */
const version = "1.108.7";
const masterKey = "sk-bench";
const models = ["large", "paced", "quiet"];
const installTimeoutMs = 600_000;
/** It imports some thousand modules. */
const startTimeoutMs = 90_000;

/**
 * LiteLLM's proxy from PyPI, without a database: its spend goes to a collector by its own
 * `generic_api` callback. Its database needs Prisma's engine, which no package registry has.
 */
export function litellm({ mayInstall }: { mayInstall: boolean }): Peer {
  const collector = new SpendCollector();
  return {
    name: "litellm",
    path: "/v1/chat/completions",
    headers: { authorization: `Bearer ${masterKey}` },
    modelPrefix: "",
    chargesRequests: false,
    work: {
      credential: "one master key",
      limits: "off (needs its database)",
      price: "computed, in the record",
      record: "record sent to a collector after the answer, every 5 s",
    },
    books: {
      readIds: (directory) => collector.readIds(directory),
      lock: async () => collector.refuse(),
    },
    prepare: async () => {
      const problem = existsSync(program()) ? undefined : install(mayInstall);
      return problem === undefined
        ? { ready: true, version: `litellm ${version}, no database` }
        : { ready: false, reason: problem };
    },
    start: (context) => start(context, collector.listen(context.directory)),
  };
}

const environmentDirectory = (): string => join(cacheDirectory(), `litellm-${version}`);
const program = (): string => join(environmentDirectory(), "bin", "litellm");

/** Undefined when it is installed now, else the reason in words. */
function install(mayInstall: boolean): string | undefined {
  if (!mayInstall) return "not installed; a full run that names it installs it";
  if (Bun.which("python3") === null) return "python3 is not on the PATH";
  console.error(`bench: installing litellm ${version} from PyPI (once, some 700 MB)`);
  const directory = environmentDirectory();
  const steps = [
    ["python3", "-m", "venv", directory],
    [join(directory, "bin", "pip"), "install", "--quiet", `litellm[proxy]==${version}`],
  ];
  for (const command of steps) {
    const { success, stderr } = Bun.spawnSync(command, {
      timeout: installTimeoutMs,
      stdout: "ignore",
      stderr: "pipe",
    });
    if (!success) return `cannot be installed: ${lastLineOf(stderr.toString())}`;
  }
  return undefined;
}

const lastLineOf = (text: string): string => text.trim().split("\n").at(-1) ?? "no reason given";

async function start(
  { children, cores, directory, mock }: PeerContext,
  collectorUrl: string,
): Promise<RunningPeer> {
  const port = freePort();
  const configPath = join(directory, "litellm.yaml");
  await mkdir(directory, { recursive: true });
  await writeFile(configPath, configuration(mock.port));
  const child = children.spawn({
    name: "litellm",
    command: [
      program(),
      ...["--config", configPath],
      ...["--host", "127.0.0.1", "--port", String(port), "--num_workers", "1"],
    ],
    directory,
    cores: cores.peer,
    environment: {
      GENERIC_LOGGER_ENDPOINT: collectorUrl,
      LITELLM_LOG: "ERROR",
      LITELLM_MODE: "PRODUCTION",
      // Its list of prices is asked for on the network otherwise.
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
    },
  });
  return onceOpen(child, { port, timeoutMs: startTimeoutMs });
}

function configuration(mockPort: number): string {
  const model = (name: string): string => `
  - model_name: ${name}
    litellm_params:
      model: openai/${name}
      api_base: http://127.0.0.1:${mockPort}/v1
      api_key: x
      input_cost_per_token: 0.0000005
      output_cost_per_token: 0.0000015`;
  return `model_list:${models.map(model).join("")}
litellm_settings:
  callbacks: ["generic_api"]
  num_retries: 0
  telemetry: false
general_settings:
  master_key: ${masterKey}
`;
}
