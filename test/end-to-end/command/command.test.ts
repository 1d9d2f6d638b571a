import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import {
  endProcesses,
  runProcess,
  startProcess,
  temporaryDirectory,
  type GatewayProcess,
} from "../../support/process.ts";
import { programPath } from "../../support/program.ts";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { at } from "../api/at.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import { jsonOf, runCommand, runCommandProcess } from "./run-command.ts";

const dataDirectory = temporaryDirectory();
let gateway: GatewayProcess;
const online = () => ({
  environment: {
    SWITCHYARD_URL: gateway.url,
    SWITCHYARD_MANAGEMENT_KEY: testManagementKey,
    SWITCHYARD_KEY: testLlmKey,
  },
});

beforeAll(async () => {
  gateway = await startProcess({ dataDirectory, environment: bootstrapVariables });
});
afterAll(endProcesses);

describe("the command beside a running gateway", () => {
  test("lists and shows customers, and adds credits", async () => {
    await fetch(`${gateway.url}/v1/customers`, {
      method: "POST",
      headers: { authorization: `Bearer ${testManagementKey}` },
      body: JSON.stringify({ external_id: "shop", plan: { type: "prepaid" } }),
    });
    const credited = await runCommand(["customers", "credit", "shop", "2.5"], online());
    expect(credited.stdout).toContain("The customer shop has $2.5 left.");
    const listed = await runCommandProcess(["customers", "list"], online());
    expect(listed.stdout).toMatch(/shop +\$0 +\$2\.5 +0 +\$0 +\$0 +\$0 +active/);
    const shown = await runCommand(["--json", "customers", "show", "shop"], online());
    expect(jsonOf(shown)).toMatchObject({ external_id: "shop", remaining: 2.5 });
  });

  test("creates, lists and shows teams, and keys in them", async () => {
    const named = ["--limit", "5", "--period", "weekly", "--zone", "Europe/Berlin"];
    const made = jsonOf(
      await runCommand(["--json", "teams", "create", "Research", ...named], online()),
    );
    expect(made).toMatchObject({ limit: 5, period: "weekly", time_zone: "Europe/Berlin" });
    const id = String(at(made, "id"));
    const key = await runCommand(["--json", "keys", "create", "notebook", "--team", id], online());
    expect(jsonOf(key)).toMatchObject({ data: { team_id: id } });
    const listed = await runCommand(["teams", "list"], online());
    expect(listed.stdout).toMatch(/Research +\$5 weekly +\$0 +\$5 +0 +1 +all/);
    const stranger = await runCommand(["teams", "add", "Research", "a@example.com"], online());
    expect(stranger.exitCode).not.toBe(0);
  });

  test("lists, shows, extends and ends runs", async () => {
    const made: unknown = await (
      await fetch(`${gateway.url}/v1/runs`, {
        method: "POST",
        headers: { authorization: `Bearer ${testLlmKey}` },
        body: JSON.stringify({ name: "nightly", limit: 0.5 }),
      })
    ).json();
    const id = String(at(made, "data.id"));
    const listed = await runCommand(["runs", "list"], online());
    expect(listed).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("nightly") });
    const added = await runCommand(["--json", "runs", "add", id, "0.25"], online());
    expect(jsonOf(added)).toMatchObject({ limit: 0.75, remaining: 0.75 });
    const shown = await runCommand(["--json", "runs", "show", id], online());
    expect(jsonOf(shown)).toMatchObject({ id, runs: [], generations: [] });
    const ended = await runCommand(["runs", "end", id], online());
    expect(ended).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("has ended") });
  });

  test("creates a key with a limit, lists and revokes it", async () => {
    const created = await runCommand(
      [
        "keys",
        "create",
        "laptop",
        "--limit",
        "5",
        "--reset",
        "daily",
        "--models",
        "sandbox/chat:free",
      ],
      online(),
    );
    expect(created).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining("not shown again"),
    });
    const secret = created.stdout.trim();
    expect(secret).toStartWith("sk-svc-v1-");
    const listed = await runCommand(["--json", "keys", "list"], online());
    expect(jsonOf(listed)).toContainEqual(
      expect.objectContaining({
        name: "laptop",
        limit: 5,
        limit_reset: "daily",
        allowed_models: ["sandbox/chat:free"],
      }),
    );
    expect((await runCommand(["keys", "list"], online())).stdout).toMatch(
      /^ID +NAME +KEY +LIMIT[\s\S]+laptop +\S+ +\$5 daily +\$5 +never +active/m,
    );
    const asked = await runCommand(["--key", secret, "--json", "ask", "Hello"], online());
    expect(jsonOf(asked)).toMatchObject({
      model: "sandbox/chat:free",
      content: expect.any(String),
    });
    expect((await runCommand(["keys", "revoke", "laptop"], online())).stdout).toMatch(
      /^The key laptop \(key_\S+\) is revoked\.\n$/,
    );
    expect(await runCommand(["--key", secret, "ask", "Hello"], online())).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("401"),
    });
    expect(await runCommand(["keys", "revoke", "laptop"], online())).toMatchObject({ exitCode: 1 });
    const environment = { SWITCHYARD_URL: gateway.url };
    expect(await runCommand(["ask", "Hello"], { environment })).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("set SWITCHYARD_KEY"),
    });
  });

  test("grants credits to the only workspace and exports it without secrets", async () => {
    const granted = await runCommand(
      ["--json", "credits", "grant", "2.5", "--description", "for a trial"],
      online(),
    );
    expect(jsonOf(granted)).toMatchObject({
      object: "credit_grant",
      amount: 2.5,
      bucket: "topup",
      description: "for a trial",
    });
    const exported = await runCommand(["export"], online());
    expect(jsonOf(exported)).toMatchObject({
      object: "workspace_export",
      credits: { balance: 12.5 },
      left_out: {},
    });
    expect(exported.stdout).not.toContain(testLlmKey);
    const file = join(temporaryDirectory(), "export.json");
    expect(await runCommand(["export", "--output", file], online())).toMatchObject({
      exitCode: 0,
      stdout: `Exported to ${file}.\n`,
    });
    expect(at(await Bun.file(file).json(), "keys.data.0.name")).toBeString();
  });

  test("a grant names one workspace a line where there are several", async () => {
    const workspaces = ["one", "two"].map((name) => ({ id: `ws_${name}`, name }));
    const several = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => Response.json({ object: "list", data: workspaces, total: 25, has_more: true }),
    });
    const environment = { ...online().environment, SWITCHYARD_URL: several.url.origin };
    expect(await runCommand(["credits", "grant", "1"], { environment })).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(
        /there are 25 workspaces; name one with --workspace:\n {2}ws_one {2}one\n {2}ws_two {2}two\n {2}and 23 more; \S/,
      ),
    });
    await several.stop(true);
  });

  test("lists models, and streams a response with its cost", async () => {
    expect((await runCommand(["models", "sandbox/chat"], online())).stdout).toMatch(
      /^MODEL +CONTEXT +INPUT\/1M +OUTPUT\/1M\nsandbox\/chat:free +131072 +\$0 +\$0\n$/,
    );
    const answer = await runCommand(
      ["ask", "sandbox:tokens=5", "--model", "sandbox/chat:free"],
      online(),
    );
    expect(answer).toMatchObject({
      exitCode: 0,
      stderr: expect.stringMatching(/^sandbox\/chat:free: \d+ tokens in, 5 out, \$0\n$/),
    });
    expect(answer.stdout.trim()).not.toBe("");
  });

  test("needs no key on the gateway's own data directory, and says for whom it acts", async () => {
    const own = { environment: { SWITCHYARD_DATA_DIR: dataDirectory, PORT: "1" } };
    const socket = statSync(join(dataDirectory, "command.sock"));
    expect(socket.mode & 0o777).toBe(0o600);
    const granted = await runCommand(["credits", "grant", "5"], own);
    expect(granted).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining(
        `As the operator of ${gateway.url}, in the workspace First workspace.`,
      ),
    });
    const created = await runCommand(["keys", "create", "colleague"], own);
    expect(created.stdout).toStartWith("sk-svc-v1-");
    // The keys of both runs were revoked.
    const listed = await fetch(`${gateway.url}/api/v1/management-keys`, {
      headers: { authorization: `Bearer ${testManagementKey}` },
    });
    expect(await listed.text()).not.toContain("switchyard command");
  });

  test("names a missing key and a gateway that does not answer", async () => {
    const keyless = await runCommand(["keys", "list"], {
      environment: { SWITCHYARD_URL: gateway.url },
    });
    expect(keyless).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("set SWITCHYARD_MANAGEMENT_KEY or --key"),
    });
    const away = await runCommand(["--url", "http://127.0.0.1:1", "models"]);
    expect(away).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("no gateway answers at http://127.0.0.1:1"),
    });
  });

  test("explains a key of the configuration, and names one that was probably meant", async () => {
    const explained = await runCommand(["check", "--explain", "retention.log_budget_gb"]);
    expect(explained).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/Gigabytes for generation records[\s\S]*default {2}10\n/),
    });
    expect(await runCommand(["check", "--explain", "tls.cert"])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("Did you mean server.tls.cert?"),
    });
  });

  test("exits with 2 for unknown words or options", async () => {
    for (const parameters of [
      ["cheese"],
      ["keys", "create"],
      ["--cheese"],
      ["keys", "create", "x", "--limit", "much"],
      ["completion", "cmd"],
    ]) {
      expect([parameters, (await runCommand(parameters, online())).exitCode]).toEqual([
        parameters,
        2,
      ]);
    }
    expect(await runCommandProcess(["cheese"])).toMatchObject({
      exitCode: 2,
      stdout: "",
      stderr: expect.stringContaining("unknown command 'cheese'"),
    });
    expect(await runCommandProcess(["--help"])).toMatchObject({
      exitCode: 0,
      stdout: (await runCommand(["--help"])).stdout,
    });
    expect((await runCommand(["--help"])).stdout).toMatch(
      /start .*\n[\s\S]*doctor[\s\S]*backup[\s\S]*keys[\s\S]*completion/,
    );
    expect((await runCommand(["completion", "bash"])).stdout).toContain(
      '"keys") words="create list revoke --help" ;;',
    );
  });
});

