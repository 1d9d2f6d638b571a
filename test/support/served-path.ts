import type { Endpoint } from "../../src/http/endpoint.ts";

/** Returns a path that an endpoint serves, from one of its patterns. */
export function servedPath({ serves }: Pick<Endpoint<never>, "serves">, pattern: string): string {
  const path = pattern.replaceAll(/:\w+/g, "x");
  return serves === undefined || serves(path) ? path : `${path}:generateContent`;
}
