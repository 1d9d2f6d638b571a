import { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { isServable } from "../../inference/pipeline/upstream-targets.ts";
import type { CatalogModel } from "../../inference/catalog/model.ts";
import {
  recommendModels,
  scoreParts,
  type ModelCondition,
  type ScorePart,
} from "../../inference/catalog/recommend-models.ts";
import type { HealthWindows } from "../../inference/routing/health/health-windows.ts";
import { wholeNumberField } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  routeHealth,
  isListedFor,
  catalogEndpoint,
  modelsToList,
  shownObject,
} from "./sub-route.ts";

const countProblem = "must be a whole number, 0 at least";
const priceProblem = "must be a number of USD, 0 at least";

const querySchema = z.object({
  task: z
    .string("is required: what the model is for")
    .trim()
    .min(1, "is required: what the model is for")
    .max(500, "must have at most 500 characters")
    .describe("translation, coding, reasoning, vision, cheap, or a description of the task."),
  free_only: z.enum(["true", "false"], "must be true or false").default("false"),
  max_input_per_1m: z.coerce
    .number(priceProblem)
    .min(0, priceProblem)
    .optional()
    .describe("Maximum input price in USD per million tokens."),
  min_context: z.coerce.number(countProblem).int(countProblem).min(0, countProblem).optional(),
  limit: wholeNumberField([1, 50]).default(5),
});

const shares = lazily(() =>
  z.object(
    Object.fromEntries(scoreParts.map((part) => [part, z.number()])) as Record<
      ScorePart,
      z.ZodNumber
    >,
  ),
);

/** Conditions from best to worst. A model has the condition of its best provider. */
const ranks: readonly ModelCondition["status"][] = ["healthy", "no_signal", "degraded", "down"];

/** Returns the condition of a model at its best provider. */
function conditionOf(model: CatalogModel, { health }: { health: HealthWindows }): ModelCondition {
  const routes = model.routes.filter((route) => isServable(route, model));
  const states = routes.map((route) => routeHealth(health, { model, route }));
  const best = states.toSorted(
    (one, other) => ranks.indexOf(one.status) - ranks.indexOf(other.status),
  )[0];
  const latencies = routes.flatMap(
    (route) => health.measuresOf(route.provider.id, model.id).firstTokenMs(0.5) ?? [],
  );
  return {
    status: best?.status ?? "no_signal",
    errorRate: best?.error_rate ?? null,
    firstTokenMs: latencies.length === 0 ? null : Math.round(Math.min(...latencies)),
  };
}

const round = (value: number): number => Math.round(value * 1000) / 1000;

/** Ranks models for a task. */
export const recommendModelsFor = defineEndpoint<Pick<Dependencies, "inference">>({
  ...catalogEndpoint,
  path: "/models/recommend",
  summary: "Recommend models for a task.",
  description:
    "Ranks the chat models that the caller can use by capabilities, price, context, health and measured latency, " +
    "weighted for the task, and gives the reasons for each rank. Models with an outage are omitted.",
  query: querySchema,
  response: () =>
    z.object({
      object: z.literal("list"),
      task: z.string(),
      understood_as: z
        .enum(["translation", "coding", "reasoning", "vision", "cheap", "general"])
        .describe("The recognised task; general if the text names none."),
      considered: z.int(),
      left_out: z
        .object({ task: z.int(), price: z.int(), context: z.int(), down: z.int() })
        .describe("Number of models that are not ranked, by reason."),
      data: z.array(
        z.object({
          rank: z.int(),
          model: z.string(),
          display_name: z.string(),
          score: z.number(),
          scores: shares(),
          reasons: z.array(z.string()),
          pricing: z.looseObject({ input_per_1m: z.number(), output_per_1m: z.number() }),
          context_length: z.int(),
          capabilities: z.array(z.string()),
          providers: z.array(z.string()),
          health: z.object({ status: z.enum(ranks), error_rate: z.number().nullable() }),
          first_token_ms: z.int().nullable(),
        }),
      ),
    }),
  handle(context, deps) {
    const given = checkBody(querySchema, Object.fromEntries(context.query));
    const { inference } = deps;
    const isListed = isListedFor(deps, context.caller);
    const candidates = [...modelsToList(deps, context.caller)]
      .filter(
        (model) =>
          model.surface === "chat" &&
          model.router === undefined &&
          model.comingSoon !== true &&
          isListed(model),
      )
      .map((model) => ({
        model: shownObject(model, deps),
        condition: conditionOf(model, inference),
      }));
    const { understood, ranked, leftOut } = recommendModels(candidates, {
      task: given.task,
      freeOnly: given.free_only === "true",
      maxInputPer1m: given.max_input_per_1m,
      minContext: given.min_context,
    });
    return context.json({
      object: "list",
      task: given.task,
      understood_as: understood,
      considered: candidates.length,
      left_out: leftOut,
      data: ranked
        .slice(0, given.limit)
        .map(({ model, condition, score, scores, reasons }, index) => ({
          rank: index + 1,
          model: model.id,
          display_name: model.display_name,
          score: round(score),
          scores: Object.fromEntries(scoreParts.map((part) => [part, round(scores[part])])),
          reasons,
          pricing: model.pricing,
          context_length: model.context_length,
          capabilities: model.capabilities,
          providers: model.providers,
          health: { status: condition.status, error_rate: condition.errorRate },
          first_token_ms: condition.firstTokenMs,
        })),
    });
  },
});
