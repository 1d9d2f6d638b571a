import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { creatorIdOf } from "../../identity/keys/caller.ts";
import { neverCached, workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  keyObject,
  keyObjects,
  llmKeyObjectSchema,
  newKeyFieldsOf,
  newKeySchema,
} from "../keys/llm-key-object.ts";
import { teamIdOf } from "../keys/key-team.ts";
import { assertNoRights } from "../keys/operator-rights.ts";
import { changingCustomers, customerOfPath, keysOf, readingCustomers } from "./customers.ts";

/** Creates a key of a customer. Its secret is shown only in this answer. */
export const createCustomerKey = defineEndpoint({
  ...changingCustomers,
  method: "POST",
  idempotent: true,
  path: "/customers/:id/keys",
  summary: "Create an LLM key of a customer.",
  description:
    "All that the key does counts towards the customer's plan, whichever customer its requests name. It has limits of its own as " +
    "every key; the keys and runs that it opens belong to the customer too. Connected apps create none.",
  body: newKeySchema,
  response: () => z.object({ key: z.string(), data: llmKeyObjectSchema() }),
  async handle(context, deps: Dependencies) {
    const customer = await customerOfPath(context, deps);
    assertNoRights(context.body.operator);
    const fields = newKeyFieldsOf(context.body, {
      nowMs: deps.clock.nowMs(),
      endpointPaths: deps.endpointPaths,
    });
    const { secret, key } = await deps.llmKeyMinter.mint({
      ...fields,
      workspaceId: customer.workspaceId,
      creatorUserId: creatorIdOf(context.caller),
      customer: customer.externalId,
      ...(context.body.team_id !== undefined && {
        teamId: teamIdOf(context.body.team_id, context.caller, deps),
      }),
    });
    context.changed = key.id;
    const data = await keyObject(deps, { workspace: workspaceOf(context), key });
    return context.json({ key: secret, data }, { headers: neverCached });
  },
});

export const listCustomerKeys = defineEndpoint({
  ...readingCustomers,
  method: "GET",
  path: "/customers/:id/keys",
  summary: "List the LLM keys of a customer.",
  description: "PATCH and DELETE /keys/{hash} change and delete them.",
  response: () => z.object({ object: z.literal("list"), data: z.array(llmKeyObjectSchema()) }),
  async handle(context, deps: Dependencies) {
    const keys = await keysOf(deps, await customerOfPath(context, deps));
    return context.json({
      object: "list",
      data: await keyObjects(deps, { workspace: workspaceOf(context), keys }),
    });
  },
});
