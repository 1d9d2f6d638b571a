import { closestName } from "../platform/kernel/schema-problems.ts";
import { type Endpoint, shownPath, asPattern } from "./endpoint.ts";

/**
 * The paths of the endpoint table as callers write them, found by any of the forms that callers
 * use.
 */
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

  /**
   * Returns the path with its base and its parameters in braces, such as `/api/v1/responses/{id}`;
   * undefined where no endpoint has it.
   */
  find(entry: string): string | undefined {
    return this.shownByPattern.get(asPattern(entry));
  }

  /**
   * Returns the summary of an endpoint by its method and path, such as `POST /keys`; undefined
   * where there is none.
   */
  summaryOf(action: string): string | undefined {
    return this.summaries.get(action);
  }

  /** Returns the path that a misspelt one most likely means. */
  closest(entry: string): string | undefined {
    const pattern = closestName(asPattern(entry), this.shownByPattern.keys());
    return pattern === undefined ? undefined : this.shownByPattern.get(pattern);
  }
}
