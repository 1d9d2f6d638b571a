import type { Endpoint } from "../access/define-endpoint.ts";

/** What tools know of a REST endpoint: its declaration, and not its handler. */
export type ToolEndpoint = Pick<
  Endpoint<never>,
  | "method"
  | "path"
  | "base"
  | "access"
  | "counting"
  | "tag"
  | "summary"
  | "description"
  | "query"
  | "body"
  | "response"
>;

/** The name of an endpoint, such as `GET /keys/:hash`. */
export const endpointName = ({ method, path }: Pick<ToolEndpoint, "method" | "path">): string =>
  `${method} ${path}`;
