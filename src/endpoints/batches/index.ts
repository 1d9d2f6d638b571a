import { cancelBatch, createBatch, getBatch, listBatches } from "./batches.ts";
import {
  cancelMessageBatch,
  createMessageBatch,
  deleteMessageBatch,
  getMessageBatch,
  listMessageBatches,
  messageBatchResults,
} from "./message-batches.ts";

/** Batches in OpenAI's form, and in Anthropic's. */
export const batchEndpoints = [
  createBatch,
  listBatches,
  getBatch,
  cancelBatch,
  createMessageBatch,
  listMessageBatches,
  getMessageBatch,
  cancelMessageBatch,
  deleteMessageBatch,
  messageBatchResults,
];
