import type { ServedRequest } from "../../../http/served-request.ts";
import type { ProviderSockets } from "../../../inference/pipeline/provider-sockets/provider-sockets.ts";
import type { ResponseMemory } from "./response-memory.ts";

/** What a `response.create` asks for beside its body, for the endpoint that serves it. */
export interface ResponseFrame {
  /** The responses that its connection can continue without storage. */
  memory: ResponseMemory;
  /** The sockets to providers that belong to its connection. */
  sockets: ProviderSockets;
  /** Whether the model answers; otherwise only the conversation is kept. */
  generates: boolean;
  /**
   * Set once the answer is streamed: ends the response as `incomplete`, with the reason `steered`,
   * where nothing that the client has to answer was begun.
   */
  steer?: () => void;
}

const frames = new WeakMap<ServedRequest, ResponseFrame>();

/** Attaches to a request what the frame that it came in asks for. */
export const attachFrame = (request: ServedRequest, frame: ResponseFrame): void =>
  void frames.set(request, frame);

/** Returns the frame that a request came in; undefined for one that came over HTTP. */
export const frameOf = (request: ServedRequest): ResponseFrame | undefined => frames.get(request);
