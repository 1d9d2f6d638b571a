/** A segment of paths, with those that follow it. */
interface PathNode<Value> {
  readonly named: Map<string, PathNode<Value>>;
  /** Of a parameter, which matches any segment. */
  parameter: PathNode<Value> | undefined;
  /** Of a star, which matches any rest. */
  rest: Value | undefined;
  value: Value | undefined;
}

const newNode = <Value>(): PathNode<Value> => ({
  named: new Map(),
  parameter: undefined,
  rest: undefined,
  value: undefined,
});

const segmentsOf = (path: string): string[] => path.split("/").slice(1);

/**
 * Values by the path of a route. It finds the route that the platform would: a named segment is
 * preferred to a parameter, and a parameter to a star.
 */
export class PathTable<Value> {
  readonly #root = newNode<Value>();

  constructor(entries: Iterable<readonly [path: string, value: Value]>) {
    for (const [path, value] of entries) this.#add(path, value);
  }

  /** Returns the value of the route that a request's path belongs to; undefined without one. */
  find(path: string): Value | undefined {
    return findBelow(this.#root, { segments: segmentsOf(path), at: 0 });
  }

  #add(path: string, value: Value): void {
    let node = this.#root;
    for (const segment of segmentsOf(path)) {
      if (segment === "*") {
        node.rest ??= value;
        return;
      }
      const next: PathNode<Value> =
        (isParameter(segment) ? node.parameter : node.named.get(segment)) ?? newNode();
      if (isParameter(segment)) node.parameter = next;
      else node.named.set(segment, next);
      node = next;
    }
    node.value = value;
  }
}

function findBelow<Value>(
  node: PathNode<Value>,
  { segments, at }: { segments: readonly string[]; at: number },
): Value | undefined {
  const segment = segments[at];
  if (segment === undefined) return node.value;
  for (const next of [node.named.get(segment), segment === "" ? undefined : node.parameter]) {
    const found = next && findBelow(next, { segments, at: at + 1 });
    if (found !== undefined) return found;
  }
  return node.rest;
}

const isParameter = (segment: string): boolean => segment.startsWith(":");

/**
 * Returns the paths some of whose requests another route's path matches as well, such as
 * `/keys/default` beside `/keys/:id`, and a few more: those below such a segment. A request with a
 * method that only the other route has would go there.
 */
export function pathsBesideOthers(paths: readonly string[]): ReadonlySet<string> {
  const stars = new Set<string>();
  const parameters = new Set<string>();
  const unnamed = paths.map((path) =>
    path.includes(":") ? path.replaceAll(/:[^/]+/g, ":") : path,
  );
  for (const path of unnamed) {
    if (path.endsWith("/*")) stars.add(path.slice(0, -2));
    for (let at = path.indexOf("/:"); at >= 0; at = path.indexOf("/:", at + 1))
      parameters.add(path.slice(0, at));
  }
  const isBeside = (path: string): boolean => {
    for (let at = 0; at >= 0; at = path.indexOf("/", at + 1)) {
      const above = path.slice(0, at);
      const next = path[at + 1];
      if (next !== ":" && parameters.has(above)) return true;
      if (next !== "*" && stars.has(above)) return true;
    }
    return false;
  };
  return new Set(paths.filter((_, index) => isBeside(unnamed[index] ?? "")));
}
