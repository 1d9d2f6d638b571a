import { html } from "hono/html";
import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { CustomerDay } from "../../billing/customers/customer-store.ts";
import type { Customer } from "../../billing/customers/customer.ts";
import { anyOrigin } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { facts, messagePage } from "../../pages/message-page.ts";
import { pageHeaders, pageHtml, type Page } from "../../pages/page.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import { neverCached } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { pageRoute } from "../pages/page-response.ts";
import { customerAnswer } from "./customer-object.ts";
import { changingCustomers, customerOfPath } from "./customers.ts";

/** The longest that a link works, and how long it does where no time is named, in seconds. */
const secondsMax = 366 * 86_400;
const secondsDefault = 86_400;

/** Creates a signed link to the balance of a customer. */
export const createBalanceLink = defineEndpoint({
  ...changingCustomers,
  method: "POST",
  idempotent: true,
  path: "/customers/:id/balance-link",
  summary: "Create a link to a customer's balance.",
  description:
    "The page shows what the customer may use, what it used and what is left, at its price, without costs or margins. It needs no " +
    "account, may be embedded in a frame of any site, and answers JSON to Accept: application/json. `revoke` makes all earlier " +
    "links of the customer void.",
  body: z.strictObject({
    expires_in: z
      .int()
      .min(60, "must be at least 60")
      .max(secondsMax, `must be at most ${secondsMax}`)
      .optional()
      .describe("Seconds that the link works. Default: a day."),
    revoke: z.boolean().optional().describe("Whether earlier links no longer work."),
  }),
  response: () => z.object({ url: z.string(), expires_at: z.string() }),
  async handle(context, deps: Dependencies) {
    const { expires_in: seconds = secondsDefault, revoke } = context.body;
    // One that was removed before begins with a version that only its stored row has.
    await deps.customers.flush();
    let customer = await customerOfPath(context, deps);
    context.changed = customer.id;
    if (revoke === true)
      customer = await deps.customers.editor.change(customer, {
        linkVersion: customer.linkVersion + 1,
      });
    const expiresAtMs = deps.clock.nowMs() + seconds * 1000;
    const token = deps.customers.links.issue({
      customerId: customer.id,
      version: customer.linkVersion,
      expiresAtMs,
    });
    return context.json(
      {
        url: `${deps.publicUrl()}/balance/${token}`,
        expires_at: new Date(expiresAtMs).toISOString(),
      },
      { headers: neverCached },
    );
  },
});

const gone: Page = messagePage({
  title: "This link has ended",
  sentences: ["Ask the service that gave it to you for another one."],
});

/** Returns the customer of a link that works. */
async function customerOf(token: string, deps: Dependencies): Promise<Customer | undefined> {
  const link = deps.customers.links.open(token);
  if (link === undefined || link.expiresAtMs <= deps.clock.nowMs()) return undefined;
  const customer = await deps.customers.store.find(link.customerId);
  return customer?.linkVersion === link.version ? customer : undefined;
}

/** Returns the headers of a page that any site may frame. It has no forms, scripts or cookies. */
function framedHeaders(): Record<string, string> {
  const {
    "x-frame-options": _,
    "content-security-policy": policy = "",
    ...headers
  } = pageHeaders();
  return {
    ...headers,
    "content-security-policy": policy.replace("frame-ancestors 'none'", "frame-ancestors *"),
    "referrer-policy": "no-referrer",
  };
}

/** The newest days that the page shows. */
const daysShown = 31;

/** What a customer sees of itself: prices, and no costs. */
async function balanceOf(deps: Dependencies, customer: Customer) {
  const {
    usage,
    name,
    status,
    limit,
    used,
    remaining,
    period_end: periodEnd,
  } = await customerAnswer(deps, customer);
  const toDay = Math.floor(deps.clock.nowMs() / dayMs) + 1;
  const days = await deps.customers.store.days(customer, { fromDay: toDay - daysShown, toDay });
  return {
    object: "balance" as const,
    name,
    status,
    limit,
    used,
    remaining,
    period_end: periodEnd,
    requests: usage.requests,
    days: [...Map.groupBy(days, ({ day }) => day)].map(([day, each]) => dayOf(day, each)),
  };
}

const dayOf = (day: number, lines: readonly CustomerDay[]) => ({
  day: new Date(day * dayMs).toISOString().slice(0, 10),
  requests: lines.reduce((sum, line) => sum + line.requests, 0),
  price: usdFromNano(lines.reduce((sum, line) => sum + line.priceNano, 0n)),
});

const statusTexts = {
  active: "Requests are served.",
  exhausted: "All of it is used, so that requests are refused.",
  suspended: "Requests are refused for now.",
} as const;

const usd = (amount: number): string => `${amount} USD`;

function balancePageOf(balance: Awaited<ReturnType<typeof balanceOf>>): Page {
  const { name, limit, used, remaining, period_end: end, requests, days, status } = balance;
  return messagePage({
    title: name,
    sentences: [statusTexts[status]],
    more: html`${facts([
      ...(remaining === null ? [] : [["Left", usd(remaining)] as const]),
      ["Used", limit === null ? usd(used) : `${used} of ${usd(limit)}`],
      ["Requests", String(requests)],
      ...(end === null ? [] : [["Starts again", new Date(end).toUTCString()] as const]),
    ])}${
      days.length === 0
        ? ""
        : html`<table><thead><tr><th>Day (UTC)</th><th>Requests</th><th>USD</th></tr></thead><tbody>${days
            .toReversed()
            .map(
              (line) =>
                html`<tr><td>${line.day}</td><td>${line.requests}</td><td>${line.price}</td></tr>`,
            )}</tbody></table>`
    }`,
  });
}

export const balancePage = defineEndpoint({
  ...pageRoute,
  encodeError: encodeContractError,
  method: "GET",
  path: "/balance/:token",
  summary: "Show a customer's balance to the holder of a link.",
  async handle(context: RequestContext, deps: Dependencies) {
    const customer = await customerOf(context.param("token"), deps);
    const wantsJson = context.request.headers.get("accept")?.includes("application/json") === true;
    if (wantsJson) {
      if (customer === undefined)
        throw new GatewayError("not_found", "This link has ended.", { headers: anyOrigin });
      const headers = { ...neverCached, ...anyOrigin };
      return context.json(await balanceOf(deps, customer), { headers });
    }
    const page = customer === undefined ? gone : balancePageOf(await balanceOf(deps, customer));
    return new Response(pageHtml(page), {
      status: customer === undefined ? 404 : 200,
      headers: { ...context.headers, ...framedHeaders() },
    });
  },
});
