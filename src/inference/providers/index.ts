import { amazonBedrock } from "./amazon-bedrock.ts";
import { anthropic } from "./anthropic.ts";
import { azure } from "./azure.ts";
import { cerebras } from "./cerebras.ts";
import { cohere } from "./cohere.ts";
import { google } from "./google.ts";
import { googleVertex, googleVertexAnthropic } from "./google-vertex.ts";
import { groq } from "./groq.ts";
import { huggingface } from "./huggingface.ts";
import { jina } from "./jina.ts";
import { lmStudio, ollama, vllm } from "./local-servers.ts";
import { mistral } from "./mistral.ts";
import { nvidia } from "./nvidia.ts";
import { openai } from "./openai.ts";
import { openaiCompatible } from "./openai-compatible.ts";
import { openrouter } from "./openrouter.ts";
import type { ProviderDefinition } from "./provider-definition.ts";
import { venice } from "./venice.ts";
import { voyage } from "./voyage.ts";
import { xai } from "./xai.ts";

/** Every vendor that the gateway ships with, in alphabetical order of slugs. */
export const providerDefinitions: readonly ProviderDefinition[] = [
  ...openaiCompatible,
  amazonBedrock,
  anthropic,
  azure,
  cerebras,
  cohere,
  google,
  googleVertex,
  googleVertexAnthropic,
  groq,
  huggingface,
  jina,
  lmStudio,
  mistral,
  nvidia,
  ollama,
  openai,
  openrouter,
  venice,
  vllm,
  voyage,
  xai,
].sort((one, other) => (one.id < other.id ? -1 : 1));
