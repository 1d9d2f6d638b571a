import { z } from "zod";
import type { AuditEntry } from "../../access/audit/audit-log.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { EndpointPaths } from "../../http/endpoint-paths.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { Reply } from "../../http/reply.ts";
import { badField } from "../../platform/kernel/errors.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import type { Dependencies } from "../dependencies.ts";
import { range } from "../insights/analytics-query.ts";
import { csvHeaders, csvLine, type CsvValue } from "../insights/csv.ts";
import { workspaceOf } from "../account/account-fields.ts";
import { cutPage, entryLimit, entryParameters, listSchema } from "../account/list-pages.ts";

/** The most characters of an action or a target that is searched for. */
const textCharactersMax = 500;

const entrySchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("audit_entry"),
      at: z.string(),
      actor: z.object({ kind: z.string(), id: z.string(), label: z.string() }),
      address: z.string(),
      action: z.string(),
      words: z.string().describe("The action in words."),
      target: z.string().nullable(),
      fields: z.array(z.string()),
      outcome: z.enum(["done", "refused", "unknown"]),
      status: z.number().nullable(),
    })
    .meta({ id: "AuditEntry" }),
);

/**
 * Returns the outcome of a change. One without a recorded status may have happened: its gateway
 * ended during it, or it is in progress.
 */
const outcomeOf = (status: number | null): AnswerOf<typeof entrySchema>["outcome"] =>
  status === null || status >= 500 ? "unknown" : status < 400 ? "done" : "refused";

const entryObject = (entry: AuditEntry, paths: EndpointPaths): AnswerOf<typeof entrySchema> => ({
  id: entry.id,
  object: "audit_entry",
  at: new Date(entry.atMs).toISOString(),
  actor: entry.actor,
  address: entry.address,
  action: entry.action,
  words: paths.summaryOf(entry.action) ?? entry.action,
  target: entry.target,
  fields: [...entry.fields],
  outcome: outcomeOf(entry.status),
  status: entry.status,
});

/** Returns the id of a parameter, checked against the form of such ids. */
function idIn(
  query: URLSearchParams,
  param: string,
  pattern = /^[\w.-]{1,100}$/,
): string | undefined {
  const id = query.get(param) ?? undefined;
  if (id === undefined || pattern.test(id)) return id;
  throw badField(param, "is no id.");
}

function offsetIn(query: URLSearchParams): number {
  const text = query.get("offset") || "0";
  if (/^\d{1,7}$/.test(text)) return Number(text);
  throw badField("offset", "must be a whole number from 0 to 9999999.");
}

/** Returns what an entry has to have, such as an action. Throws `bad_request`. */
function textIn(query: URLSearchParams, param: string): string | undefined {
  const text = query.get(param) ?? undefined;
  if (text === undefined || (text !== "" && text.length <= textCharactersMax)) return text;
  throw badField(param, `must have 1 to ${textCharactersMax} characters.`);
}

function formatIn(query: URLSearchParams): "json" | "csv" {
  const format = query.get("format") ?? "json";
  if (format === "json" || format === "csv") return format;
  throw badField("format", "must be json or csv.");
}

type AuditQuery = Omit<Parameters<Dependencies["security"]["auditStore"]["list"]>[0], "limit">;

const rangeSchema = z
  .object(range)
  .refine(({ from = 0, to = Number.POSITIVE_INFINITY }) => from < to, {
    path: ["from"],
    message: "must be before to",
  })
  .transform(({ from, to }) => ({ fromMs: from, toMs: to }));

const timesIn = (query: URLSearchParams): Record<string, string> =>
  Object.fromEntries([...query].filter(([name]) => name === "from" || name === "to"));

const columns = [
  "at",
  "actor_kind",
  "actor_id",
  "actor",
  "address",
  "action",
  "words",
  "target",
  "fields",
  "outcome",
  "status",
] as const;

const cellsOf = ({
  at,
  actor,
  address,
  action,
  words,
  target,
  fields,
  outcome,
  status,
}: AnswerOf<typeof entrySchema>): CsvValue[] => [
  at,
  actor.kind,
  actor.id,
  actor.label,
  address,
  action,
  words,
  target,
  fields.join(" "),
  outcome,
  status,
];

const tableRowsMax = 10_000;

/** Returns everything that meets the filters as one table, newest first. */
async function table(
  query: AuditQuery,
  { security, endpointPaths }: Pick<Dependencies, "security" | "endpointPaths">,
): Promise<string> {
  const found = await security.auditStore.list({ ...query, limit: tableRowsMax + 1 });
  const lines = found
    .slice(0, tableRowsMax)
    .map((entry) => csvLine(cellsOf(entryObject(entry, endpointPaths))));
  const end = `The table ends here: it has ${tableRowsMax} entries at most. Ask for a range.`;
  const last = found.length > tableRowsMax ? csvLine([end]) : "";
  return csvLine(columns) + lines.join("") + last;
}

export const listAuditLog = defineEndpoint({
  method: "GET",
  path: "/security/audit",
  base: "api",
  access: { managementScope: "read:security", session: true },
  counting: "at-door",
  summary: "List the audit log of the workspace.",
  description:
    "Returns changes of the account plane, newest first, refused ones included. Entries cannot be changed or deleted. fields has " +
    "the names of the fields that were sent, never their values. next_cursor, sent as cursor, returns older entries.",
  tag: "Security",
  query: z.object({
    ...entryParameters,
    actor: z.string().optional().describe("Id of the actor."),
    action: z
      .string()
      .optional()
      .describe("The action as in the entries: method and path pattern, or what was done."),
    target: z.string().optional().describe("The target as in the entries, such as an id."),
    from: z.string().optional().describe("Beginning of the range, an ISO 8601 date or time."),
    to: z.string().optional().describe("End of the range, exclusive."),
    format: z
      .enum(["json", "csv"])
      .optional()
      .describe(`csv returns the newest ${tableRowsMax} matching entries as a table.`),
  }),
  otherResponseTypes: ["text/csv"],
  response: () => listSchema(entrySchema()),
  encodeError: encodeContractError,
  async handle(context, deps: Pick<Dependencies, "security" | "endpointPaths">) {
    const { query } = context;
    const limit = entryLimit(query);
    const wanted: AuditQuery = {
      workspaceId: workspaceOf(context).id,
      before: idIn(query, "cursor", /^aud_[0-9a-f]{32}$/),
      offset: offsetIn(query),
      actorId: idIn(query, "actor"),
      action: textIn(query, "action"),
      target: textIn(query, "target"),
      ...checkBody(rangeSchema, timesIn(query)),
    };
    if (formatIn(query) === "csv") {
      return new Reply(await table(wanted, deps), {
        headers: { ...context.headers, ...csvHeaders("audit.csv") },
      });
    }
    const found = await deps.security.auditStore.list({ ...wanted, limit: limit + 1 });
    const { data, place } = cutPage(found, limit, ({ id }) => id);
    return context.json({
      object: "list",
      data: data.map((entry) => entryObject(entry, deps.endpointPaths)),
      ...place,
    });
  },
});
