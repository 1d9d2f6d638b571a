/** Asks the provider to keep the prompt up to here; stands on parts and tools. */
export interface CacheMarker {
  /** Lifetime; absent means the provider's default. 30m is OpenAI's, 5m and 1h are Anthropic's. */
  ttl?: "5m" | "30m" | "1h";
  /** Which of its two fields the openai-chat client used, so that the same one goes back. */
  spelling?: "cache_control" | "prompt_cache_breakpoint";
}
