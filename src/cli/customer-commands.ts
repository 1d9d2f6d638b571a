import { withAccount } from "./gateway-api.ts";
import type { CommandContext } from "./terminal.ts";

/** A customer as the API answers with it. */
interface CustomerRecord {
  id: string;
  external_id: string;
  name: string;
  status: string;
  used: number;
  remaining: number | null;
  usage: { requests: number; cost: number; price: number; margin: number };
}

const dollars = (amount: number | null): string => (amount === null ? "no bound" : `$${amount}`);
const pathOf = (id: string): string => `/customers/${encodeURIComponent(id)}`;

/** Shows customers as a table, with their margins. */
function showTable({ terminal }: CommandContext, rows: readonly CustomerRecord[]): void {
  terminal.table(rows, [
    ["CUSTOMER", ({ external_id: externalId }) => externalId],
    ["USED", ({ used }) => dollars(used)],
    ["LEFT", ({ remaining }) => dollars(remaining)],
    ["REQUESTS", ({ usage }) => String(usage.requests)],
    ["COST", ({ usage }) => dollars(usage.cost)],
    ["PRICE", ({ usage }) => dollars(usage.price)],
    ["MARGIN", ({ usage }) => dollars(usage.margin)],
    ["STATE", ({ status }) => status],
  ]);
}

/** Lists the newest customers of the workspace. */
export async function listCustomers(context: CommandContext): Promise<void> {
  const { data } = (await withAccount(context, (api) =>
    api.ask("GET", "/customers?limit=200"),
  )) as { data: CustomerRecord[] };
  if (context.terminal.result(data)) return;
  if (data.length === 0) return context.terminal.line("There are no customers.");
  showTable(context, data);
}

/** Shows a customer. */
export async function showCustomer(context: CommandContext, id: string): Promise<void> {
  const customer = (await withAccount(context, (api) =>
    api.ask("GET", pathOf(id)),
  )) as unknown as CustomerRecord;
  if (!context.terminal.result(customer)) showTable(context, [customer]);
}

/** Adds credits to a prepaid customer. */
export async function creditCustomer(
  context: CommandContext,
  { id, usd, note }: { id: string; usd: number; note?: string | undefined },
): Promise<void> {
  const { customer } = (await withAccount(context, (api) =>
    api.ask("POST", `${pathOf(id)}/credits`, {
      amount: usd,
      ...(note !== undefined && { note }),
    }),
  )) as { customer: CustomerRecord };
  if (!context.terminal.result(customer))
    context.terminal.line(`The customer ${customer.name} has ${dollars(customer.remaining)} left.`);
}
