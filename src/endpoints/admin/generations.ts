import { z } from "zod";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import type { GenerationRecord } from "../../insights/generation-record.ts";
import { pageAtOffset } from "../../insights/generation-search.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { listSchema } from "../account/list-pages.ts";
import type { Dependencies } from "../dependencies.ts";
import { chargeExplanation, chargeExplanationSchema } from "../insights/generation.ts";
import { filterOf } from "../insights/generation-list.ts";
import {
  generationQueries,
  readGenerationsQuery,
  valuesField,
  generationRow,
  generationRowSchema,
} from "../insights/generation-query.ts";
import { forOperators } from "./admin-fields.ts";

const workspaceFields = lazily(() => ({
  workspace_id: z.string().describe("Id of the workspace that made the request."),
  workspace_name: z.string().nullable().describe("Name of the workspace; null if it was deleted."),
}));

/** A request of any workspace, as operators see it. */
const adminGenerationSchema = lazily(() =>
  generationRowSchema().extend(workspaceFields()).meta({ id: "AdminGeneration" }),
);

const workspacesSchema = z.object({
  workspace_id: valuesField
    .optional()
    .describe("Id of the workspace that made the request; separate several with commas."),
});

const querySchema = generationQueries.list
  .omit({ user_id: true, format: true })
  .extend(workspacesSchema.shape);

type Parts = Pick<Dependencies, "insights" | "llmKeys" | "directory" | "clock">;

const workspaceOf = (
  { workspaceId }: GenerationRecord,
  { directory }: Pick<Dependencies, "directory">,
) => ({
  workspace_id: workspaceId,
  workspace_name: directory.workspace(workspaceId)?.name ?? null,
});

/** Returns records as lines, with the names of their keys and workspaces. */
async function rowsOf(records: readonly GenerationRecord[], deps: Parts) {
  const owners = [...new Set(records.map(({ workspaceId }) => workspaceId))];
  const keyIds = records.map(({ keyId }) => keyId);
  const names = await Promise.all(owners.map((id) => deps.llmKeys.creatorsOf(id, keyIds)));
  const keys = new Map(names.flatMap((each) => [...each]));
  return records.map((record) => ({
    ...generationRow(record, keys),
    ...workspaceOf(record, deps),
  }));
}

export const listAllGenerations = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/generations",
  summary: "List requests of all workspaces, newest first (operators).",
  description:
    "Takes the filters of GET /analytics/generations, and workspace_id. Covers the records in the database; records " +
    "that only the archive has are available within their workspace. next_cursor, sent as cursor, returns older " +
    "requests. A page may have fewer entries than limit, or none, and still have a next_cursor that continues the " +
    "search.",
  query: querySchema,
  response: () => listSchema(adminGenerationSchema()),
  async handle(context, deps: Parts) {
    const { requests } = deps.insights;
    const { workspace_id: workspaceIds } = checkBody(
      workspacesSchema,
      Object.fromEntries(context.query),
    );
    const { id, filter, offset, limit, after, ...query } = readGenerationsQuery(
      context.query,
      deps.clock.nowMs(),
    );
    const found = id === undefined ? undefined : await requests.find(id);
    const { records, next } =
      id === undefined
        ? await pageAtOffset({ after, limit, offset }, (page) =>
            requests.page({ ...query, ...page, workspaceIds, filter: filterOf(filter, []) }),
          )
        : { records: found === undefined ? [] : [found], next: undefined };
    return context.json({
      object: "list",
      data: await rowsOf(records, deps),
      has_more: next !== undefined,
      next_cursor: next ?? null,
    });
  },
});

export const explainAnyGeneration = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/generations/:id",
  summary: "Explain a request of any workspace (operators).",
  description:
    "Returns the answer of GET /generation/{id}/explain and the workspace that made the request. Records contain " +
    "neither prompts nor answers.",
  response: () => chargeExplanationSchema().extend(workspaceFields()),
  async handle(context, deps: Pick<Dependencies, "insights" | "ledgerStore" | "directory">) {
    const id = context.param("id");
    const record = await deps.insights.requests.find(id);
    if (record === undefined) throw new GatewayError("not_found", `There is no generation ${id}.`);
    return context.json({
      ...(await chargeExplanation(record, deps)),
      ...workspaceOf(record, deps),
    });
  },
});
