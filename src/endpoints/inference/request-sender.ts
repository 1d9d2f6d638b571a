import type { RequestHeaders } from "../../http/served-request.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";

type Body = Readonly<Record<string, unknown>>;

const customerHeader = brandHeader("Customer");
const subjectCharactersMax = 200;

/** Returns the end user that the header of a request names. */
export const customerHeaderOf = (headers: RequestHeaders): string | undefined =>
  customerText(headers.get(customerHeader));

/** Returns the end user that a request names: by header, or in the fields of its vendor. */
export const customerOf = (body: Body, headers: RequestHeaders): string | undefined =>
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

/** Returns the metadata of a request, whose members budgets may count as tags. */
export function metadataOf({ metadata }: Body): Body | undefined {
  return typeof metadata === "object" && metadata !== null ? (metadata as Body) : undefined;
}
