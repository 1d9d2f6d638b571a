import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { centsText } from "../../billing/payments/cents.ts";
import { documentId, documentOf, type IssuedDocument } from "../../billing/payments/orders.ts";
import { invoicePage } from "../../pages/invoice-page.ts";
import type { Page } from "../../pages/page.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { pageResponse } from "../pages/page-response.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { workspaceOf } from "../account/account-fields.ts";
import { cutPage, pageQuery, placeFields, unknownCursor } from "../account/list-pages.ts";
import {
  documentObject,
  documentSchema,
  paymentRoute,
  paymentsOf,
  readsPayments,
} from "./payment-objects.ts";

const present = (texts: readonly (string | undefined)[]): string[] =>
  texts.filter((text) => text !== undefined);

/**
 * Returns a document as a page to print; a credit note together with the invoice that it corrects.
 */
function issuedPage(document: IssuedDocument, corrected: IssuedDocument | undefined): Page {
  const { seller, buyer, creditCents, feeCents, currency } = document;
  const kind = corrected === undefined ? "Invoice" : "Credit note";
  const money = (cents: number): string => centsText(cents, currency);
  return invoicePage({
    title: `${kind} ${documentId(document)}`,
    date: new Date(document.issuedAtMs).toISOString().slice(0, "2026-11-30".length),
    seller: present([
      seller?.name,
      ...(seller?.address ?? []),
      seller?.taxId === undefined ? undefined : `Tax id ${seller.taxId}`,
    ]),
    buyer: present([buyer.name, buyer.email]),
    heading: corrected === undefined ? "Paid by card" : "Given back",
    rows: [
      ["Prepaid credits", money(creditCents)],
      ["Processing fee", money(feeCents)],
    ],
    total: money(creditCents + feeCents),
    notes: present([
      `Top-up ${document.orderId}`,
      corrected && `Corrects invoice ${documentId(corrected)}`,
      seller?.taxNote,
      document.series.startsWith("test_") ? "Test mode: no money was moved." : undefined,
    ]),
  });
}

const listMax = 200;

export const listInvoices = defineEndpoint({
  ...paymentRoute,
  method: "GET",
  path: "/credits/invoices",
  access: readsPayments,
  summary: "List invoices and credit notes.",
  description:
    `Newest first. Default limit: ${listMax}. next_cursor, sent as cursor, returns the next page. Each paid top-up has an invoice, ` +
    "and each of its refunds a credit note.",
  query: pageQuery,
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(documentSchema()),
      ...placeFields(),
    }),
  async handle(context, deps: Pick<Dependencies, "payments">) {
    const { store } = paymentsOf(deps);
    const workspaceId = workspaceOf(context).id;
    const {
      limit: wanted,
      cursor,
      offset,
    } = checkBody(pageQuery, Object.fromEntries(context.query));
    const limit = Number(wanted ?? listMax);
    const named = cursor === undefined ? undefined : documentOf(cursor);
    const before = named && (await store.document({ workspaceId, ...named }));
    if (cursor !== undefined && before === undefined) throw unknownCursor();
    const found = await store.documents({
      ...{ workspaceId, limit: limit + 1, before },
      offset: before === undefined ? Number(offset ?? 0) : 0,
    });
    const { data, place } = cutPage(found, limit, documentId);
    return context.json({ object: "list", data: data.map(documentObject), ...place });
  },
});

export const getInvoice = defineEndpoint({
  ...paymentRoute,
  method: "GET",
  path: "/credits/invoices/:id",
  access: readsPayments,
  summary: "Show an invoice or a credit note as a printable page.",
  description: "Returns HTML. Documents never change after they are issued.",
  otherResponseTypes: ["text/html"],
  async handle(context, deps: Pick<Dependencies, "payments">) {
    const { store } = paymentsOf(deps);
    const { id: workspaceId } = workspaceOf(context);
    const named = documentOf(context.param("id"));
    const document = named && (await store.document({ workspaceId, ...named }));
    if (document === undefined) throw new GatewayError("not_found", "There is no such invoice.");
    const corrected =
      document.reference === "" ? undefined : await store.invoiceOf(document.orderId);
    return pageResponse(context, issuedPage(document, corrected));
  },
});