describe("the command without a gateway", () => {
  test("works on the data directory and leaves no key of its own valid", async () => {
    await gateway.terminate();
    const offline = { dataDirectory };
    const created = await runCommand(["--json", "keys", "create", "offline"], offline);
    expect(created).toMatchObject({ exitCode: 0, stderr: "" });
    expect(jsonOf(created)).toMatchObject({
      key: expect.stringMatching(/^sk-svc-v1-/),
      data: { name: "offline" },
    });
    const managementKeys = at(
      jsonOf(await runCommand(["export"], offline)),
      "management_keys.data",
    ) as {
      name: string;
      status?: string;
    }[];
    const own = managementKeys.filter(({ name }) => name === "switchyard command");
    // Two runs here, and two beside the gateway above.
    expect(own.length).toBe(4);
    gateway = await startProcess({ dataDirectory });
    const listed = jsonOf(await runCommand(["--json", "keys", "list"], online()));
    expect(listed).toContainEqual(expect.objectContaining({ name: "offline" }));
    const left = await fetch(`${gateway.url}/v1/management-keys`, {
      headers: { authorization: `Bearer ${testManagementKey}` },
    });
    expect(at(await left.json(), "data")).not.toContainEqual(
      expect.objectContaining({ name: "switchyard command" }),
    );
  });

  test("reports that there is no database yet", async () => {
    const answer = await runCommand(["keys", "list"], { environment: { PORT: "1" } });
    expect(answer).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("run `switchyard start` first"),
    });
  });

  test("checks a configuration and names the lines of its errors", async () => {
    expect(await runCommand(["check"], { yaml: "server:\n  port: 80\n" })).toMatchObject({
      exitCode: 0,
      stdout: "The configuration can be used.\n",
    });
    const wrong = { yaml: "server:\n  port: 80\nretention:\n  log_budget_gb: many\n" };
    expect(await runCommand(["check"], wrong)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("switchyard.yaml:4 retention.log_budget_gb"),
    });
    expect(jsonOf(await runCommand(["--json", "check"], wrong))).toMatchObject({
      valid: false,
      problems: [{ key: "retention.log_budget_gb", line: 4 }],
    });
    const lost = { yaml: "server: { tls: { cert: cert.pem, key: key.pem } }\n" };
    expect(await runCommand(["check"], lost)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/server\.tls\.cert: .*cannot be read/),
    });
  });

  test("starts a gateway that ends with the command", async () => {
    const root = join(import.meta.dir, "..", "..", "..");
    const started = await startProcess({
      command: ["node", join(root, "bin", "switchyard.mjs"), "start", "--host", "127.0.0.1"],
    });
    expect((await fetch(`${started.url}/readyz`)).status).toBe(200);
    expect(await started.terminate()).toBe(0);
    expect(fetch(`${started.url}/readyz`)).rejects.toThrow();
  });
});

test("a document is written whole to a pipe that takes it in pieces", async () => {
  const data = Array.from({ length: 5_000 }, (_, index) => ({ id: `key_${index}`, name: "long" }));
  const server = Bun.serve({
    port: 0,
    fetch: ({ url }) => (url.endsWith("/healthz") ? new Response("ok") : Response.json({ data })),
  });
  const named = ["--json", "--url", `http://127.0.0.1:${server.port}`, "--key", "ak_any"];
  const program = [process.execPath, programPath("switchyard"), ...named, "keys", "list"];
  const { stdout } = await runProcess({ command: ["sh", "-c", '"$@" | cat', "sh", ...program] });
  await server.stop(true);
  expect(JSON.parse(stdout)).toEqual(data);
});
