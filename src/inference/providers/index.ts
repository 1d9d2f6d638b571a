import { amazonBedrock } from "./clouds/amazon-bedrock.ts";
import { anthropic } from "./vendors/anthropic.ts";
import { azure } from "./clouds/azure.ts";
import { cerebras } from "./vendors/cerebras.ts";
import { cohere } from "./vendors/cohere.ts";
import { google } from "./vendors/google.ts";
import { googleVertex, googleVertexAnthropic } from "./clouds/google-vertex.ts";
import { groq } from "./vendors/groq.ts";
import { huggingface } from "./vendors/huggingface.ts";
import { jina } from "./vendors/jina.ts";
import { lmStudio, ollama, vllm, openaiCompatible } from "./openai-compatible.ts";
import { mistral } from "./vendors/mistral.ts";
import { nvidia } from "./vendors/nvidia.ts";
import { openai } from "./vendors/openai.ts";
import { openrouter } from "./vendors/openrouter.ts";
import type { ProviderDefinition } from "./provider-definition.ts";
import { venice } from "./vendors/venice.ts";
import { deepgram, elevenlabs } from "./vendors/sound.ts";
import { voyage } from "./vendors/voyage.ts";
import { xai } from "./vendors/xai.ts";

/** Every vendor that the gateway ships with, in alphabetical order of slugs. */
export const providerDefinitions: readonly ProviderDefinition[] = [
  ...openaiCompatible,
  amazonBedrock,
  anthropic,
  azure,
  cerebras,
  cohere,
  deepgram,
  elevenlabs,
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
