import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describeMachine } from "./machine.ts";
import { alignedTable } from "./report.ts";

/** Requests of the shorter and of the longer run; what their counts differ by, requests ran. */
const [fewer, more] = [20, 40];

/** The requests that are measured: client's dialect, upstream's dialect, and how it is answered. */
const scenes = [
  { name: "chat", client: "openai-chat", upstream: "openai-chat", stream: false },
  { name: "chat, streamed", client: "openai-chat", upstream: "openai-chat", stream: true },
  {
    name: "Messages to chat, streamed",
    client: "anthropic-messages",
    upstream: "openai-chat",
    stream: true,
  },
];
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
function coverageOf({ client, upstream, stream }: Scene, times: number): Counts {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-coverage-"));
  try {
    const { exitCode, stderr } = Bun.spawnSync(
      [
        process.execPath,
        "test",
        "--coverage",
        "--coverage-reporter=lcov",
        `--coverage-dir=${directory}`,
        "--timeout=60000",
        "./bench/files-touched/scene.ts",
      ],
      {
        cwd: fileURLToPath(new URL("..", import.meta.url)),
        env: { ...process.env, SCENE: JSON.stringify({ client, upstream, stream, times }) },
        stdout: "ignore",
        stderr: "pipe",
      },
    );
    if (exitCode !== 0) throw new Error(`the scene failed: ${stderr.toString()}`);
    const counts = readCoverage(readFileSync(join(directory, "lcov.info"), "utf8"));
    for (const path of counts.keys()) if (!path.startsWith("src/")) counts.delete(path);
    return counts;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The lines that every request ran, by file; lines of timers and of the start are not among them. */
function touchedBy(scene: Scene): Map<string, number> {
  const [few, many] = [coverageOf(scene, fewer), coverageOf(scene, more)];
  const touched = new Map<string, number>();
  for (const [path, lines] of many) {
    const before = few.get(path);
    const ran = [...lines].filter(
      ([at, times]) => times - (before?.get(at) ?? 0) >= (more - fewer) * 0.9,
    );
    if (ran.length > 0) touched.set(path, ran.length);
  }
  return touched;
}

const { bun, commit } = describeMachine(".");
console.log(`Bun ${bun}, ${commit}: files of src/ that one request runs through, lines in each`);
const measured = scenes.map((scene) => ({ scene, touched: touchedBy(scene) }));
if (process.argv.includes("--files")) {
  const paths = [...new Set(measured.flatMap(({ touched }) => [...touched.keys()]))].sort();
  console.log(
    alignedTable([
      ["file", ...scenes.map(({ name }) => name)],
      ...paths.map((path) => [
        path,
        ...measured.map(({ touched }) => String(touched.get(path) ?? "-")),
      ]),
    ]),
  );
}
console.log(
  alignedTable([
    ["request", "files", "lines", "lines a file"],
    ...measured.map(({ scene, touched }) => {
      const lines = [...touched.values()].reduce((sum, count) => sum + count, 0);
      return [scene.name, String(touched.size), String(lines), (lines / touched.size).toFixed(1)];
    }),
  ]),
);
