import type { Clock } from "../../../platform/lib/clock.ts";
import { GatewayError } from "../../../platform/lib/errors.ts";
import { AnswerCache, type AnswerStore } from "./answer-cache.ts";
import { MemoryAnswerStore } from "./memory-answer-store.ts";

/** Some ten thousand vectors of 1,024 floats. */
const bytesMax = 64 * 1024 * 1024;

/** What providers did is the same for all who wait; what a key or its client may or did is not. */
const isShared = (error: unknown): boolean =>
  error instanceof GatewayError &&
  error.fault === "upstream" &&
  error.code !== "client_closed_request";

/** The cache of embeddings, in the memory of this process where no other store is named. */
export const openAnswerCache = (
  clock: Clock,
  store: AnswerStore = new MemoryAnswerStore({ clock, bytesMax }),
): AnswerCache => new AnswerCache(store, isShared);
