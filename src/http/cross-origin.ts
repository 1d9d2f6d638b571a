import type { Endpoint } from "./endpoint.ts";

/**
 * Whether pages of other origins may call an endpoint from a browser, with a key and never with a cookie: inference and what is only
 * read, and what says so itself. Endpoints that take a session's cookie are for pages of this service alone.
 */
export const isOpenToOrigins = ({
  access,
  base,
  method,
  anyOrigin: saysSo,
}: Pick<Endpoint<never>, "access" | "base" | "method" | "anyOrigin">): boolean =>
  access.session === undefined &&
  (saysSo ?? (access.llmKey === true || (base === "api" && method === "GET")));

/** Headers of answers that pages of any origin may read, whole, as requests without credentials of the browser. */
export const anyOrigin = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "*",
} as const;
