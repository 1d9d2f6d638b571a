import { claudeAbilities } from "../reasoning-rules.ts";

/** What a model takes through Converse beside what all models do. */
export interface ConverseTraits {
  /** The maker whose own parameters the model takes; undefined where it has none. */
  maker: "anthropic" | "amazon" | "openai" | undefined;
  /** Keeps to output schemas and takes strict tools; the others answer 400 to both. */
  takesSchemas: boolean;
}

const makers = [
  [/claude/, "anthropic"],
  [/nova/, "amazon"],
  [/gpt-oss/, "openai"],
] as const;

/** Open models with structured outputs: docs.aws.amazon.com, "structured-output" (2026-11). */
const schemaKeepers =
  /qwen|deepseek\.v|ministral|magistral|mistral-large-3|gemma|nemotron|minimax|kimi|gpt-oss/;

/** Traits by wire name, such as `us.anthropic.claude-haiku-4-5-20251001-v1:0`. */
export function converseTraits(upstreamModel: string): ConverseTraits {
  const maker = makers.find(([pattern]) => pattern.test(upstreamModel))?.[1];
  const takesSchemas =
    maker === "anthropic"
      ? claudeAbilities(upstreamModel).takesSchemas
      : schemaKeepers.test(upstreamModel);
  return { maker, takesSchemas };
}
