import { isTest, type Finding, type Rule } from "./rule.ts";
import type { SourceTree } from "./source-tree.ts";

/** Files that are started by name, each with who starts it. */
const entryPoints: Readonly<Record<string, string>> = {
  "src/main.ts": "npm start",
  "src/switchyard.ts": "bin/switchyard.mjs, and npm run doctor",
  "src/migrate.ts": "npm run migrate",
  "bench/embeddings.ts": "npm run bench:embeddings",
  "bench/embeddings/bare-server.ts": "bench/embeddings.ts",
  "bench/ocr.ts": "npm run bench:ocr",
  "bench/ocr/sender.ts": "bench/ocr/chat-latency.ts",
  "bench/mcp.ts": "npm run bench:mcp",
  "bench/batches.ts": "npm run bench:batches",
  "bench/media.ts": "npm run bench:media",
  "bench/media/traffic.ts": "bench/media.ts",
  "bench/media/pictures.ts": "bench/media.ts",
  "bench/sockets.ts": "npm run bench:sockets",
  "bench/files-touched.ts": "npm run bench:files",
  "bench/files-touched/scene.ts": "bench/files-touched.ts",
  "bench/archive.ts": "npm run bench:archive",
  "bench/dashboard.ts": "npm run bench:dashboard",
  "bench/insights.ts": "npm run bench:insights",
  "bench/commits.ts": "npm run bench:commits",
  "bench/planning.ts": "npm run bench:planning",
  "bench/wakeups.ts": "npm run bench:wakeups",
  "bench/start.ts": "npm run bench:start",
  "bench/run.ts": "npm run bench",
  "bench/translation.ts": "npm run bench:translation",
  "bench/topologies.ts": "npm run bench:topologies",
  "test/chaos/run.ts": "npm run chaos",
  "scripts/build-dashboard.ts": "src/app/dashboard-files.ts, and npm run dashboard:build",
  "scripts/dashboard-types.ts": "npm run dashboard:types",
  "scripts/catalog-refresh.ts": "npm run catalog:refresh",
  "scripts/try-image.ts": "deploy/README.md",
  "test/end-to-end/mcp/conformance/tell-scenario.ts":
    "test/end-to-end/mcp/conformance/client-conformance.test.ts",
  "test/support/archive-until-killed.ts": "src/insights/archive/archiver.test.ts",
  "test/support/report-until-killed.ts": "test/end-to-end/customers/killed-reports.test.ts",
  "test/support/clickhouse-server.ts": "test/support/clickhouse.ts",
  "test/support/bare-server.ts": "test/end-to-end/process/hostile-clients.test.ts",
  "test/support/heap-on-signal.ts":
    "test/end-to-end/process/secrets-at-rest.test.ts and open-streams.test.ts",
  "test/support/hours-on-signal.ts": "test/end-to-end/process/log-budget.test.ts",
  "test/support/later-release.ts": "test/end-to-end/nodes/two-releases.test.ts",
  "test/support/property-seed.ts": "bunfig.toml",
  "test/support/shared-postgres.ts": "scripts/test-run/shared-part.mjs",
  "test/support/shared-program.ts": "scripts/test-run/shared-part.mjs",
  "test/support/shifted-clock.ts": "test/chaos/parts.ts",
  "test/support/modules-on-signal.ts": "test/end-to-end/process/modules-at-start.test.ts",
  "test/tidy/tighten-ratchet.ts": "bun test/tidy/tighten-ratchet.ts",
};

const isEntry = (path: string): boolean => path in entryPoints || path.startsWith("examples/");

/** Everything that is loaded or started when one of the given files is. */
function reachedFrom({ files }: SourceTree, starts: (path: string) => boolean): Set<string> {
  const imports = new Map(files.map((file) => [file.path, file.imports]));
  const reached = new Set<string>();
  const waiting = [...imports.keys()].filter(starts);
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    for (const { target } of imports.get(path) ?? [])
      if (target !== undefined) waiting.push(target);
  }
  return reached;
}

/** What no program reaches is dead; tests alone keep no file of the program alive. */
export const orphanFiles: Rule = {
  name: "orphan files",
  fix: "Use the file, delete it, or name who starts it in test/tidy/orphan-files.ts.",
  check(tree): Finding[] {
    const byPrograms = reachedFrom(tree, isEntry);
    const byTests = reachedFrom(tree, (path) => path.endsWith(".test.ts"));
    return tree.files
      .filter(({ path }) => !path.endsWith(".test.ts") && !byPrograms.has(path))
      .flatMap(({ path }): Finding[] => {
        if (!byTests.has(path)) return [{ path, problem: "is used by nothing" }];
        return isTest(path) ? [] : [{ path, problem: "is used by tests only" }];
      });
  },
};
