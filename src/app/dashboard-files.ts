import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../platform/telemetry/logger.ts";
import type { Dashboard, DashboardFile } from "../endpoints/dependencies.ts";

/** A gateway without a dashboard. */
const noDashboard: Dashboard = { isOn: false, index: () => undefined, file: () => undefined };

const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  woff2: "font/woff2",
  svg: "image/svg+xml",
};

const read = (path: string): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(path));

/** The files below a built folder, by their names. */
function readFolder(folder: string): Map<string, DashboardFile> {
  const files = new Map<string, DashboardFile>();
  for (const part of ["assets", "fonts"]) {
    for (const name of existsSync(join(folder, part)) ? readdirSync(join(folder, part)) : []) {
      const type = types[name.split(".").at(-1) ?? ""];
      if (type === undefined) continue;
      const path = join(folder, part, name);
      files.set(`${part}/${name}`, {
        bytes: read(path),
        gzipped: existsSync(`${path}.gz`) ? read(`${path}.gz`) : undefined,
        type,
      });
    }
  }
  return files;
}

/** Where the dashboard is built, and by which program. */
export interface DashboardOptions {
  /** The folder of the built dashboard. */
  folder: string;
  /**
   * The program that builds it where it is older than its sources; absent where a release carries
   * the built folder.
   */
  buildScript: string | undefined;
}

/**
 * Serves the built dashboard from memory, and builds it in the background of a start where its
 * sources are newer.
 */
export function openDashboard(
  options: DashboardOptions | undefined,
  logger: Pick<Logger, "error">,
): Dashboard {
  const onError = (error: Error): void =>
    logger.error({ err: error }, "the dashboard could not be built");
  if (options === undefined) return noDashboard;
  const { folder, buildScript } = options;
  let index: string | undefined;
  let files = new Map<string, DashboardFile>();
  const load = (): void => {
    const path = join(folder, "index.html");
    if (!existsSync(path)) return;
    files = readFolder(folder);
    index = readFileSync(path, "utf8");
  };
  load();
  if (buildScript !== undefined && existsSync(buildScript)) {
    const child = spawn(process.execPath, [buildScript], { stdio: ["ignore", "ignore", "pipe"] });
    let problem = "";
    child.stderr.on(
      "data",
      (chunk: Buffer) => (problem = (problem + chunk.toString()).slice(-2_000)),
    );
    child.once("error", onError);
    child.once("close", (code) =>
      code === 0
        ? load()
        : onError(new Error(`the dashboard could not be built: ${problem.trim()}`)),
    );
    child.unref();
  }
  return { isOn: true, index: () => index, file: (name) => files.get(name) };
}
