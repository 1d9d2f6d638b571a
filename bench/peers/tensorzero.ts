import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { waitForLine } from "../process/children.ts";
import { cacheDirectory } from "./cache-directory.ts";
import { noWork, startTimeoutMs, type Peer, type PeerContext, type RunningPeer } from "./peer.ts";

/** The last release: its repository is archived. */
const version = "2026.6.0";
const models = ["large", "paced", "quiet"];
const installTimeoutMs = 300_000;

/**
 * TensorZero's gateway, which its Python package embeds: the package starts it on a free port of
 * loopback for OpenAI's client, and Python then waits. It runs without a database, so it has no
 * keys, limits or records.
 */
export function tensorzero({ mayInstall }: { mayInstall: boolean }): Peer {
  return {
    name: "tensorzero",
    path: "/openai/v1/chat/completions",
    headers: { authorization: "Bearer x" },
    modelPrefix: "tensorzero::model_name::",
    chargesRequests: false,
    work: noWork,
    prepare: async () => {
      const problem = existsSync(installedMark()) ? undefined : install(mayInstall);
      return problem === undefined
        ? { ready: true, version: `tensorzero ${version}, no database` }
        : { ready: false, reason: problem };
    },
    start,
  };
}

const environmentDirectory = (): string => join(cacheDirectory(), `tensorzero-${version}`);
const python = (): string => join(environmentDirectory(), "bin", "python");
/** pip writes it last. */
const installedMark = (): string => join(environmentDirectory(), "installed");

/** Undefined when it is installed now, else the reason in words. */
function install(mayInstall: boolean): string | undefined {
  if (!mayInstall) return "not installed; a full run that names it installs it";
  if (Bun.which("python3") === null) return "python3 is not on the PATH";
  console.error(`bench: installing tensorzero ${version} from PyPI (once)`);
  const directory = environmentDirectory();
  const steps = [
    ["python3", "-m", "venv", directory],
    [join(directory, "bin", "pip"), "install", "--quiet", `tensorzero==${version}`],
    ["touch", installedMark()],
  ];
  for (const command of steps) {
    const { success, stderr } = Bun.spawnSync(command, {
      timeout: installTimeoutMs,
      stdout: "ignore",
      stderr: "pipe",
    });
    if (!success) return `cannot be installed: ${stderr.toString().trim().split("\n").at(-1)}`;
  }
  return undefined;
}

/** What the package's `patch_openai_client` does, without a client. */
const program = `import sys
from tensorzero.tensorzero import _start_http_gateway
gateway = _start_http_gateway(config_file=sys.argv[1], clickhouse_url=None, postgres_url=None, valkey_url=None, async_setup=False)
print("ready", gateway.base_url, flush=True)
sys.stdin.read()
`;

async function start({ children, cores, directory, mock }: PeerContext): Promise<RunningPeer> {
  const configPath = join(directory, "tensorzero.toml");
  await mkdir(directory, { recursive: true });
  await writeFile(configPath, configuration(mock.port));
  const child = children.spawn({
    name: "tensorzero",
    command: [python(), "-c", program, configPath],
    directory,
    cores: cores.peer,
  });
  const pattern = /^ready http:\/\/\S+?:(\d+)\//;
  const [, port] = await waitForLine(child, { pattern, timeoutMs: startTimeoutMs });
  const readyMs = performance.now() - child.startedAtMs;
  return { port: Number(port), pid: child.pid, readyMs, stop: () => child.stop() };
}

function configuration(mockPort: number): string {
  const model = (name: string): string => `
[models.${name}]
routing = ["mock"]
[models.${name}.providers.mock]
type = "openai"
model_name = "${name}"
api_base = "http://127.0.0.1:${mockPort}/v1/"
api_key_location = "none"
`;
  return `[gateway]
observability.enabled = false
${models.map(model).join("")}`;
}
