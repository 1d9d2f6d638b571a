import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import { neverCached } from "../account/account-fields.ts";
import { forSessions, sessionOf } from "../account/people-fields.ts";
import type { Dependencies } from "../dependencies.ts";

/** Gives a page of the dashboard a key to send inference requests with, in the name of the person who has signed in. */
export const createPlaygroundKey = defineEndpoint<Dependencies>({
  ...forSessions,
  method: "POST",
  path: "/session/playground-key",
  idempotent: true,
  summary: "Get a key for the playground.",
  description:
    "For pages, which hold it in memory alone: sessions send no inference requests themselves. It lasts 12 hours, may cost " +
    "5 USD a day, and is metered to one key record of the person in the workspace, named Playground. The key before it " +
    "ends: a page whose key " +
    "is refused with 401 asks again. GET /connections lists it, and DELETE /connections/{id} ends it.",
  response: z.object({
    object: z.literal("playground_key"),
    key: z.string(),
    key_id: z.string(),
    connection_id: z.string(),
    expires_at: z.string(),
  }),
  async handle(context, { consent }) {
    const { user, workspace } = sessionOf(context);
    const { secret, keyId, connectionId, expiresAtMs } = await consent.playground.issue({
      userId: user.id,
      workspaceId: workspace.id,
      address: context.clientAddress(),
      userAgent: (context.request.headers.get("user-agent") ?? "").slice(0, 300),
    });
    context.changed = connectionId;
    return context.json(
      {
        object: "playground_key",
        key: secret,
        key_id: keyId,
        connection_id: connectionId,
        expires_at: new Date(expiresAtMs).toISOString(),
      },
      { headers: neverCached },
    );
  },
});
