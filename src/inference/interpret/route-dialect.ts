import { AssertionError } from "../../platform/lib/assert.ts";
import type { DialectId } from "../canonical/dialect-id.ts";
import { routeDialect } from "../catalog/reachability.ts";
import type { UpstreamRoute } from "../catalog/model.ts";

const chatDialects: readonly string[] = [
  "openai-chat",
  "anthropic-messages",
  "openai-responses",
  "google-generate",
] satisfies DialectId[];

/** The chat-shaped dialect in which a route is spoken to; routes without one are never candidates. */
export function chatDialectOf(route: UpstreamRoute): DialectId {
  const dialect = routeDialect(route, "chat");
  if (dialect === undefined || !chatDialects.includes(dialect))
    throw new AssertionError(`${route.provider.id} serves no chat`);
  return dialect as DialectId;
}

/** Whether a route streams in Amazon's binary frames instead of server-sent events. */
export const isFramed = (route: UpstreamRoute): boolean =>
  route.provider.quirks.eventStreamFrames === true && chatDialectOf(route) === "anthropic-messages";
