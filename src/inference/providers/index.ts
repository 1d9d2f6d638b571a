import { alibaba } from "./alibaba.ts";
import { amazonBedrock } from "./amazon-bedrock.ts";
import { anthropic } from "./anthropic.ts";
import { azure } from "./azure.ts";
import { baseten } from "./baseten.ts";
import { cerebras } from "./cerebras.ts";
import { chutes } from "./chutes.ts";
import { cloudflare } from "./cloudflare.ts";
import { cohere } from "./cohere.ts";
import { databricks } from "./databricks.ts";
import { deepinfra } from "./deepinfra.ts";
import { deepseek } from "./deepseek.ts";
import { fireworks } from "./fireworks.ts";
import { friendli } from "./friendli.ts";
import { githubModels } from "./github-models.ts";
import { google } from "./google.ts";
import { googleVertex } from "./google-vertex.ts";
import { googleVertexAnthropic } from "./google-vertex-anthropic.ts";
import { groq } from "./groq.ts";
import { huggingface } from "./huggingface.ts";
import { inception } from "./inception.ts";
import { inferenceNet } from "./inference-net.ts";
import { jina } from "./jina.ts";
import { lmStudio } from "./lm-studio.ts";
import { minimax } from "./minimax.ts";
import { mistral } from "./mistral.ts";
import { moonshotai } from "./moonshotai.ts";
import { morph } from "./morph.ts";
import { nebius } from "./nebius.ts";
import { novita } from "./novita.ts";
import { nvidia } from "./nvidia.ts";
import { ollama } from "./ollama.ts";
import { ollamaCloud } from "./ollama-cloud.ts";
import { openai } from "./openai.ts";
import { openrouter } from "./openrouter.ts";
import { ovhcloud } from "./ovhcloud.ts";
import { perplexity } from "./perplexity.ts";
import { scaleway } from "./scaleway.ts";
import { siliconflow } from "./siliconflow.ts";
import { stepfun } from "./stepfun.ts";
import { together } from "./together.ts";
import { upstage } from "./upstage.ts";
import { venice } from "./venice.ts";
import { vercel } from "./vercel.ts";
import { vllm } from "./vllm.ts";
import { voyage } from "./voyage.ts";
import { wandb } from "./wandb.ts";
import { xai } from "./xai.ts";
import { zai } from "./zai.ts";
import type { ProviderDefinition } from "./provider-definition.ts";

/** Every vendor that the gateway knows by itself, in alphabetical order of slugs. */
export const providerDefinitions: readonly ProviderDefinition[] = [
  alibaba,
  amazonBedrock,
  anthropic,
  azure,
  baseten,
  cerebras,
  chutes,
  cloudflare,
  cohere,
  databricks,
  deepinfra,
  deepseek,
  fireworks,
  friendli,
  githubModels,
  google,
  googleVertex,
  googleVertexAnthropic,
  groq,
  huggingface,
  inception,
  inferenceNet,
  jina,
  lmStudio,
  minimax,
  mistral,
  moonshotai,
  morph,
  nebius,
  novita,
  nvidia,
  ollama,
  ollamaCloud,
  openai,
  openrouter,
  ovhcloud,
  perplexity,
  scaleway,
  siliconflow,
  stepfun,
  together,
  upstage,
  venice,
  vercel,
  vllm,
  voyage,
  wandb,
  xai,
  zai,
];
