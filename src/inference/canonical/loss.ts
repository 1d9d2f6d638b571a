/** Something of the request that the upstream's dialect cannot say. */
export interface Loss {
  /**
   * What was lost, in snake_case with the position in the canonical message list, such as `top_k`,
   * `tools[0].strict` or `messages[2].content[1].detail`.
   */
  field: string;
  /** Why, as a phrase for the caller, such as `openai-chat has no such field`. */
  reason: string;
}
