/** `cost` of a usage object; undefined where the client has dropped it. */
export function costOf(usage: unknown): number | undefined {
  const cost: unknown = Reflect.get(Object(usage), "cost");
  return typeof cost === "number" ? cost : undefined;
}
