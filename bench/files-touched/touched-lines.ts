import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Requests of a measured run. A line that ran for nearly each of them belongs to a request; they are
 * so many that no timer comes as often, also where the machine is slow.
 */
const requests = 80;

/** The requests that are measured: client's dialect, upstream's dialect, and how it is answered. */
export const scenes = [
  { name: "chat", client: "openai-chat", upstream: "openai-chat", stream: false },
  { name: "chat, streamed", client: "openai-chat", upstream: "openai-chat", stream: true },
  {
    name: "Messages to chat, streamed",
    client: "anthropic-messages",
    upstream: "openai-chat",
    stream: true,
  },
] as const;
type Scene = (typeof scenes)[number];

/** How often each line of each file under `src/` ran, by path. */
type Counts = Map<string, Map<number, number>>;

function readCoverage(report: string): Counts {
  const counts: Counts = new Map();
  let lines = new Map<number, number>();
  for (const line of report.split("\n")) {
    const [kind, rest = ""] = line.split(/:(.*)/);
    if (kind === "SF") counts.set(rest, (lines = new Map()));
    if (kind !== "DA") continue;
    const [at, times] = rest.split(",").map(Number);
    lines.set(at ?? 0, times ?? 0);
  }
  return counts;
}

/** Runs a gateway that answers so many requests, and returns its coverage. */
async function coverageOf({ client, upstream, stream }: Scene, times: number): Promise<Counts> {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-coverage-"));
  try {
    const run = Bun.spawn(
      [
        process.execPath,
        "test",
        "--coverage",
        "--coverage-reporter=lcov",
        `--coverage-dir=${directory}`,
        "--timeout=600000",
        "./bench/files-touched/scene.ts",
      ],
      {
        cwd: fileURLToPath(new URL("../..", import.meta.url)),
        env: { ...process.env, SCENE: JSON.stringify({ client, upstream, stream, times }) },
        stdout: "ignore",
        stderr: "pipe",
      },
    );
    const said = await run.stderr.text();
    if ((await run.exited) !== 0) throw new Error(`the scene failed: ${said}`);
    const counts = readCoverage(readFileSync(join(directory, "lcov.info"), "utf8"));
    for (const path of counts.keys()) if (!path.startsWith("src/")) counts.delete(path);
    return counts;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * Returns how many lines of each file every request of a scene ran, by scene. Lines of timers and
 * of the start are not among them: a gateway that answers nothing is the measure for these.
 */
export async function touchedLines(): Promise<Map<Scene["name"], Map<string, number>>> {
  const idle = await coverageOf(scenes[0], 0);
  const touched = new Map<Scene["name"], Map<string, number>>();
  for (const scene of scenes)
    touched.set(scene.name, linesOf(await coverageOf(scene, requests), idle));
  return touched;
}

function linesOf(counts: Counts, idle: Counts): Map<string, number> {
  const touched = new Map<string, number>();
  for (const [path, lines] of counts) {
    const atRest = idle.get(path);
    const ran = [...lines].filter(
      ([at, times]) => times - (atRest?.get(at) ?? 0) >= requests * 0.9,
    );
    if (ran.length > 0) touched.set(path, ran.length);
  }
  return touched;
}
