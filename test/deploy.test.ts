import { afterAll, describe, expect, test } from "bun:test";
import { cpSync, existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import {
  definitionsOf,
  newFamilies,
  noSpenders,
} from "../src/platform/telemetry/metric-families.ts";
import { newGauge } from "../src/platform/telemetry/metric-family.ts";
import { createAuthority } from "./support/certificates.ts";
import { endProcesses, startProcess, temporaryDirectory } from "./support/process.ts";

afterAll(endProcesses);

const root = join(import.meta.dir, "..");
const deploy = join(root, "deploy");
const text = (path: string): string => readFileSync(join(deploy, path), "utf8");

/** Runs a program; the test of it is skipped where this machine does not have it. */
function run(...command: string[]): { exitCode: number; output: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: root });
  return { exitCode, output: `${stdout}${stderr}` };
}
const testWith = (program: string) => (Bun.which(program) === null ? test.skip : test);

const isMissing = (name: string): string => (Bun.which(name) === null ? ` (missing: ${name})` : "");

describe("metrics in alerts and dashboards exist", () => {
  const zero = (): number => 0;
  const gauges = {
    requestsInFlight: newGauge(),
    openStreams: newGauge(),
    clientConnections: async () => 0,
    bodyBytes: zero,
    bodyBytesMax: zero,
    sockets: () => ({ open: 0, frames: 0, seconds: 0 }),
    holdsOpen: zero,
    commitQueuePending: zero,
    commitsRejected: zero,
    uncollectedWaiting: zero,
    toolServersLeftAlone: zero,
    spenders: () => noSpenders,
  };
  const known = new Map(definitionsOf(newFamilies(), gauges).map(({ name, kind }) => [name, kind]));
  const exists = (name: string): boolean =>
    known.has(name) ||
    (/_(?:bucket|sum|count)$/.test(name) &&
      known.get(name.replace(/_(?:bucket|sum|count)$/, "")) === "histogram");

  test.each(["prometheus/alerts.yaml", "prometheus/alerts.test.yaml", "grafana/switchyard.json"])(
    "%s",
    (path) => {
      const named = [...new Set(text(path).match(/\bswitchyard_[a-z_]+/g))];
      expect(named.length).toBeGreaterThan(4);
      expect(named.filter((name) => !exists(name))).toEqual([]);
    },
  );
});

describe("the image", () => {
  const lines = text("Dockerfile").split("\n");

  test("copies only files of the checkout and runs as an unprivileged user", () => {
    const sources = lines.flatMap(
      (line) => /^COPY (?!--from)(.+)$/.exec(line)?.[1]?.split(" ").slice(0, -1) ?? [],
    );
    expect(sources.filter((source) => !existsSync(join(root, source)))).toEqual([]);
    const ignored = text("Dockerfile.dockerignore").split("\n");
    expect(sources.filter((source) => !ignored.includes(`!${source}`))).toEqual([]);
    expect(lines).toContain("USER 10001:10001");
  });

  test("has every file that the pages of the documentation are made from", async () => {
    const app = temporaryDirectory();
    const own = lines.slice(lines.findIndex((line) => line.endsWith("AS gateway")));
    for (const line of own) {
      const path = /^COPY (?:--from=build \/app\/)?(\S+) \.\//.exec(line)?.[1];
      if (path === undefined || path === "node_modules" || !existsSync(join(root, path))) continue;
      cpSync(join(root, path), join(app, path), { recursive: true });
    }
    symlinkSync(join(root, "node_modules"), join(app, "node_modules"));
    const command = [process.execPath, join(app, "src", "main.ts")];
    const gateway = await startProcess({ command });
    const pages = ["/docs", "/docs/guides/presets", "/docs/reference/configuration", "/llms.txt"];
    const statuses = pages.map(async (page) => (await fetch(gateway.url + page)).status);
    expect(await Promise.all(statuses)).toEqual([200, 200, 200, 200]);
    expect(await gateway.terminate()).toBe(0);
  });

  test("is healthy over plain HTTP and over TLS, and not without a gateway", async () => {
    const check = lines.find((line) => line.startsWith("HEALTHCHECK"))?.split(" CMD ")[1] ?? "[]";
    const [, ...parameters] = JSON.parse(check) as string[];
    const isHealthy = async (port: number): Promise<boolean> => {
      const command = [process.execPath, ...parameters];
      return (await Bun.spawn(command, { env: { PORT: String(port) } }).exited) === 0;
    };
    const folder = temporaryDirectory();
    for (const [name, text] of Object.entries(createAuthority().issue("gateway.example.com")))
      writeFileSync(join(folder, `${name}.pem`), text);
    const tls = `server: { tls: { cert: ${folder}/cert.pem, key: ${folder}/key.pem } }\n`;
    for (const yaml of ["", tls]) {
      const gateway = await startProcess({ yaml });
      expect(await isHealthy(gateway.port)).toBe(true);
      expect(await gateway.terminate()).toBe(0);
      expect(await isHealthy(gateway.port)).toBe(false);
    }
  });

  test("is started with the environment of npm start", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    const variables = scripts["start"]?.match(/[A-Z_]+=\d+/g) ?? [];
    expect(variables.length).toBe(2);
    for (const variable of variables) {
      expect(text("Dockerfile")).toContain(variable);
      expect(text("systemd/switchyard.service")).toContain(variable);
    }
  });
});

test("compose files are valid YAML and name existing files", () => {
  for (const name of ["one.yaml", "cluster.yaml"]) {
    const { services, configs = {} } = parse(text(`compose/${name}`), { merge: true }) as {
      services: Record<string, unknown>;
      configs?: Record<string, { file: string }>;
    };
    expect(services["gateway"]).toBeDefined();
    for (const { file } of Object.values(configs))
      expect(existsSync(join(deploy, "compose", file))).toBe(true);
  }
});

test("the cluster keeps metrics off its public port, where Prometheus finds them", () => {
  const port = /SWITCHYARD_METRICS_PORT: "(\d+)"/.exec(text("compose/cluster.yaml"))?.[1];
  expect(port).toBeDefined();
  expect(text("prometheus/prometheus.yaml")).toContain(`port: ${port} }`);
  expect(text("compose/Caddyfile")).not.toContain(`${port}`);
});

testWith("promtool")(
  `alert rules are valid and fire when they should${isMissing("promtool")}`,
  () => {
    expect(run("promtool", "check", "rules", "deploy/prometheus/alerts.yaml")).toMatchObject({
      exitCode: 0,
    });
    expect(run("promtool", "test", "rules", "deploy/prometheus/alerts.test.yaml")).toMatchObject({
      exitCode: 0,
    });
  },
);
