// Builds the dashboard into dashboard/dist, unless what is there is of the same sources. Run by the
// gateway's start and by hand.
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const sources = join(root, "dashboard", "src");
const target = join(root, "dashboard", "dist");

/** Every file below a folder, sorted. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .toSorted();
}

/** A hash of everything that the build reads. */
function sourceHash(): string {
  const hash = createHash("sha256");
  for (const path of [
    ...filesBelow(sources),
    join(root, "package-lock.json"),
    fileURLToPath(import.meta.url),
  ]) {
    hash.update(relative(root, path)).update("\0").update(readFileSync(path));
  }
  return hash.digest("hex");
}

/**
 * Sets the theme before the first paint; a file of its own, since the policy allows no inline
 * script.
 */
const themeScript = `var t=localStorage.getItem("theme");document.documentElement.dataset.theme=t||
(matchMedia("(prefers-color-scheme: dark)").matches?"dark":"light")`;

const fonts = [
  ["@fontsource-variable/inter/files/inter-latin-wght-normal.woff2", "inter.woff2"],
  ["@fontsource-variable/geist-mono/files/geist-mono-latin-wght-normal.woff2", "geist-mono.woff2"],
] as const;

const indexHtml = ({ script, style }: { script: string; style: string }): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Switchyard</title><link rel="icon" href="/favicon.svg" type="image/svg+xml">
${fonts.map(([, name]) => `<link rel="preload" href="/fonts/${name}" as="font" type="font/woff2" crossorigin>`).join("\n")}
<script src="/assets/theme.js"></script>
<link rel="stylesheet" href="/assets/${style}"></head>
<body><div id="root"></div><script type="module" src="/assets/${script}"></script></body></html>
`;

async function build(stamp: string): Promise<void> {
  mkdirSync(join(root, "dashboard"), { recursive: true });
  const folder = mkdtempSync(join(root, "dashboard", ".dist-"));
  const assets = join(folder, "assets");
  const result = await Bun.build({
    entrypoints: [join(sources, "app", "main.tsx")],
    outdir: assets,
    target: "browser",
    splitting: true,
    minify: true,
    naming: "[name]-[hash].[ext]",
    publicPath: "/assets/",
    external: ["/fonts/*"],
    define: { "process.env.NODE_ENV": '"production"' },
  });
  if (!result.success) throw new AggregateError(result.logs, "the dashboard could not be built");
  const named = (extension: string): string => {
    const output = result.outputs.find(
      ({ path }) => /[/\\]main-[^/\\]*$/.test(path) && path.endsWith(extension),
    );
    if (output === undefined) throw new Error(`the build made no main${extension}`);
    return relative(assets, output.path);
  };
  writeFileSync(join(assets, "theme.js"), themeScript);
  writeFileSync(
    join(folder, "index.html"),
    indexHtml({ script: named(".js"), style: named(".css") }),
  );
  mkdirSync(join(folder, "fonts"));
  for (const [from, to] of fonts)
    cpSync(join(root, "node_modules", from), join(folder, "fonts", to));
  for (const path of filesBelow(assets))
    writeFileSync(`${path}.gz`, Bun.gzipSync(readFileSync(path), { level: 9 }));
  writeFileSync(join(folder, "stamp"), stamp);
  rmSync(target, { recursive: true, force: true });
  renameSync(folder, target);
}

const stamp = sourceHash();
const stampPath = join(target, "stamp");
if (!existsSync(stampPath) || readFileSync(stampPath, "utf8") !== stamp) await build(stamp);
