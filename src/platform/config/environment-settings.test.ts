import { expect, test } from "bun:test";
import { ConfigurationError, type ConfigurationProblem } from "./configuration-error.ts";
import { readEnvironment, withSecretFiles } from "./environment-settings.ts";

const files: Record<string, string> = {
  "/run/secrets/database": "postgres://u:p@db/switchyard\n",
  "/run/secrets/openai": "  sk-from-a-file\n",
  "/run/secrets/empty": "\n",
};

const readFile = (path: string): string => {
  const text = files[path];
  if (text === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`);
  return text;
};

test("secrets are read from the files in NAME_FILE variables, without surrounding whitespace", () => {
  const environment = {
    DATABASE_URL_FILE: "/run/secrets/database",
    OPENAI_API_KEY_FILE: "/run/secrets/openai",
    PORT: "0",
  };
  expect(withSecretFiles(environment, readFile)).toEqual({
    ...environment,
    DATABASE_URL: "postgres://u:p@db/switchyard",
    OPENAI_API_KEY: "sk-from-a-file",
  });
});

test.each([
  ["9000000", 9_000_000_000_000_000n],
  ["9000000.000000001", undefined],
  ["99999999999999999999", undefined],
])("bootstrap credits of %s are an amount that accounts can hold, or refused", (credits, nano) => {
  const problems: ConfigurationProblem[] = [];
  const { bootstrap } = readEnvironment({ SWITCHYARD_BOOTSTRAP_CREDITS: credits }, problems);
  expect(bootstrap.creditsNanoUsd).toBe(nano);
  expect(problems.map(({ key }) => key)).toEqual(
    nano === undefined ? ["SWITCHYARD_BOOTSTRAP_CREDITS"] : [],
  );
});

test.each([
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "AWS_BEARER_TOKEN_BEDROCK",
  "GOOGLE_APPLICATION_CREDENTIALS",
  "OTEL_EXPORTER_OTLP_HEADERS",
  "SWITCHYARD_SECRETS_KEY_PREVIOUS",
])("%s can be a file", (name) => {
  const read = withSecretFiles({ [`${name}_FILE`]: "/run/secrets/openai" }, readFile);
  expect(read[name]).toBe("sk-from-a-file");
});

test("file variables of libraries, other settings and empty variables are left unchanged", () => {
  const environment = {
    AWS_WEB_IDENTITY_TOKEN_FILE: "/var/run/token",
    LOG_FILE: "/var/log/x",
    REDIS_URL_FILE: "",
    SSL_CERT_FILE: "/c.pem",
  };
  expect(withSecretFiles(environment, readFile)).toBe(environment);
});

test.each([
  [{ OPENAI_API_KEY_FILE: "/missing" }, "OPENAI_API_KEY_FILE: cannot be read: ENOENT"],
  [
    { OPENAI_API_KEY_FILE: "/run/secrets/openai", OPENAI_API_KEY: "sk-x" },
    "OPENAI_API_KEY_FILE: OPENAI_API_KEY is set as well; unset one of the two",
  ],
  [
    { REDIS_URL_FILE: "/run/secrets/empty" },
    "REDIS_URL_FILE: the file /run/secrets/empty is empty",
  ],
])("%p is refused with the name of the variable", (environment, message) => {
  expect(() => withSecretFiles(environment, readFile)).toThrow(message);
  expect(() => withSecretFiles(environment, readFile)).toThrow(ConfigurationError);
});
