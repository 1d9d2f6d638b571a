import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import {
  endProcesses,
  runProcess,
  startProcess,
  temporaryDirectory,
  type GatewayProcess,
} from "../../support/process.ts";
import { at } from "../api/at.ts";
import { freePort } from "./support/ports.ts";

const root = join(import.meta.dir, "..", "..", "..");
const hasProc = existsSync("/proc/self/stat");
const hasCurl = Bun.which("curl") !== null;
const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((each) => each?.address === "::1");
const keyLine = /^First key {2}(sk-svc-v1-\S+) {3}\(shown once\)$/;
const commandStart = "Try it     ";

/** What a user gets who pastes the last command of the announcement into a shell. */
async function pasteCurlLine(
  { stdoutLines }: GatewayProcess,
  environment: Record<string, string> = {},
): Promise<unknown> {
  const command =
    stdoutLines.find((line) => line.startsWith(commandStart))?.slice(commandStart.length) ??
    "no command was printed";
  const shell = Bun.spawn(["sh", "-c", `${command} --silent --show-error`], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env["PATH"], ...environment },
  });
  const [text, complaint] = await Promise.all([
    new Response(shell.stdout).text(),
    new Response(shell.stderr).text(),
  ]);
  if ((await shell.exited) !== 0) throw new Error(`${command}\nsaid: ${complaint}`);
  return JSON.parse(text);
}

const secretIn = (lines: readonly string[]): string | undefined =>
  lines.map((line) => keyLine.exec(line)?.[1]).find((secret) => secret);

const dataDirectory = temporaryDirectory();
let first: { lines: readonly string[]; answer: unknown; secret: string };
let second: GatewayProcess;
let secondCpuMs: number;

/** CPU time of a process so far in milliseconds (proc(5), stat), which a busy machine keeps. */
function cpuMs(pid: number): number {
  const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user, system] = fields.split(" ").slice(11, 13).map(Number);
  return ((user ?? Number.NaN) + (system ?? Number.NaN)) * 10;
}

beforeAll(async () => {
  const gateway = await startProcess({ dataDirectory });
  first = {
    lines: gateway.stdoutLines,
    answer: hasCurl ? await pasteCurlLine(gateway) : undefined,
    secret: secretIn(gateway.stdoutLines) ?? "none was shown",
  };
  expect(await gateway.terminate()).toBe(0);
  second = await startProcess({ dataDirectory });
  secondCpuMs = hasProc ? cpuMs(second.child.pid) : 0;
});
afterAll(endProcesses);

