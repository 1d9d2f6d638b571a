import { closestName } from "../platform/lib/closest-name.ts";
import { shownPath, type Endpoint } from "./endpoint.ts";

/** A path as entries of `allowed_endpoints` are compared: without base, final slash and names of parameters. */
export const asPattern = (path: string): string =>
  path
    .replace(/^\/(?:api\/)?v1(?=\/)/, "")
    .replace(/\{\w+\}|:\w+/g, ":")
    .replace(/(?<=.)\/$/, "");

/** Paths of the endpoint table as callers write them, found by any of the forms that callers use. */
export class EndpointPaths {
  private readonly shownByPattern: ReadonlyMap<string, string>;
  private readonly summaries: ReadonlyMap<string, string>;

  constructor(endpoints: readonly Pick<Endpoint<never>, "base" | "path" | "method" | "summary">[]) {
    this.summaries = new Map(
      endpoints.map(({ method, path, summary }) => [
        `${method} ${path}`,
        summary.replace(/\.$/, ""),
      ]),
    );
    this.shownByPattern = new Map(
      endpoints.map((endpoint) => [asPattern(endpoint.path), shownPath(endpoint)]),
    );
  }

  /** The path with its base and its parameters in braces, such as `/api/v1/responses/{id}`; undefined where no endpoint has it. */
  find(entry: string): string | undefined {
    return this.shownByPattern.get(asPattern(entry));
  }

  /** What a call of an endpoint does, in words, by its method and path such as `POST /keys`; undefined where there is none. */
  summaryOf(action: string): string | undefined {
    return this.summaries.get(action);
  }

  /** The path that a misspelt one most likely means. */
  closest(entry: string): string | undefined {
    const pattern = closestName(asPattern(entry), this.shownByPattern.keys());
    return pattern === undefined ? undefined : this.shownByPattern.get(pattern);
  }
}
