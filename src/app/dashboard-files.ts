import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, watch } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Logger } from "../platform/telemetry/logger.ts";
import type { Dashboard, DashboardFile } from "../endpoints/dependencies.ts";

/** The packages of the fonts, which the public pages and the documentation have as well. */
const fontPackages: Readonly<Record<string, string>> = {
  "fonts/inter.woff2": "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
  "fonts/geist-mono.woff2":
    "@fontsource-variable/geist-mono/files/geist-mono-latin-wght-normal.woff2",
};
const installedFonts = new Map<string, DashboardFile>();

/** Returns a font of an installed package; undefined for other names. */
function installedFont(name: string): DashboardFile | undefined {
  const known = installedFonts.get(name);
  const path = fontPackages[name];
  if (known !== undefined || path === undefined) return known;
  const bytes = read(fileURLToPath(import.meta.resolve(path)));
  const font = { bytes, gzipped: undefined, type: "font/woff2" };
  installedFonts.set(name, font);
  return font;
}

/** The dashboard of a gateway without one. */
const noDashboard: Dashboard = { isOn: false, index: () => undefined, file: installedFont };

const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  woff2: "font/woff2",
  svg: "image/svg+xml",
};

const read = (path: string): Uint8Array<ArrayBuffer> => new Uint8Array(readFileSync(path));

/** Reads the files below a built folder, by name. */
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

/** The folder in which the dashboard is built, and the program that builds it. */
export interface DashboardOptions {
  /** The folder of the built dashboard. */
  folder: string;
  /**
   * The program that builds the dashboard where it is older than its sources; absent where a
   * release ships the built folder.
   */
  buildScript: string | undefined;
  /**
   * A promise for which the build waits, so that it does not slow the start; absent for no wait.
   */
  buildAfter?: Promise<void>;
  /** Sources whose changes trigger a build and then reload pages (`npm run dev`). */
  watchedSources?: string | undefined;
}

interface Build {
  script: string;
  onBuilt: () => void;
  onError: (error: Error) => void;
}

/**
 * Returns a function that runs the build, one at a time, and once more where it was requested
 * meanwhile.
 */
function builds({ script, onBuilt, onError }: Build): () => void {
  let isRunning = false;
  let isStale = false;
  const build = (): void => {
    isStale = isRunning;
    if (isRunning) return;
    isRunning = true;
    const child = spawn(process.execPath, [script], { stdio: ["ignore", "ignore", "pipe"] });
    let problem = "";
    child.stderr.on(
      "data",
      (chunk: Buffer) => (problem = (problem + chunk.toString()).slice(-2_000)),
    );
    child.once("error", onError);
    child.once("close", (code, signal) => {
      isRunning = false;
      if (code === 0) onBuilt();
      else onError(new Error(`the dashboard could not be built: ${problem.trim() || signal}`));
      if (isStale) build();
    });
    child.unref();
  };
  return build;
}

/**
 * Reloads the page once the gateway names other files than the page has. It is a file of its own
 * because the content security policy allows no inline script.
 */
const reloadScript = `const named = [...document.querySelectorAll("[src^='/assets/'],[href^='/assets/']")]
  .map((each) => each.getAttribute("src") ?? each.getAttribute("href"));
const compare = async () => {
  const index = await fetch("/dashboard").then((answer) => (answer.ok ? answer.text() : undefined), () => undefined);
  if (index !== undefined && named.some((name) => !index.includes(name))) location.reload();
  else setTimeout(compare, 1000);
};
setTimeout(compare, 1000);
`;
const reloadName = "assets/reload.js";

/** The output of one build. */
interface BuiltDashboard {
  index: string;
  files: ReadonlyMap<string, DashboardFile>;
}

/** Reads a built folder; undefined where there is none. */
function readBuilt(
  folder: string,
  { isWatched }: { isWatched: boolean },
): BuiltDashboard | undefined {
  const path = join(folder, "index.html");
  if (!existsSync(path)) return undefined;
  const files = readFolder(folder);
  const index = readFileSync(path, "utf8");
  if (!isWatched) return { index, files };
  const bytes = new TextEncoder().encode(reloadScript);
  files.set(reloadName, { bytes, gzipped: undefined, type: types["js"] ?? "" });
  const element = `<script type="module" src="/${reloadName}"></script>`;
  return { index: index.replace("</body>", `${element}</body>`), files };
}

/**
 * Serves the built dashboard from memory, which is filled by the first request, and builds it in
 * the background where its sources are newer.
 */
export function openDashboard(
  options: DashboardOptions | undefined,
  logger: Pick<Logger, "error">,
): Dashboard {
  if (options === undefined) return noDashboard;
  const { folder, buildScript, buildAfter, watchedSources } = options;
  const isWatched = watchedSources !== undefined;
  let built: BuiltDashboard | undefined;
  const current = (): BuiltDashboard | undefined => (built ??= readBuilt(folder, { isWatched }));
  if (buildScript !== undefined && existsSync(buildScript)) {
    const build = builds({
      script: buildScript,
      onBuilt: () => (built &&= readBuilt(folder, { isWatched }) ?? built),
      onError: (error) => logger.error({ err: error }, "the dashboard could not be built"),
    });
    if (isWatched) watch(watchedSources, { recursive: true, persistent: false }, build);
    if (buildAfter === undefined) build();
    else void buildAfter.then(build);
  }
  return {
    isOn: true,
    index: () => current()?.index,
    file: (name) => current()?.files.get(name) ?? installedFont(name),
  };
}
