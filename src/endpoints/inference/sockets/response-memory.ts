import type { ResponseItem } from "../../../inference/responses/stored-response.ts";

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
