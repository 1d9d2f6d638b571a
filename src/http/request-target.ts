import type { HttpRequest } from "./http-request.ts";

/** Where the path starts in a request's URL: a broken `Host` header leaves no URL that could be parsed. */
const pathStart = (url: string): number => {
  if (url.startsWith("/")) return 0;
  const start = url.indexOf("/", url.indexOf("//") + 2);
  return start < 0 ? url.length : start;
};

/** Path of a request as it was sent, without the query. */
export function pathOf({ url }: Pick<HttpRequest, "url">): string {
  const query = url.indexOf("?");
  return url.slice(pathStart(url), query < 0 ? undefined : query);
}

/** Query parameters of a request. */
export function queryOf({ url }: Pick<HttpRequest, "url">): URLSearchParams {
  const query = url.indexOf("?");
  return new URLSearchParams(query < 0 ? "" : url.slice(query));
}
