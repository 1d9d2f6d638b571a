/** Status of a component, and of the whole (contract, "Health snapshot"). */
export type ComponentStatus =
  | "healthy"
  | "degraded"
  /** Some parts are degraded, but requests are served. */
  | "partial"
  | "down"
  /** Too little traffic to tell. */
  | "no_signal";

/** One component of the snapshot. */
export interface Component<Data = object> {
  status: ComponentStatus;
  description: string;
  note: string | null;
  data: Data;
}

/** The status of a whole whose parts are equals: `partial` while one of them is well. */
export function statusOfParts(parts: readonly ComponentStatus[]): ComponentStatus {
  const telling = parts.filter((status) => status !== "no_signal");
  if (telling.length === 0) return "no_signal";
  if (telling.every((status) => status === "healthy")) return "healthy";
  if (telling.every((status) => status === "down")) return "down";
  return telling.includes("healthy") ? "partial" : "degraded";
}
