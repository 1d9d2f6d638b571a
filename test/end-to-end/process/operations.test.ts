import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import {
  endProcesses,
  startProcess,
  type GatewayProcess,
  type ProcessOptions,
} from "../../support/process.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt } from "../api/at.ts";
import { getJson, postChat } from "./support/ask.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { freePort } from "./support/ports.ts";

let upstream: FaultUpstream;
/** A gateway with a provider that has a key, and no other settings. */
let plain: GatewayProcess;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  plain = await start({ yaml: acmeYaml(upstream.baseUrl) });
});
afterAll(async () => {
  await endProcesses();
  upstream.stop();
});

const start = (options: ProcessOptions): Promise<GatewayProcess> =>
  startProcess({ ...options, environment: { ...bootstrapVariables, ...options.environment } });

describe("operations", () => {
  test("/healthz and /readyz return 200 without a credential after the ready line", async () => {
    const { url } = plain;
    const [health, ready] = await Promise.all([fetch(`${url}/healthz`), fetch(`${url}/readyz`)]);
    expect([health.status, await health.json()]).toEqual([200, { status: "ok" }]);
    expect([ready.status, await ready.json()]).toEqual([200, { status: "ready", unready: [] }]);
  });

  test("an access log on a full disk is named in the log, and requests go on", async () => {
    const gateway = await start({ yaml: `${acmeYaml(upstream.baseUrl)}\naccess_log: /dev/full\n` });
    expect((await postChat(gateway)).status).toBe(200);
    await gateway.stderrHas("the access log cannot be written");
    expect((await postChat(gateway)).status).toBe(200);
    await gateway.kill9();
  });

  test("/metrics counts served requests on the API's port", async () => {
    expect((await postChat(plain)).status).toBe(200);
    const response = await fetch(`${plain.url}/metrics`);
    expect(response.headers.get("content-type")).toStartWith("text/plain; version=");
    const lines = (await response.text()).split("\n");
    expect(
      lines.filter((line) => line.includes('model="acme/large"') && / 1$/.test(line)).length,
    ).toBeGreaterThan(0);
    expect(lines.filter((line) => /holds_open\S* 0$/.test(line))).toHaveLength(1);
  });

  test("/metrics moves to its own port, which serves nothing else", async () => {
    const port = freePort();
    const gateway = await start({
      yaml: acmeYaml(upstream.baseUrl),
      environment: { SWITCHYARD_METRICS_PORT: String(port) },
    });
    const elsewhere = `http://127.0.0.1:${port}`;
    expect((await fetch(`${elsewhere}/metrics`)).headers.get("content-type")).toStartWith(
      "text/plain; version=",
    );
    expect((await fetch(`${gateway.url}/metrics`)).status).toBe(404);
    for (const path of ["/healthz", "/docs", "/v1/models", "/"])
      expect((await fetch(elsewhere + path)).status).toBe(404);
    await gateway.kill9();
  });
});

/** Ids of the models that a gateway lists as its own simulated ones. */
async function sandboxModels(gateway: GatewayProcess): Promise<unknown[]> {
  const models = listAt(await getJson(gateway, "/models"), "data").map((model) => at(model, "id"));
  return models.filter((id) => String(id).startsWith("sandbox/"));
}

const saysSimulated = ({ stdoutLines }: GatewayProcess): boolean =>
  stdoutLines.some((line) => /^Models .*simulated/.test(line));
const saysKeyless = ({ stdoutLines }: GatewayProcess): boolean =>
  stdoutLines.some((line) => line.includes("simulated by the sandbox; set OPENAI_API_KEY"));
const exampleModel = ({ stdoutLines }: GatewayProcess): string | undefined =>
  /"model":"([^"]+)"/.exec(stdoutLines.join("\n"))?.[1];

describe("the sandbox", () => {
  const keyless = acmeYaml("http://127.0.0.1:9/v1").replace("    api_key: upstream-secret\n", "");
  const rules: Record<string, ProcessOptions & { runs: boolean; beside?: true }> = {
    "runs when no provider has a key, and listens on loopback only, whatever HOST is": {
      environment: { HOST: "0.0.0.0" },
      runs: true,
    },
    "runs beside a provider without a key": { yaml: keyless, runs: true },
    "runs when the variable of a provider's key is not set": {
      yaml: acmeYaml("http://127.0.0.1:9/v1").replace("upstream-secret", "${ACME_API_KEY}"),
      runs: true,
    },
    "does not run once a vendor's usual variable is set": {
      environment: { OPENAI_API_KEY: "sk-openai" },
      runs: false,
    },
    "runs beside a provider with a key when it is enabled": {
      yaml: acmeYaml("http://127.0.0.1:9/v1", "sandbox: { enabled: true }\n"),
      runs: true,
      beside: true,
    },
    "does not run when it is disabled": { yaml: "sandbox: { enabled: false }\n", runs: false },
  };

  async function expectSandbox(
    gateway: GatewayProcess,
    { runs, beside }: { runs: boolean; beside?: true },
  ): Promise<void> {
    expect((await sandboxModels(gateway)).length > 0).toBe(runs);
    expect([saysSimulated(gateway), saysKeyless(gateway)]).toEqual([runs, runs && beside !== true]);
    const response = await postChat(gateway, { model: "sandbox/chat:free" });
    expect(response.status).toBe(runs ? 200 : 404);
    if (runs) expect(at(await response.json(), "usage.cost")).toBe(0);
  }

  test.each(Object.entries(rules))("%s", async (_, { runs, beside, ...options }) => {
    const gateway = await start(options);
    await expectSandbox(gateway, { runs, ...(beside && { beside }) });
    if (options.environment?.["HOST"] !== undefined) expectLoopback(gateway);
    await gateway.kill9();
  });

  test("does not run beside a provider with a key, and is not in the printed example", async () => {
    await expectSandbox(plain, { runs: false });
    expect(exampleModel(plain)).toBe("acme/large");
  });

  /** The sandbox is the only listener beside that of the API. */
  function expectLoopback(gateway: GatewayProcess): void {
    if (process.platform !== "linux") return;
    const local = listeningAddresses(gateway.child.pid).filter(
      (address) => address !== `00000000:${hexPort(gateway.port)}`,
    );
    expect(local).toHaveLength(1);
    expect(local[0]).toStartWith("0100007F:");
  }
});

const hexPort = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0");

/** Addresses of IPv4 that a process listens at, as /proc/net/tcp writes them (proc(5)). */
function listeningAddresses(pid: number): string[] {
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${descriptor}`))?.[1] ?? [];
      } catch {
        return []; // It was closed meanwhile.
      }
    }),
  );
  const rows = readFileSync(`/proc/${pid}/net/tcp`, "utf8")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/));
  return rows
    .filter(([, , , state, , , , , , inode = ""]) => state === "0A" && inodes.has(inode))
    .map(([, address = ""]) => address);
}
