import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type IncidentNotice, noticeStates } from "../../insights/health/incident-notices.ts";
import { accountBodyBytesMax, plainText } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { noticeObject, noticeSchema } from "../insights/health.ts";
import { forOperators } from "./admin-fields.ts";

const textField = plainText(2_000)
  .trim()
  .min(1, "is required")
  .describe("What is known now. It is public on the status page.");
const stateField = z
  .enum(noticeStates, `must be one of ${noticeStates.join(", ")}`)
  .default("investigating");

export const listIncidents = defineEndpoint({
  ...forOperators,
  method: "GET",
  path: "/admin/incidents",
  summary: "List incidents described by hand (operators).",
  description: "Returns the 100 newest incidents with their updates, newest first.",
  response: () => z.object({ object: z.literal("list"), data: z.array(noticeSchema()) }),
  async handle(context, { insights }: Pick<Dependencies, "insights">) {
    const notices: IncidentNotice[] = await insights.notices.since(0);
    return context.json({ object: "list", data: notices.map(noticeObject) });
  },
});

export const createIncident = defineEndpoint({
  ...forOperators,
  method: "POST",
  path: "/admin/incidents",
  bodyBytesMax: accountBodyBytesMax,
  idempotent: true,
  summary: "Publish an incident on the status page (operators).",
  description:
    "Appears on /status, in its feed and in GET /health/history until 90 days after it is resolved.",
  body: z.strictObject({
    title: plainText(200).trim().min(1, "is required"),
    text: textField,
    state: stateField,
  }),
  response: noticeSchema,
  async handle(context, { insights, clock }: Pick<Dependencies, "insights" | "clock">) {
    const notice = await insights.notices.begin({ ...context.body, atMs: clock.nowMs() });
    context.changed = notice.id;
    return context.json(noticeObject(notice));
  },
});

export const updateIncident = defineEndpoint({
  ...forOperators,
  method: "PATCH",
  path: "/admin/incidents/:id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Add an update to an incident (operators).",
  description: "The state resolved ends the incident; any other state opens it again.",
  body: z.strictObject({ text: textField, state: stateField }),
  response: noticeSchema,
  async handle(context, { insights, clock }: Pick<Dependencies, "insights" | "clock">) {
    const id = context.param("id");
    const notice = await insights.notices.update(id, { ...context.body, atMs: clock.nowMs() });
    context.changed = id;
    return context.json(noticeObject(notice));
  },
});

export const deleteIncident = defineEndpoint({
  ...forOperators,
  method: "DELETE",
  path: "/admin/incidents/:id",
  summary: "Delete an incident (operators).",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { insights }: Pick<Dependencies, "insights">) {
    const id = context.param("id");
    await insights.notices.remove(id);
    context.changed = id;
    return context.json({ deleted: true, id });
  },
});
