import { z } from "zod";
import type { AllowedRange } from "../../access/allowlist/ip-allowlist.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, plainText, truthIn, workspaceOf } from "../account/account-fields.ts";
import { forSecurity } from "./privacy.ts";

const entrySchema = lazily(() =>
  z.object({
    id: z.string(),
    cidr: z.string(),
    description: z.string().nullable(),
    created_at: z.string(),
  }),
);

const entryObject = ({
  id,
  cidr,
  description,
  createdAtMs,
}: AllowedRange): AnswerOf<typeof entrySchema> => ({
  id,
  cidr,
  description,
  created_at: new Date(createdAtMs).toISOString(),
});

const confirmField = z.boolean().optional();

const newEntrySchema = z.object({
  cidr: plainText(100).min(1, "is required: an address or a range such as 203.0.113.0/24"),
  description: plainText(500).nullish(),
  confirm: confirmField,
});

const removalSchema = z.object({ confirm: confirmField });

export const listAllowedRanges = defineEndpoint({
  ...forSecurity,
  method: "GET",
  path: "/security/ip-allowlist",
  access: { managementScope: "read:security", session: true },
  summary: "List the IP allowlist.",
  description: "Newest first. An empty list allows every address.",
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(entrySchema()),
      your_address: z.string().describe("Address of this request."),
    }),
  handle: (context, { security }: Pick<Dependencies, "security">) =>
    context.json({
      object: "list",
      data: security.allowlist.of(workspaceOf(context).id).map(entryObject),
      your_address: context.clientAddress(),
    }),
});

/**
 * Adds a range to the allowlist. From this answer on, every other address is refused with
 * `ip_not_allowed`.
 */
export const addAllowedRange = defineEndpoint({
  ...forSecurity,
  method: "POST",
  idempotent: true,
  path: "/security/ip-allowlist",
  access: { managementScope: "write:security", session: true },
  bodyBytesMax: accountBodyBytesMax,
  summary: "Add to the IP allowlist.",
  description:
    "Takes an IPv4 or IPv6 address or range. Once the list has an entry, every credential of the workspace is refused from other " +
    "addresses. The address of this request must remain allowed, unless confirm is true.",
  body: newEntrySchema,
  response: entrySchema,
  async handle(context, { security }: Pick<Dependencies, "security">) {
    const { cidr, description = null, confirm = false } = context.body;
    const change = {
      workspaceId: workspaceOf(context).id,
      callerAddress: context.clientAddress(),
      confirm,
    };
    const entry = await security.allowlistEditor.add(change, { cidr, description });
    context.changed = entry.id;
    return context.json(entryObject(entry));
  },
});

export const removeAllowedRange = defineEndpoint({
  ...forSecurity,
  method: "DELETE",
  path: "/security/ip-allowlist/:id",
  access: { managementScope: "write:security", session: true },
  bodyBytesMax: accountBodyBytesMax,
  summary: "Remove an entry from the IP allowlist.",
  description:
    "The address of this request must remain allowed, unless confirm is true in the body or the query.",
  query: z.object({ confirm: z.enum(["true", "false"]).optional() }),
  body: removalSchema,
  bodyOptional: true,
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { security }: Pick<Dependencies, "security">) {
    const id = context.param("id");
    const confirm = context.body.confirm ?? truthIn(context.query, "confirm");
    await security.allowlistEditor.remove(
      { workspaceId: workspaceOf(context).id, callerAddress: context.clientAddress(), confirm },
      id,
    );
    return context.json({ deleted: true, id });
  },
});
