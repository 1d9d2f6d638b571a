import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { CustomerFields } from "../../billing/customers/customer-editor.ts";
import { externalIdCharactersMax, type Customer } from "../../billing/customers/customer.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { AccountCaller } from "../../identity/keys/caller.ts";
import {
  accountBodyBytesMax,
  emailField,
  nameField,
  plainText,
  workspaceOf,
} from "../account/account-fields.ts";
import { cutPage, placeFields, unknownCursor } from "../account/list-pages.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  customerAnswer,
  customerObjects,
  customerSchema,
  planOf,
  planSchema,
} from "./customer-object.ts";

/** The declarations that every route of customers shares. */
const customerRoute = {
  base: "api",
  counting: "at-door",
  tag: "Customers",
  encodeError: encodeContractError,
} as const;
/** Declarations of routes that read customers. */
export const readingCustomers = {
  ...customerRoute,
  access: { managementScope: "read:llm-keys", session: true },
} as const;
/**
 * Declarations of routes that change customers. Connected apps are refused, since plans and credits
 * are none of the keys that a person lets an app create.
 */
export const changingCustomers = {
  ...customerRoute,
  access: { managementScope: "write:llm-keys", session: true, keyHeldDirectly: true },
  bodyBytesMax: accountBodyBytesMax,
} as const;

const externalIdField = plainText(externalIdCharactersMax)
  .trim()
  .min(1, "must not be empty")
  .describe("What requests name the customer by: X-Service-Customer, safety_identifier or user.");
const stripeIdField = z
  .string()
  .regex(/^cus_\w{1,100}$/, "must be the id of a customer at Stripe: cus_...")
  .nullable()
  .describe("The customer at Stripe to which what a postpaid plan bills is reported.");
const suspendedField = z.boolean().describe("Whether all of its requests are refused.");

const changesSchema = z.strictObject({
  name: nameField.optional(),
  email: emailField.nullish(),
  plan: planSchema.nullish().describe("Null takes the rule of the configuration."),
  suspended: suspendedField.optional(),
  stripe_customer_id: stripeIdField.optional(),
});
const newSchema = changesSchema.extend({ external_id: externalIdField });

/** Returns the fields that were sent. Absent ones stay as they are. */
const fieldsOf = ({
  name,
  email,
  plan,
  suspended,
  stripe_customer_id: stripeCustomerId,
}: z.infer<typeof changesSchema>): Partial<CustomerFields> => ({
  ...(name !== undefined && { name }),
  ...(email !== undefined && { email }),
  ...(plan !== undefined && { plan: plan === null ? null : planOf(plan) }),
  ...(suspended !== undefined && { suspended }),
  ...(stripeCustomerId !== undefined && { stripeCustomerId }),
});

/** Returns the customer of the path, by its id or external id. Throws `not_found`. */
export const customerOfPath = (
  context: RequestContext<unknown, AccountCaller>,
  { customers }: Pick<Dependencies, "customers">,
): Promise<Customer> =>
  customers.editor.find({ workspaceId: workspaceOf(context).id, id: context.param("id") });

export const createCustomer = defineEndpoint({
  ...changingCustomers,
  method: "POST",
  idempotent: true,
  path: "/customers",
  summary: "Create a customer.",
  description:
    "A customer is an end user of the workspace, which requests name, or whose keys send them. Its plan bounds what its requests " +
    "may cost at its price, however many come at once: a request beyond it is refused with 402, metadata.reason " +
    "customer_limit_reached. With customers.default_limit in the configuration, each one is also created by the first request " +
    "that names it.",
  body: newSchema,
  response: customerSchema,
  async handle(context, deps: Dependencies) {
    const { external_id: externalId, ...changes } = context.body;
    const customer = await deps.customers.editor.create(
      { workspaceId: workspaceOf(context).id, externalId },
      fieldsOf(changes),
    );
    context.changed = customer.id;
    return context.json(await customerAnswer(deps, customer));
  },
});

const listQuery = z.object({
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(100).optional(),
});
const documentedQuery = z.object({
  limit: z.string().optional().describe("Most customers of a page, from 1 to 200. Default: 50."),
  cursor: z.string().optional().describe("The `next_cursor` of the page before."),
});

export const listCustomers = defineEndpoint({
  ...readingCustomers,
  method: "GET",
  path: "/customers",
  summary: "List customers, newest first.",
  description:
    "Returns each with what it used in its period, the cost of that, its price and margin.",
  query: documentedQuery,
  response: () =>
    z.object({ object: z.literal("list"), data: z.array(customerSchema()), ...placeFields() }),
  async handle(context, deps: Dependencies) {
    const { limit, cursor } = checkBody(listQuery, Object.fromEntries(context.query));
    const workspaceId = workspaceOf(context).id;
    const { store, flush } = deps.customers;
    await flush();
    const after = cursor === undefined ? undefined : await store.placeOf(workspaceId, cursor);
    if (cursor !== undefined && after === undefined) throw unknownCursor();
    const found = await store.list({ workspaceId, after, limit: limit + 1 });
    const { data, place } = cutPage(found, limit, ({ id }) => id);
    return context.json({ object: "list", data: await customerObjects(deps, data), ...place });
  },
});

export const getCustomer = defineEndpoint({
  ...readingCustomers,
  method: "GET",
  path: "/customers/:id",
  summary: "Show a customer.",
  description: "The id may also be the external_id.",
  response: customerSchema,
  async handle(context, deps: Dependencies) {
    return context.json(await customerAnswer(deps, await customerOfPath(context, deps)));
  },
});

export const changeCustomer = defineEndpoint({
  ...changingCustomers,
  method: "PATCH",
  path: "/customers/:id",
  summary: "Change a customer or its plan.",
  description:
    "A plan is replaced whole, and applies from the next request. What was used in its period counts; a prepaid plan begins with " +
    "the credits that were added.",
  body: changesSchema,
  response: customerSchema,
  async handle(context, deps: Dependencies) {
    const customer = await customerOfPath(context, deps);
    context.changed = customer.id;
    const changed = await deps.customers.editor.change(customer, fieldsOf(context.body));
    return context.json(await customerAnswer(deps, changed));
  },
});

export const deleteCustomer = defineEndpoint({
  ...changingCustomers,
  method: "DELETE",
  path: "/customers/:id",
  summary: "Remove a customer with its keys.",
  description: "What it used stays, and counts where a customer with the same external_id follows.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, deps: Dependencies) {
    // One that a request named just now would be written after it was removed.
    await deps.customers.flush();
    const customer = await customerOfPath(context, deps);
    context.changed = customer.id;
    for (const { hash } of await keysOf(deps, customer))
      await deps.llmKeyEditor.remove({ workspaceId: customer.workspaceId, hash });
    await deps.customers.editor.remove(customer);
    return context.json({ deleted: true, id: customer.id });
  },
});

/** Returns the keys of a customer, newest first. */
export const keysOf = async (
  { llmKeys }: Pick<Dependencies, "llmKeys">,
  { workspaceId, externalId }: Customer,
) =>
  (await llmKeys.list(workspaceId, { includeDisabled: true })).filter(
    ({ customer }) => customer === externalId,
  );
