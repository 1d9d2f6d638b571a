import { upstreamDialects } from "../../dialects/index.ts";
import type { Candidate } from "../../routing/candidate.ts";
import type { ExchangeTie } from "../../upstream/abort-scope.ts";
import type { ExchangeTimeouts } from "../../upstream/exchange.ts";
import type { UpstreamResponse } from "../../upstream/upstream-client.ts";
import { chatDialectOf } from "../adapt.ts";
import type { InferenceDependencies } from "../execution.ts";
import type { Adapter } from "../inference-call.ts";
import { addressOf } from "../upstream-targets.ts";
import type { SocketTurn } from "./socket-turn.ts";

/**
 * Sends a request on the socket to its provider that belongs to its client's socket. Resolves with
 * undefined where it has to be sent over HTTP: the dialect of the route has no sockets, or the socket
 * is in use or has failed before the first event. Rejects with an `UpstreamFailure`.
 */
export async function throughSocket(
  { upstream }: Pick<InferenceDependencies, "upstream">,
  {
    turn,
    candidate: { model, route },
    adapter: { requestText: text, requestHeaders, requestBody, requestPath },
    timeouts,
    abortScope,
  }: {
    turn: SocketTurn;
    candidate: Pick<Candidate, "model" | "route">;
    adapter: Adapter;
    timeouts: ExchangeTimeouts;
    abortScope: ExchangeTie;
  },
): Promise<UpstreamResponse | undefined> {
  const { provider } = route;
  const { socketMode: mode } = upstreamDialects[chatDialectOf(route)];
  const isPlain = (requestHeaders ?? requestBody ?? requestPath) === undefined;
  if (mode === undefined || provider.signing !== undefined || !isPlain) return undefined;
  const { url, headers } = addressOf(route, {
    surface: model.surface,
    stream: true,
    purpose: "answer",
  });
  const { "content-type": _type, ...constant } = headers;
  return turn.sockets.to({ url, headers: constant })?.ask({
    target: {
      url,
      headers: constant,
      connectTimeoutMs: provider.timeouts.connectMs * 2,
      route: upstream.routeTo(url, provider.proxy),
    },
    ...{ mode, text, turn, timeouts, abortScope, upstream },
  });
}
