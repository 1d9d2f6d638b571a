import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { SmokeResult } from "../../insights/health/smoke-store.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { accountBodyBytesMax, plainText } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { forOperators } from "./admin-fields.ts";

const resultSchema = lazily(() =>
  z.object({
    object: z.literal("smoke_test"),
    provider: z.string(),
    at: z.string(),
    outcome: z.enum(["passed", "failed", "skipped"]),
    latency_ms: z.number().nullable(),
    message: z.string().nullable(),
  }),
);
const listSchema = lazily(() =>
  z.object({ object: z.literal("list"), data: z.array(resultSchema()) }),
);

const listObject = (results: readonly SmokeResult[]): AnswerOf<typeof listSchema> => ({
  object: "list",
  data: [...results]
    .sort((one, other) => (one.providerId < other.providerId ? -1 : 1))
    .map(({ providerId, atMs, outcome, latencyMs, message }) => ({
      object: "smoke_test",
      provider: providerId,
      at: new Date(atMs).toISOString(),
      outcome,
      latency_ms: latencyMs,
      message,
    })),
});

export const listSmokeTests = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/smoke-tests",
  summary: "Show the latest smoke test of each provider (operators).",
  description:
    "Each provider with a platform credential receives one real request per day. POST /admin/smoke-tests runs the tests " +
    "immediately.",
  response: listSchema,
  handle: async (context, { insights }: Pick<Dependencies, "insights">) =>
    context.json(listObject(await insights.health.smokeResults())),
});

const runSchema = z.strictObject({
  provider: plainText(100)
    .min(1)
    .optional()
    .describe("The provider to test. Default: all with a platform credential."),
});

export const runSmokeTests = defineEndpoint({
  ...forOperators,
  method: "POST",
  path: "/admin/smoke-tests",
  idempotent: true,
  bodyBytesMax: accountBodyBytesMax,
  bodyOptional: true,
  summary: "Run smoke tests now (operators).",
  description:
    "Sends each provider a minimal real request at the platform's expense, one provider after the other, and answers " +
    "when all are done. A provider that fails is excluded from routing, as after a daily test. Answers 409 while tests " +
    "are running.",
  body: runSchema,
  response: listSchema,
  async handle(context, { insights }: Pick<Dependencies, "insights">) {
    const run = await insights.health.testNow(context.body.provider);
    if (run.ok) return context.json(listObject(run.results));
    if (run.reason === "busy") {
      throw new GatewayError(
        "conflict",
        "Smoke tests are under way. GET /admin/smoke-tests shows their results.",
      );
    }
    throw new GatewayError(
      "not_found",
      "There is no such provider with a platform credential. GET /admin/upstreams lists them.",
      {
        param: "provider",
      },
    );
  },
});
