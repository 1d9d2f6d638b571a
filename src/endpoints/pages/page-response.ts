import type { RequestContext } from "../../http/request-context.ts";
import { pageHeaders, pageHtml, type Page } from "../../pages/page.ts";

/** What a page is answered with beside its content. */
export interface PageAnswer {
  status?: number;
  /** Values of `Set-Cookie`. */
  cookies?: readonly string[];
}

/** Answers with a page. */
export function pageResponse(
  context: RequestContext<unknown>,
  page: Page,
  { status = 200, cookies = [] }: PageAnswer = {},
): Response {
  const headers = new Headers({ ...context.headers, ...pageHeaders(page) });
  for (const cookie of cookies) headers.append("set-cookie", cookie);
  return new Response(pageHtml(page), { status, headers });
}
