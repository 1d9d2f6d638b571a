import * as sdk from "@modelcontextprotocol/server";
import { beforeAll, describe, expect, test } from "bun:test";
import { z } from "zod";
import { startGateway } from "../../../support/gateway.ts";
import { sessions } from "../../../support/mcp-upstream/asking-upstream.ts";
import { buildFixtureServer } from "./fixture-server.ts";
import { missingProgram } from "./protocol-programs.ts";
import { resultsOf, sectionOf, type SuiteRun } from "./run-suite.ts";

const missing = missingProgram("conformance");

const calls = [
  "tools-list",
  "tools-call-simple-text",
  "tools-call-image",
  "tools-call-audio",
  "tools-call-embedded-resource",
  "tools-call-mixed-content",
  "tools-call-error",
  "tools-call-with-progress",
  "dns-rebinding-protection",
];

const contents = [
  "completion-complete",
  "resources-list",
  "resources-read-text",
  "resources-read-binary",
  "resources-templates-read",
  "prompts-list",
  "prompts-get-simple",
  "prompts-get-with-args",
  "prompts-get-embedded-resource",
  "prompts-get-with-image",
];

/**
 * The scenarios that a server behind the gateway passes, by revision. Of the others, two of
 * `input_required` look for names of questions, which are the gateway's own.
 */
const scenarios = {
  "2025-11-25": [
    ...calls,
    ...contents,
    "server-initialize",
    "ping",
    "logging-set-level",
    "tools-call-with-logging",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
  ],
  "2026-07-28": [
    ...calls,
    ...contents,
    "http-header-validation",
    "input-required-result-basic-sampling",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-missing-input-response",
    "input-required-result-non-tool-request",
    "input-required-result-result-type",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
  ],
} as const;

const description = "Part of the fixture of the conformance suite.";
const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });
const options = ["option1", "option2", "option3"];
const titled = (words: string) =>
  ["value1", "value2", "value3"].map((value) => ({ const: value, title: `${words} ${value}` }));

const forms = {
  test_elicitation_sep1034_defaults: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
  test_elicitation_sep1330_enums: {
    untitledSingle: { type: "string", enum: options },
    titledSingle: { type: "string", oneOf: titled("Option") },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti: { type: "array", items: { type: "string", enum: options } },
    titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
  },
  test_elicitation: { username: { type: "string" }, email: { type: "string" } },
} as const;

/** A server of the older generation with the suite's tools, which asks its client on the stream. */
function oldServer() {
  const server = buildFixtureServer(sdk, {} as never) as sdk.McpServer;
  server.server.registerCapabilities({ logging: {} });
  for (const [name, properties] of Object.entries(forms))
    server.registerTool(
      name,
      { description, inputSchema: z.object({ message: z.string().optional() }) },
      async ({ message = "Tell us" }, { mcpReq }) => {
        const requestedSchema = { type: "object", properties } as never;
        const { action, content } = await mcpReq.elicitInput({ message, requestedSchema });
        return text(`action=${action}, content=${JSON.stringify(content)}`);
      },
    );
  server.registerTool(
    "test_sampling",
    { description, inputSchema: z.object({ prompt: z.string() }) },
    async ({ prompt }, { mcpReq }) => {
      const messages = [
        { role: "user" as const, content: { type: "text" as const, text: prompt } },
      ];
      return text(JSON.stringify(await mcpReq.requestSampling({ messages, maxTokens: 100 })));
    },
  );
  server.registerTool("test_tool_with_logging", { description }, async ({ mcpReq }) => {
    for (const words of ["started", "processing", "completed"]) await mcpReq.log("info", words);
    return text("logged");
  });
  return server;
}

describe.skipIf(missing !== undefined)(
  `the conformance suite of MCP through the gateway${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    const found: Partial<Record<string, SuiteRun>> = {};
    beforeAll(async () => {
      const modern = sdk.createMcpHandler(() => buildFixtureServer(sdk, {} as never));
      const servers = {
        "2025-11-25": sessions(oldServer),
        "2026-07-28": (request: Request) => modern.fetch(request),
      };
      for (const [revision, fetch] of Object.entries(servers)) {
        const upstream = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch });
        const gateway = await startGateway({
          mcp: {
            servers: [
              {
                id: "fixture",
                name: "Fixture",
                target: {
                  transport: "streamable_http",
                  url: `http://127.0.0.1:${upstream.port}/mcp`,
                },
                auth: { type: "none" },
                allowedTools: null,
                priceNanoUsd: 0n,
                timeoutMs: undefined,
                resultBytesMax: undefined,
              },
            ],
            allowedNetworks: [],
            maxRounds: 4,
          },
        });
        found[revision] = await resultsOf(gateway, { revision, path: "/mcp/fixture" });
        await gateway.stop();
        await upstream.stop(true);
      }
      await modern.close();
    }, 240_000);

    const rows = Object.entries(scenarios).flatMap(([revision, names]) =>
      names.map((name) => [revision, name] as const),
    );
    test.each(rows)("%s: %s passes", (revision, scenario) => {
      const run = found[revision] ?? { results: new Map(), output: "" };
      const outcome = run.results.get(scenario);
      if (outcome?.failed !== 0) console.error(sectionOf(run, scenario));
      expect(outcome).toMatchObject({ failed: 0 });
      expect(outcome?.passed).toBeGreaterThan(0);
    });
  },
);
