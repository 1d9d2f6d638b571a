import { describe, expect, test } from "bun:test";
import { createLogger, type LogLevel } from "./logger.ts";
import { omitted, redacted, redactText } from "./redact.ts";
import { GatewayError } from "../kernel/errors.ts";

function recorded(level: LogLevel = "debug", includeContent = false) {
  const lines: string[] = [];
  const logger = createLogger({ level, includeContent, write: (line) => void lines.push(line) });
  const last = (): Record<string, unknown> => JSON.parse(lines.at(-1) ?? "null");
  return { lines, logger, last };
}

describe("log lines", () => {
  test("are one JSON object each, with level, time, fields and message", () => {
    const { lines, logger, last } = recorded();
    logger.warn({ provider: "acme", attempt: 2 }, "upstream is slow");
    expect(lines).toHaveLength(1);
    expect(lines[0]?.endsWith("}\n")).toBe(true);
    expect(last()).toMatchObject({
      level: "warn",
      provider: "acme",
      attempt: 2,
      msg: "upstream is slow",
    });
    expect(Object.keys(last())).not.toContain("hostname");
    expect(Number.isNaN(Date.parse(String(last().time)))).toBe(false);
  });

  test("below the level are not written", () => {
    const { lines, logger } = recorded("warn");
    logger.info({}, "quiet");
    logger.debug({}, "quiet");
    expect(lines).toHaveLength(0);
    logger.error({}, "loud");
    expect(lines).toHaveLength(1);
  });

  test("go to standard error", () => {
    const loggerPath = new URL("./logger.ts", import.meta.url).pathname;
    const code =
      `const { createLogger } = await import(${JSON.stringify(loggerPath)});` +
      `createLogger({ level: "info" }).info({ port: 1 }, "listening");`;
    const child = Bun.spawnSync([process.execPath, "-e", code], { stdout: "pipe", stderr: "pipe" });
    expect(child.stdout.toString()).toBe("");
    expect(JSON.parse(child.stderr.toString())).toMatchObject({
      level: "info",
      port: 1,
      msg: "listening",
    });
  });

  test("arrive complete when many are written at once", async () => {
    const loggerPath = new URL("./logger.ts", import.meta.url).pathname;
    const code =
      `const { createLogger } = await import(${JSON.stringify(loggerPath)});` +
      'const { info } = createLogger({ level: "info" });' +
      'for (let index = 0; index < 200; index += 1) info({ index, text: "x".repeat(5_000) }, "long");';
    const child = Bun.spawn([process.execPath, "-e", code], { stderr: "pipe" });
    const lines = (await new Response(child.stderr).text()).trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { index: number }).index)).toEqual(
      Array.from({ length: 200 }, (_, index) => index),
    );
  });
});

describe("secrets in log lines", () => {
  const secretKeys = [
    "authorization",
    "Authorization",
    "proxy-authorization",
    "x-api-key",
    "api_key",
    "apiKey",
    "apikey",
    "key",
    "secret",
    "client_secret",
    "webhookSecret",
    "password",
    "cookie",
    "set-cookie",
    "token",
    "accessToken",
    "refresh_token",
    "OPENAI_API_KEY",
    "SWITCHYARD_ENCRYPTION_KEY",
    "x-goog-api-key",
    "credential",
    "args",
  ];
  test.each(secretKeys)("are redacted under the key %s at any depth", (key) => {
    const { lines, logger } = recorded();
    logger.info({ [key]: "hunter2", nested: { list: [{ [key]: { inner: "hunter2" } }] } }, "seen");
    expect(lines.join("")).not.toContain("hunter2");
    expect(lines.join("")).toContain(redacted);
  });

  test.each(["keyId", "key_hash", "inputTokens", "max_tokens", "monkey", "tokens"])(
    "do not include values of %s",
    (key) => {
      const { logger, last } = recorded();
      logger.info({ [key]: "value" }, "seen");
      expect(last()[key]).toBe("value");
    },
  );

  test.each([
    ["key sk-svc-v1-abcDEF0123456789 refused", "key sk-svc-v1-[redacted] refused"],
    ["\nsk-svc-v1-abcDEF0123456789", "\nsk-svc-v1-[redacted]"],
    ["ak_live_abcDEF0123456789,", "ak_live_[redacted],"],
    ["ak_abcDEF0123456789", "ak_[redacted]"],
    ["sk-ant-api03-abcdef-ghi_jkl", "sk-[redacted]"],
    ["AIzaSyA1234567890abcdef", "AIza[redacted]"],
    ["Authorization: Bearer abc.def.ghi", "Authorization: Bearer [redacted]"],
    ["GET /v1/models?key=abcdef&alt=sse", "GET /v1/models?key=[redacted]&alt=sse"],
    ["postgres://me:hunter2@db:5432/x", "postgres://me:[redacted]@db:5432/x"],
    ["redis://:hunter2@cache:6379", "redis://:[redacted]@cache:6379"],
    [
      "a disk-utilisation risk-assessment task-forces",
      "a disk-utilisation risk-assessment task-forces",
    ],
    ["http://127.0.0.1:8787/v1/chat", "http://127.0.0.1:8787/v1/chat"],
  ])("are redacted in the text %j", (text, expected) => {
    expect(redactText(text)).toBe(expected);
    const { logger, last } = recorded();
    logger.info({ detail: text }, text);
    expect(last()).toMatchObject({ msg: expected, detail: expected });
  });

  test("are redacted in headers, errors and their causes", () => {
    const { lines, logger, last } = recorded();
    const cause = new Error("refused sk-svc-v1-abcDEF0123456789");
    const error = new GatewayError("upstream_401", "The provider refused.", {
      detail: "Bearer hunter2",
      cause,
    });
    logger.error(
      { error, headers: new Headers({ authorization: "hunter2", accept: "text/plain" }) },
      "failed",
    );
    expect(lines.join("")).not.toContain("hunter2");
    expect(lines.join("")).not.toContain("abcDEF");
    expect(last()).toMatchObject({
      error: {
        type: "GatewayError",
        code: "upstream_401",
        message: "The provider refused.",
        cause: { type: "Error" },
      },
      headers: { authorization: redacted, accept: "text/plain" },
    });
  });
});

describe("content of requests", () => {
  test("is left out by default and logged on demand", () => {
    const fields = {
      request: { model: "acme/large", messages: [{ role: "user", content: "my diagnosis" }] },
    };
    const quiet = recorded();
    quiet.logger.info(fields, "request");
    expect(quiet.last()).toMatchObject({ request: { model: "acme/large", messages: omitted } });
    const open = recorded("debug", true);
    open.logger.info(fields, "request");
    expect(open.lines.join("")).toContain("my diagnosis");
  });
});

describe("unusual values", () => {
  test("such as cycles, bigints, bytes, dates and long lists give a bounded line", () => {
    const { logger, last, lines } = recorded();
    const loop: Record<string, unknown> = {
      chargedNanoUsd: 12n,
      bytes: new Uint8Array(9),
      at: new Date(0),
    };
    loop.self = loop;
    logger.info(
      { loop, list: Array.from({ length: 60 }, (_, index) => index), text: "x".repeat(20_000) },
      "odd",
    );
    const expected = { chargedNanoUsd: "12", bytes: "[9 bytes]", at: "1970-01-01T00:00:00.000Z" };
    expect(last()).toMatchObject({ loop: expected });
    expect(last().list).toHaveLength(51);
    expect(lines[0]?.length).toBeLessThan(10_000);
  });
});
