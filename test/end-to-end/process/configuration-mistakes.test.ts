import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { appSettings, readConfiguration } from "../../../src/app/settings-of.ts";
import { ConfigurationError } from "../../../src/platform/config/configuration-error.ts";
import {
  endProcesses,
  runProcess,
  startProcess,
  temporaryDirectory,
  type ProcessOptions,
} from "../../support/process.ts";
import { freePort, isRefused } from "./support/ports.ts";
import { queryDatabase } from "./support/query-database.ts";

afterAll(endProcesses);

/** A provider named acme with these lines in its entry. */
const provider = (...lines: string[]): string =>
  ["providers:", "  - id: acme", ...lines.map((line) => `    ${line}`), ""].join("\n");

interface Mistake extends ProcessOptions {
  /** Texts that stderr has to hold, each on one line. */
  says: readonly RegExp[];
}

const mistakes: Record<string, Mistake> = {
  "an unknown key, with the similar valid one": {
    yaml: "server:\n  port: 0\n\nretentoin:\n  generations_days: 3\n",
    says: [/switchyard\.yaml:4 .*retentoin.*retention/],
  },
  "a deeply nested unknown key": {
    yaml: provider("base_url: http://127.0.0.1:9/v1", "apikey: x"),
    says: [/switchyard\.yaml:4 .*apikey.*api_key/],
  },
  "deviations of an unknown provider": {
    yaml: provider(
      "base_url: http://127.0.0.1:9/v1",
      "like: vlm",
      "deviations:",
      "  - max_tokens",
      "  - maxtokens",
    ),
    says: [
      /switchyard\.yaml:4 providers\[0\]\.like: expected .*"vllm"/,
      /switchyard\.yaml:7 providers\[0\]\.deviations\[1\]: expected .*"max_tokens"/,
    ],
  },
  "a wrong type": {
    yaml: "retention:\n  generations_days: soon\n",
    says: [/switchyard\.yaml:2 retention\.generations_days: expected an integer/],
  },
  "an invalid URL": {
    yaml: "storage:\n  url: mysql://somewhere\nserver:\n  public_url: not-a-url\n",
    says: [/switchyard\.yaml:2 storage\.url: /, /switchyard\.yaml:4 server\.public_url: /],
  },
  "several errors at once": {
    yaml: "disconnect: maybe\nstorage:\n  url: mysql://x\n  durability: never\nsandbox: { enabled: perhaps }\n",
    environment: { PORT: "eighty", SWITCHYARD_BOOTSTRAP_CREDITS: "-1", LOG_LEVEL: "loud" },
    says: [
      /switchyard\.yaml:1 disconnect: /,
      /switchyard\.yaml:3 storage\.url: /,
      /switchyard\.yaml:4 storage\.durability: /,
      /switchyard\.yaml:5 sandbox\.enabled: /,
      /PORT: /,
      /SWITCHYARD_BOOTSTRAP_CREDITS: /,
      /LOG_LEVEL: /,
    ],
  },
  "two documents": {
    yaml: "server: { port: 0 }\n---\nserver: { port: 1 }\n",
    says: [/switchyard\.yaml:2 a second document begins here/],
  },
  "invalid YAML": {
    yaml: "server:\n  port: 1\n bad: [1\n",
    says: [/switchyard\.yaml:\d /],
  },
  "a reference to an unset variable": {
    yaml: "server:\n  public_url: ${NOWHERE_SET}\n",
    says: [/switchyard\.yaml:2 server\.public_url: .*NOWHERE_SET/],
  },
  "a missing configuration file": {
    environment: { SWITCHYARD_CONFIG: "absent.yaml" },
    says: [/SWITCHYARD_CONFIG: cannot read absent\.yaml: there is no such file/],
  },
  "unsupported proxies, with their secrets left out": {
    yaml: provider("base_url: http://127.0.0.1:9/v1", "proxy: socks5://me:hidden@10.0.0.1:1080"),
    environment: {
      HTTPS_PROXY: "https://me:hidden@proxy.example",
      http_proxy: "ftp://proxy.example",
    },
    says: [
      /switchyard\.yaml:4 providers\[0\]\.proxy: expected the address of a proxy.*socks5: is not supported.*or none/,
      /HTTPS_PROXY: expected the address of a proxy.*https: is not supported/,
      /http_proxy: expected/,
    ],
  },
  "a SOCKS proxy for every scheme": {
    environment: { all_proxy: "socks5://me:hidden@10.0.0.1:1080" },
    says: [/all_proxy: expected the address of a proxy.*socks5: is not supported/],
  },
  "a missing certificate file and one without certificates": {
    yaml: "tls:\n  ca_files:\n    - absent.pem\n    - switchyard.yaml\n",
    says: [
      /switchyard\.yaml:3 tls\.ca_files\[0\]: .*ENOENT/,
      /switchyard\.yaml:4 tls\.ca_files\[1\]: .*BEGIN CERTIFICATE/,
    ],
  },
  "a port above the maximum": {
    environment: { PORT: "70000" },
    says: [/PORT: expected an integer from 0 to 65535/],
  },
  "a bootstrap key with the wrong prefix": {
    environment: { SWITCHYARD_BOOTSTRAP_LLM_KEY: "sk-proj-aaaaaaaaaaaaaaaaaaaaaaaa" },
    says: [/SWITCHYARD_BOOTSTRAP_LLM_KEY: expected sk-svc-v1-/],
  },
  "an unknown plan": {
    environment: { SWITCHYARD_BOOTSTRAP_PLAN: "gold" },
    says: [/SWITCHYARD_BOOTSTRAP_PLAN: /],
  },
  "an encryption key of the wrong length": {
    environment: { SWITCHYARD_ENCRYPTION_KEY: "c2hvcnQ=" },
    says: [/SWITCHYARD_ENCRYPTION_KEY: expected 32 bytes/],
  },
  "an archive URL that is not ClickHouse": {
    environment: { CLICKHOUSE_URL: "http://127.0.0.1:8123" },
    says: [/CLICKHOUSE_URL: expected none or clickhouse\+http/],
  },
  "Postgres without an encryption key": {
    environment: { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" },
    says: [/SWITCHYARD_ENCRYPTION_KEY: is required with Postgres/],
  },
};

/** Mistakes for which a process is started, which reads its configuration as the others are read. */
const started = [
  "several errors at once",
  "a missing configuration file",
  "Postgres without an encryption key",
];

/** Reads the configuration of a process, and gives what is said of it; empty where it can be used. */
async function refusalOf({ yaml, environment = {} }: Mistake): Promise<string> {
  const workingDirectory = temporaryDirectory();
  if (yaml !== undefined) await Bun.write(join(workingDirectory, "switchyard.yaml"), yaml);
  try {
    await readConfiguration({ environment, workingDirectory });
    return "";
  } catch (error) {
    if (error instanceof ConfigurationError) return error.toString();
    throw error;
  }
}

describe("every error is named, for", () => {
  const others = Object.entries(mistakes).filter(([name]) => !started.includes(name));
  test.each(others)("%s", async (_, mistake) => {
    const lines = (await refusalOf(mistake)).split("\n");
    for (const pattern of mistake.says)
      expect(lines.filter((line) => pattern.test(line))).toHaveLength(1);
  });
});

describe("a start is refused with exit code 1 and names every error, for", () => {
  const those = Object.entries(mistakes).filter(([name]) => started.includes(name));
  test.each(those)("%s", async (_, { says, ...options }) => {
    const port = freePort();
    const ended = await runProcess({
      ...options,
      environment: { PORT: String(port), ...options.environment },
    });
    expect(ended.exitCode).toBe(1);
    expect(ended.stdout).toBe("");
    expect(ended.stderr).toStartWith("switchyard cannot start");
    const lines = ended.stderr.split("\n");
    for (const pattern of says) expect(lines.filter((line) => pattern.test(line))).toHaveLength(1);
    expect(ended.stderr).not.toContain("    at ");
    expect(await isRefused(port)).toBe(true);
  });

  test("nothing when the file is empty or has only comments", async () => {
    for (const yaml of ["", "# server:\n", "providers:\n  # - id: acme\n"])
      expect(await refusalOf({ yaml, says: [] })).toBe("");
  });
});

describe("a start is refused with a clear message for", () => {
  const occupied = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: () => undefined },
  });
  afterAll(() => occupied.stop(true));
  const fileAsDirectory = join(temporaryDirectory(), "file");
  const others: Record<string, Mistake> = {
    "a port that is in use": {
      environment: { PORT: String(occupied.port) },
      says: [new RegExp(`port ${occupied.port}`)],
    },
    "a metrics port that is in use": {
      environment: { SWITCHYARD_METRICS_PORT: String(occupied.port) },
      says: [new RegExp(`port ${occupied.port} .*SWITCHYARD_METRICS_PORT=`)],
    },
    "a metrics port that is the API's": {
      environment: { PORT: "8799", SWITCHYARD_METRICS_PORT: "8799" },
      says: [/SWITCHYARD_METRICS_PORT: is the port of the API/],
    },
    "an address of another machine": { environment: { HOST: "192.0.2.1" }, says: [/192\.0\.2\.1/] },
    "a data directory that cannot be created": {
      dataDirectory: join(fileAsDirectory, "data"),
      says: [/SWITCHYARD_DATA_DIR: .*data cannot be written to: .*not a directory/],
    },
    "an unreachable Postgres": {
      yaml: "storage: { wait_s: 0 }\n",
      environment: {
        DATABASE_URL: `postgres://nobody:secret-of-nobody@127.0.0.1:${freePort()}/none`,
        SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString("base64"),
      },
      says: [/cannot open the Postgres database at 127\.0\.0\.1:\d+: /],
    },
  };

  test.each(Object.entries(others))("%s", async (_, { says, ...options }) => {
    await Bun.write(fileAsDirectory, "");
    const ended = await runProcess(options);
    expect(ended.exitCode).toBe(1);
    expect(ended.stdout).toBe("");
    expect(ended.stderr).toStartWith("switchyard cannot start");
    for (const pattern of says) expect(ended.stderr).toMatch(pattern);
    expect(ended.stderr).not.toContain("    at ");
    expect(ended.stderr).not.toContain("secret-of-nobody");
  });

  test("a file that is no database", async () => {
    const dataDirectory = temporaryDirectory();
    const gateway = await startProcess({ dataDirectory });
    await gateway.terminate();
    const path = join(dataDirectory, "switchyard.db");
    await Bun.write(path, "no database".repeat(1_000));
    const ended = await runProcess({ dataDirectory });
    expect(ended).toMatchObject({ exitCode: 1, stdout: "" });
    expect(ended.stderr).toContain(`the database ${path} cannot be used: file is not a database`);
    expect(ended.stderr).toContain("`switchyard restore`");
    expect(ended.stderr).not.toContain("    at ");
  });

  test("a database of a newer release", async () => {
    const dataDirectory = temporaryDirectory();
    const gateway = await startProcess({ dataDirectory });
    await gateway.terminate();
    const later =
      "insert into kysely_migration (name, timestamp) values ('2999-01-01-later', '2999')";
    await queryDatabase(join(dataDirectory, "switchyard.db"), later);
    const ended = await runProcess({ dataDirectory });
    expect(ended).toMatchObject({ exitCode: 1, stdout: "" });
    expect(ended.stderr).toContain("written by a newer release (2999-01-01-later)");
    expect(ended.stderr).not.toContain("    at ");
  });
});

test("the credentials of a bucket for files may come from files", async () => {
  const workingDirectory = temporaryDirectory();
  const place = "files: { url: s3://house/one, access_key_id: named }\n";
  await Bun.write(join(workingDirectory, "switchyard.yaml"), place);
  await Bun.write(join(workingDirectory, "secret"), "kept secret\n");
  const settings = await readConfiguration({
    environment: {
      AWS_ACCESS_KEY_ID: "other",
      AWS_SECRET_ACCESS_KEY_FILE: join(workingDirectory, "secret"),
      AWS_SESSION_TOKEN: " ",
      SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
    },
    workingDirectory,
  });
  expect(appSettings(settings, { version: "1", publicUrl: () => "" }).files?.place).toEqual({
    s3: {
      bucket: "house",
      prefix: "one",
      accessKeyId: "named",
      secretAccessKey: "kept secret",
      sessionToken: undefined,
    },
  });
});
