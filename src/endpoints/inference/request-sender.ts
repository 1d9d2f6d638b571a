import type { RequestHeaders } from "../../http/request-context.ts";
import type { CallOrigin } from "../../inference/pipeline/inference-call.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";

type Body = Readonly<Record<string, unknown>>;

const customerHeader = brandHeader("Customer");
const subjectCharactersMax = 200;

/** Returns the end user that the header of a request names. */
export const customerHeaderOf = (headers: RequestHeaders): string | undefined =>
  customerText(headers.get(customerHeader));

/** Returns the end user that a request names: by header, or in the fields of its vendor. */
const customerOf = (body: Body, headers: RequestHeaders): string | undefined =>
  customerText(headers.get(customerHeader) ?? body["safety_identifier"] ?? body["user"]);

function customerText(named: unknown): string | undefined {
  if (typeof named !== "string") return undefined;
  // Postgres refuses a zero byte, and lone surrogates would come back changed.
  const text = named
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, "")
    .trim();
  return text === "" ? undefined : text.slice(0, subjectCharactersMax).toWellFormed();
}

/** Returns whom a request is for, as budgets of customers and tags count it. */
export const senderOf = (
  body: Body,
  headers: RequestHeaders,
): Pick<CallOrigin, "customer" | "metadata"> => ({
  customer: customerOf(body, headers),
  metadata: metadataOf(body),
});

function metadataOf({ metadata }: Body): Body | undefined {
  return typeof metadata === "object" && metadata !== null ? (metadata as Body) : undefined;
}
