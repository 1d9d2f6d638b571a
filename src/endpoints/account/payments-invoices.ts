import { z } from "zod";
import { documentOf } from "../../account/payments/document.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { pageResponse } from "../pages/page-response.ts";
import { workspaceOf } from "./account-caller.ts";
import { paymentRoute, readsPayments } from "./payments-fields.ts";
import { issuedPage } from "./payments-invoice-page.ts";
import { documentObject, documentSchema, paymentsOf } from "./payments-object.ts";

const listMax = 200;

/** Lists invoices and credit notes. */
export const listInvoices = defineEndpoint<Dependencies>({
  ...paymentRoute,
  method: "GET",
  path: "/credits/invoices",
  access: readsPayments,
  summary: "List invoices and credit notes.",
  description: `The newest ${listMax}. A paid top-up has an invoice, and each refund of it a credit note.`,
  response: z.object({ object: z.literal("list"), data: z.array(documentSchema) }),
  async handle(context, deps) {
    const documents = await paymentsOf(deps).store.documents({
      workspaceId: workspaceOf(context).id,
      limit: listMax,
    });
    return context.json({ object: "list", data: documents.map(documentObject) });
  },
});

/** Shows an invoice or a credit note as it was issued. */
export const getInvoice = defineEndpoint<Dependencies>({
  ...paymentRoute,
  method: "GET",
  path: "/credits/invoices/:id",
  access: readsPayments,
  summary: "Show an invoice or a credit note, as a page to print.",
  description: "HTML; nothing of it changes after it was issued.",
  otherResponseTypes: ["text/html"],
  async handle(context, deps) {
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
