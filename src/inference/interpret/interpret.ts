import type { DialectId } from "../canonical/dialect-id.ts";
import { assert } from "../../platform/lib/assert.ts";
import { interpretAnthropicMessages } from "./anthropic-messages/anthropic-messages.ts";
import { anthropicMessages } from "../dialects/anthropic-messages/anthropic-messages.ts";
import { clientDialects, upstreamDialects } from "./dialects.ts";
import type { Provider } from "../catalog/model.ts";
import { fitToEndpoint } from "../providers/fit-to-endpoint.ts";
import type { Interpret, Interpretation } from "./interpretation.ts";
import { interpretOpenaiChat } from "./openai-chat/openai-chat.ts";
import { interpretOpenaiResponses } from "./openai-responses/openai-responses.ts";
import { chatDialectOf } from "./route-dialect.ts";
import { translate } from "./translate.ts";

/** How each dialect meets itself: its bytes are kept. */
const natives: Partial<Record<DialectId, Interpret>> = {
  "openai-chat": interpretOpenaiChat,
  "anthropic-messages": interpretAnthropicMessages,
  "openai-responses": interpretOpenaiResponses,
};

/** What stands between a client's request and a route: its own bytes where both speak alike, the canonical form otherwise. */
export const interpret: Interpret = (request, route) => {
  const upstream = chatDialectOf(route.route);
  const interpretation = interpretAs(upstream, request, route);
  return upstream === "anthropic-messages"
    ? fitted(interpretation, route.route.provider)
    : interpretation;
};

function interpretAs(
  upstream: DialectId,
  ...[request, route]: Parameters<Interpret>
): Interpretation {
  const native = upstream === request.dialect ? natives[upstream] : undefined;
  if (native !== undefined) return native(request, route);
  const client = clientDialects[request.dialect];
  assert(client !== undefined, `clients do not speak ${request.dialect}`);
  return translate(request, route, { client, upstream: upstreamDialects[upstream] });
}

/** Messages are served at endpoints that differ, and all of them want their version. */
function fitted(interpretation: Interpretation, { quirks }: Provider): Interpretation {
  const { requestText, requestHeaders = {}, losses } = interpretation;
  // What was translated says its version already and asks for nothing beside it.
  if (requestHeaders === anthropicMessages.requestHeaders && quirks.bodyVersion === undefined)
    return interpretation;
  const fit = fitToEndpoint(
    { text: requestText, headers: requestHeaders },
    { dialect: "anthropic-messages", quirks },
  );
  return {
    ...interpretation,
    requestText: fit.text,
    requestHeaders: fit.headers,
    losses: [...losses, ...fit.losses],
  };
}
