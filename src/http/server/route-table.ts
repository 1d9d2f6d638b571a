import type { IncomingRequest } from "./incoming-request.ts";
import type { Answer } from "./reply.ts";

/** Works on one request; what it throws is a mistake of ours. */
export type RouteHandler = (request: IncomingRequest) => Answer | Promise<Answer>;

/** Handlers of one path by method. */
export type RouteMethods = Readonly<Partial<Record<string, RouteHandler>>>;

/** Handlers by path and method; a segment that begins with a colon takes any value. */
export type CompiledRoutes = Record<string, Partial<Record<string, RouteHandler>>>;

/** A route that a path fits. */
export interface MatchedRoute {
  /** As the table has it, with the names of its parameters. */
  pattern: string;
  methods: RouteMethods;
  params: Readonly<Record<string, string>>;
}

interface Pattern {
  pattern: string;
  segments: readonly string[];
  methods: RouteMethods;
}

const noParams: MatchedRoute["params"] = {};
const isParameter = (segment: string): boolean => segment.startsWith(":");
const literalsOf = ({ segments }: Pattern): number => segments.filter((segment) => !isParameter(segment)).length;

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Values of a pattern's parameters; undefined where a path does not fit it. */
function paramsOf({ segments }: Pattern, given: readonly string[]): Record<string, string> | undefined {
  const params: Record<string, string> = {};
  for (const [index, wanted] of segments.entries()) {
    const segment = given[index] ?? "";
    if (isParameter(wanted)) {
      if (segment === "") return undefined;
      params[wanted.slice(1)] = decoded(segment);
    } else if (wanted !== segment) return undefined;
  }
  return params;
}

/** Finds the route of a path: those without parameters at once, the others among those with as many segments. */
export class RouteTable {
  private readonly fixed = new Map<string, MatchedRoute>();
  private readonly patterns = new Map<number, Pattern[]>();

  constructor(routes: CompiledRoutes) {
    for (const [pattern, methods] of Object.entries(routes)) {
      const segments = pattern.split("/");
      if (!segments.some(isParameter)) this.fixed.set(pattern, { pattern, methods, params: noParams });
      else this.patterns.set(segments.length, [...this.patterns.get(segments.length) ?? [], { pattern, segments, methods }]);
    }
    // Of two patterns that fit, the one that says more is meant.
    for (const alike of this.patterns.values()) alike.sort((one, other) => literalsOf(other) - literalsOf(one));
  }

  /** The route of a path as it was sent, without its query. */
  match(path: string): MatchedRoute | undefined {
    const fixed = this.fixed.get(path);
    if (fixed !== undefined) return fixed;
    const given = path.split("/");
    for (const pattern of this.patterns.get(given.length) ?? []) {
      const params = paramsOf(pattern, given);
      if (params !== undefined) return { pattern: pattern.pattern, methods: pattern.methods, params };
    }
    return undefined;
  }
}

/** The handler that a path has for a method: HEAD is answered as GET is, without the body (RFC 9110, 9.3.2). */
export function handlerFor(methods: RouteMethods, method: string): RouteHandler | undefined {
  if (Object.hasOwn(methods, method)) return methods[method];
  return method === "HEAD" ? methods["GET"] : undefined;
}
