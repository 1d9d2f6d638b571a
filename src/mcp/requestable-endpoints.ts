import { closestName } from "../platform/kernel/schema-problems.ts";
import { shownPath } from "../http/endpoint.ts";
import { badField, GatewayError } from "../platform/kernel/errors.ts";
import type { ToolEndpoint } from "./tool.ts";

/**
 * Returns the endpoints that operators may call through a tool: those of accounts and of
 * administration. Inference has tools of its own, with the budgets of the caller's key.
 */
export const requestable = (endpoints: readonly ToolEndpoint[]): ToolEndpoint[] =>
  endpoints.filter(
    ({ base, access, counting }) =>
      base === "api" && access.managementScope !== undefined && counting === "at-door",
  );

/** Returns whether calling an endpoint changes something. */
export const isDangerous = ({ method }: Pick<ToolEndpoint, "method">): boolean => method !== "GET";

/**
 * Returns the values of a pattern's parameters in a path; undefined where the path does not match.
 */
function paramsIn(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split("/"), path.split("/")];
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? "";
    if (part.startsWith(":") && value !== "") params[part.slice(1)] = decoded(value);
    else if (part !== value) return undefined;
  }
  return params;
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch (cause) {
    throw new GatewayError("bad_request", "path: holds a broken percent-encoding.", {
      param: "path",
      cause,
    });
  }
}

/**
 * Returns the endpoint at a path, written with or without the API's base. Throws `not_found` that
 * names the closest.
 */
export function findRequestable(
  endpoints: readonly ToolEndpoint[],
  { method, path }: { method: string; path: string },
): { endpoint: ToolEndpoint; params: Record<string, string> } {
  if (/[?#]/.test(path)) throw badField("path", "must have no query; put it into query.");
  const plain = path.replace(/^\/(?:api\/)?v1(?=\/)/, "");
  const table = requestable(endpoints);
  const found = table
    .filter((each) => each.method === method)
    .flatMap((endpoint) => {
      const params = paramsIn(endpoint.path, plain);
      return params === undefined ? [] : [{ endpoint, params }];
    })
    // A literal path takes precedence over one with parameters.
    .sort((one, other) => Object.keys(one.params).length - Object.keys(other.params).length)[0];
  if (found !== undefined) return found;
  const closest = closestName(
    `${method} /api/v1${plain}`,
    table.map((each) => `${each.method} ${shownPath(each)}`),
  );
  const hint =
    closest === undefined ? "admin_list_endpoints lists them." : `Did you mean ${closest}?`;
  throw new GatewayError(
    "not_found",
    `There is no administration endpoint ${method} ${path}. ${hint}`,
    { param: "path" },
  );
}
