import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { pageHeaders, pageHtml, type Page } from "../../pages/page.ts";

/** What every page for people declares; its errors are pages too, where a browser asks. */
export const pageRoute = {
  base: "root",
  access: { open: true },
  counting: "at-door",
  tag: "Pages",
  otherResponseTypes: ["text/html"],
  encodeError: encodeContractError,
} as const;

/** How forms of pages are sent. */
export const formType = "application/x-www-form-urlencoded";

/** What a page is answered with beside its content. */
export interface PageAnswer {
  status?: number;
  /** Values of `Set-Cookie`. */
  cookies?: readonly string[];
  /** Further headers. */
  headers?: Readonly<Record<string, string>>;
}

/** Answers with a page. */
export function pageResponse(
  context: RequestContext<unknown>,
  page: Page,
  { status = 200, cookies = [], headers = {} }: PageAnswer = {},
): Response {
  const all = new Headers({ ...context.headers, ...headers, ...pageHeaders(page) });
  for (const cookie of cookies) all.append("set-cookie", cookie);
  return new Response(pageHtml(page), { status, headers: all });
}
