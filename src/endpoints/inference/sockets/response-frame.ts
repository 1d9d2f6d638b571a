import type { ServedRequest } from "../../../http/request-context.ts";
import type { ProviderSockets } from "../../../inference/pipeline/provider-sockets/provider-sockets.ts";
import type { ResponseItem } from "../../../inference/responses/stored-response.ts";

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

/** The most responses that a connection can continue from. */
const responsesMax = 32;

/** The most characters of conversations that a connection keeps: as many as one request may have. */
const charactersMax = 32 * 1024 * 1024;

interface KeptConversation {
  items: readonly ResponseItem[];
  characters: number;
}

/**
 * The latest responses of a connection with their conversations, so that they can be continued
 * although they are not stored. The oldest leave when there are too many.
 */
export class ResponseMemory {
  private readonly kept = new Map<string, KeptConversation>();
  private characters = 0;

  /** Returns the whole conversation of a response; undefined where it is not kept. */
  find(id: string): readonly ResponseItem[] | undefined {
    return this.kept.get(id)?.items;
  }

  /** Keeps a conversation; `characters` is the length of its JSON text, about. */
  keep(id: string, conversation: KeptConversation): void {
    this.forget(id);
    this.kept.set(id, conversation);
    this.characters += conversation.characters;
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= responsesMax && this.characters <= charactersMax) return;
      this.forget(oldest);
    }
  }

  /** Forgets a response, such as one whose continuation failed. */
  forget(id: string): void {
    this.characters -= this.kept.get(id)?.characters ?? 0;
    this.kept.delete(id);
  }

  /** Forgets everything. */
  clear(): void {
    this.kept.clear();
    this.characters = 0;
  }
}