describe("a start", () => {
  test("prints one ready line with its own port and serves from then on", async () => {
    for (const lines of [first.lines, second.stdoutLines]) {
      expect(lines.filter((line) => line.startsWith("switchyard ready"))).toEqual([
        lines.at(-1) ?? "",
      ]);
      expect(lines.at(-1)).toMatch(/^switchyard ready http:\/\/127\.0\.0\.1:[1-9]\d{3,4}$/);
    }
    expect((await fetch(`${second.url}/readyz`)).status).toBe(200);
  });

  const quick = "on existing data uses less than three seconds of CPU";
  test.skipIf(!hasProc)(hasProc ? quick : `${quick} (missing: /proc)`, () => {
    console.log(
      `second start: ready after ${second.startMs.toFixed(0)} ms, ${secondCpuMs} ms of CPU`,
    );
    expect(secondCpuMs).toBeLessThan(3_000);
  });

  test("shows the first key once, and only on the first start", () => {
    expect(first.secret).toStartWith("sk-svc-v1-");
    expect(first.lines.join("\n").split(first.secret)).toHaveLength(3);
    for (const line of first.lines.filter((each) => !each.startsWith(commandStart)))
      expect(line.length).toBeLessThan(140);
    expect(secretIn(second.stdoutLines)).toBeUndefined();
    expect(second.stdoutLines.join("\n")).not.toContain("sk-svc-v1-");
  });

  const printed = "prints a command that works unchanged, and later with the key in the shell";
  test.skipIf(!hasCurl)(hasCurl ? printed : `${printed} (missing: curl)`, async () => {
    expect(at(first.answer, "choices.0.message.content")).toBeString();
    const later = await pasteCurlLine(second, { SWITCHYARD_KEY: first.secret });
    expect(at(later, "choices.0.message.content")).toBeString();
  });

  test.skipIf(!hasIpv6)("writes an IPv6 host in brackets", async () => {
    const gateway = await startProcess({ environment: { HOST: "::1" } });
    expect(gateway.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
  });

  test("listens on HOST and PORT, and prints the public address for clients", async () => {
    const gateway = await startProcess({ environment: { HOST: "0.0.0.0" } });
    expect(gateway.url).toMatch(/^http:\/\/0\.0\.0\.0:\d+$/);
    const { port } = gateway;
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
    const links = gateway.stdoutLines
      .slice(0, -1)
      .flatMap((line) => line.match(/http:\/\/[^\s,:]+:\d+/g) ?? []);
    expect(links).toContain(`http://localhost:${port}`);
    for (const link of new Set(links)) expect((await fetch(`${link}/healthz`)).status).toBe(200);
    expect(links.join(" ")).not.toContain("0.0.0.0");
    await gateway.terminate();
    const chosen = freePort();
    const again = await startProcess({
      environment: {
        PORT: String(chosen),
        SWITCHYARD_PUBLIC_URL: "https://gateway.example.com/",
      },
    });
    expect(again.port).toBe(chosen);
    expect(again.stdoutLines.at(-1)).toStartWith("switchyard ready http://127.0.0.1:");
    const example = again.stdoutLines.find((line) => line.startsWith(commandStart));
    expect(example).toContain("https://gateway.example.com/v1/chat/completions");
  });

  test("writes only the announcement to stdout, and the log to stderr as JSON", async () => {
    const lines = second.stderrText.split("\n").filter((line) => line !== "");
    expect(lines.map((line) => typeof JSON.parse(line))).toEqual(lines.map(() => "object"));
    const announced =
      /^(?:(?:Switchyard|switchyard ready) |(?:Dashboard|API|Docs|Models|Try it) {2,})/;
    expect(second.stdoutLines.filter((line) => !announced.test(line))).toEqual([]);
  });
});

/** `npm start` installs what is missing first; a test is not the place for that. */
const isInstalled = ((): boolean => {
  const stamp = join(root, "node_modules", ".switchyard-lock");
  const lock = new Bun.CryptoHasher("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  return existsSync(stamp) && readFileSync(stamp, "utf8").startsWith(lock);
})();

describe("npm start", () => {
  test.skipIf(Bun.which("npm") === null || !isInstalled)(
    "serves and exits cleanly on request",
    async () => {
      const empty = join(temporaryDirectory(), "empty.yaml");
      await Bun.write(empty, "");
      const command = ["npm", "--prefix", root, "--silent", "start"];
      const gateway = await startProcess({ command, environment: { SWITCHYARD_CONFIG: empty } });
      try {
        expect(gateway.stdoutLines.at(-1)).toBe(`switchyard ready ${gateway.url}`);
        expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
      } finally {
        expect(await gateway.terminate()).toBe(0);
      }
      await gateway.stderrHas('"msg":"drained"');
    },
  );
});

describe("a second gateway on the same data", () => {
  test("is refused with a clear message while the first one continues", async () => {
    const refused = await runProcess({ dataDirectory });
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain("another gateway process uses");
    expect(refused.stderr).toContain("stop it first, or give this one its own data directory");
    expect(refused.stderr).not.toContain("    at ");
    expect(refused.stdout).toBe("");
    expect((await fetch(`${second.url}/readyz`)).status).toBe(200);
  });
});

describe("a second gateway on the same port", () => {
  const takenPort = (): string => String(second.port);
  test.each([
    ["of the API", () => ({ PORT: takenPort() })],
    ["of the metrics", () => ({ PORT: "0", SWITCHYARD_METRICS_PORT: takenPort() })],
  ])("%s is refused and takes none of the first one's requests", async (_, environment) => {
    const refused = await runProcess({ environment: environment() });
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain(`port ${second.port} is taken by another program`);
    expect((await fetch(`${second.url}/readyz`)).status).toBe(200);
  });
});

test("a gateway starts as soon as the one before it on the same data was killed", async () => {
  await second.kill9();
  const next = await startProcess({ dataDirectory });
  expect((await fetch(`${next.url}/readyz`)).status).toBe(200);
});
