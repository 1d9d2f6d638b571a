import {
  firstSet,
  hostFrom,
  type ProviderDefinition,
  type ProviderDeviations,
} from "./provider-definition.ts";

/** LM Studio. Source: https://lmstudio.ai */
export const lmStudio = {
  id: "lm-studio",
  name: "LM Studio",
  description: "Open models on the operator's own machine.",
  website: "https://lmstudio.ai",
  // With the path, such as `http://127.0.0.1:1234/v1`.
  baseUrl: (environment) => firstSet(environment, ["LMSTUDIO_BASE_URL"])?.replace(/\/+$/, ""),
  credentialVariables: ["LMSTUDIO_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  // Runs on the operator's own machines.
  dataPolicy: { zdr: true, dataCollection: "deny" },
  // The chat templates of many open models, such as Qwen's, refuse a system message that is not the
  // first.
  deviations: { maxTokensField: "max_tokens", systemOnlyFirst: true },
  naming: {},
  factsId: "lmstudio",
  local: true,
} satisfies ProviderDefinition;

/** Ollama. Source: https://ollama.com */
export const ollama = {
  id: "ollama",
  name: "Ollama",
  description: "Open models on the operator's own machine.",
  website: "https://ollama.com",
  // With the path, such as `http://127.0.0.1:11434/v1`.
  baseUrl: (environment) => firstSet(environment, ["OLLAMA_BASE_URL"])?.replace(/\/+$/, ""),
  // Not OLLAMA_API_KEY, which belongs to the cloud service.
  credentialVariables: ["OLLAMA_LOCAL_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  // Runs on the operator's own machines.
  dataPolicy: { zdr: true, dataCollection: "deny" },
  deviations: { maxTokensField: "max_tokens" },
  naming: {},
  local: true,
} satisfies ProviderDefinition;

/** vLLM. Source: https://docs.vllm.ai */
export const vllm = {
  id: "vllm",
  name: "vLLM",
  description: "A vLLM server of the operator's own.",
  website: "https://docs.vllm.ai",
  // With the path, such as `http://127.0.0.1:8000/v1`.
  baseUrl: (environment) => firstSet(environment, ["VLLM_BASE_URL"])?.replace(/\/+$/, ""),
  credentialVariables: ["VLLM_API_KEY"],
  dialects: { chat: "openai-chat", embeddings: "openai-embeddings" },
  // Runs on the operator's own machines.
  dataPolicy: { zdr: true, dataCollection: "deny" },
  // The chat templates of many open models, such as Qwen's, refuse a system message that is not the
  // first.
  deviations: {
    maxTokensField: "either",
    systemOnlyFirst: true,
    answersResults: "mistral",
    ownCompletions: { form: "openai" },
  },
  naming: {},
  local: true,
} satisfies ProviderDefinition;

/**
 * A vendor that speaks OpenAI's chat dialect with few differences. Absent members mean what most
 * vendors do: chat only, the output cap is named `max_tokens`, and wire names of models include
 * their makers.
 */
interface OpenaiCompatible
  extends Pick<
      ProviderDefinition,
      | "name"
      | "description"
      | "website"
      | "baseUrl"
      | "credentialVariables"
      | "dataPolicy"
      | "factsId"
    >,
    Partial<Pick<ProviderDefinition, "dialects" | "naming">> {
  refuses?: NonNullable<ProviderDefinition["refuses"]>;
  deviations?: ProviderDeviations;
}

const chatOnly: ProviderDefinition["dialects"] = { chat: "openai-chat" };
const withEmbeddings: ProviderDefinition["dialects"] = {
  chat: "openai-chat",
  embeddings: "openai-embeddings",
};

/** Vendors by slug. One that needs more than a row can express has a file of its own. */
const vendors: Readonly<Record<string, OpenaiCompatible>> = {
  alibaba: {
    name: "Alibaba Cloud",
    description: "Maker of the Qwen models, served by Model Studio outside mainland China.",
    website: "https://www.alibabacloud.com/product/modelstudio",
    baseUrl: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    credentialVariables: ["DASHSCOPE_API_KEY"],
    dialects: withEmbeddings,
    naming: { maker: "qwen" },
  },
  baseten: {
    name: "Baseten",
    description: "Open models behind a serverless API, and deployments of one's own.",
    website: "https://www.baseten.co",
    baseUrl: "https://inference.baseten.co/v1",
    credentialVariables: ["BASETEN_API_KEY"],
  },
  chutes: {
    name: "Chutes",
    description:
      "Open models on decentralised hardware, here inside trusted execution environments.",
    website: "https://chutes.ai",
    baseUrl: "https://llm.chutes.ai/v1",
    credentialVariables: ["CHUTES_API_KEY"],
  },
  cloudflare: {
    name: "Cloudflare Workers AI",
    description: "Open models on Cloudflare's network, billed to an account there.",
    website: "https://developers.cloudflare.com/workers-ai",
    baseUrl: (environment) => {
      const account = firstSet(environment, ["CLOUDFLARE_ACCOUNT_ID"]);
      return account === undefined
        ? undefined
        : `https://api.cloudflare.com/client/v4/accounts/${account}/ai/v1`;
    },
    credentialVariables: ["CLOUDFLARE_API_KEY", "CLOUDFLARE_API_TOKEN"],
    dialects: withEmbeddings,
    naming: { strip: ["@cf/"] },
    factsId: "cloudflare-workers-ai",
  },
  databricks: {
    name: "Databricks",
    description: "Hosted foundation models in a Databricks workspace.",
    website: "https://www.databricks.com",
    baseUrl: (environment) => {
      const host = hostFrom(environment, ["DATABRICKS_HOST"]);
      return host === undefined ? undefined : `https://${host}/ai-gateway/mlflow/v1`;
    },
    credentialVariables: ["DATABRICKS_TOKEN"],
    naming: { strip: ["databricks-"], decimalPoint: "-" },
  },
  deepinfra: {
    name: "DeepInfra",
    description: "Open models at low prices, serverless.",
    website: "https://deepinfra.com",
    baseUrl: "https://api.deepinfra.com/v1/openai",
    credentialVariables: ["DEEPINFRA_API_KEY"],
    dialects: withEmbeddings,
  },
  deepseek: {
    name: "DeepSeek",
    description: "Maker of the DeepSeek models, served from its own platform in China.",
    website: "https://platform.deepseek.com",
    baseUrl: "https://api.deepseek.com",
    credentialVariables: ["DEEPSEEK_API_KEY"],
    // The privacy policy lets inputs be stored and used to improve the service.
    dataPolicy: { zdr: false, dataCollection: "allow" },
    // Reasoning beside calls must be sent back, or the answer is 400
    // (api-docs.deepseek.com/guides/thinking_mode).
    deviations: {
      maxTokensField: "max_tokens",
      reasoningReplay: "reasoning_content",
      reasoningBesideCalls: true,
      refusesDeveloper: true,
      // Flash reads pictures since V4.1; Pro answers 400 to them (guides/vision, 2026-11).
      readsTextAlone: true,
      readsPictures: /flash/,
      // The reference of `response_format` knows text and JSON (api-docs.deepseek.com, 2026-11).
      jsonWithoutSchema: true,
      // BerriAI/litellm#27453 (2026-05).
      thinkingSwitch: { alwaysReasons: /reasoner/ },
      unforcedWhileReasoning: true,
      // The reference of "FIM Completion (Beta)" has these members, and 4K tokens as the most
      // (api-docs.deepseek.com/guides/fim_completion).
      ownCompletions: {
        form: "openai",
        path: "/beta/completions",
        models: /^(?!.*reasoner)/,
        oneText: true,
        fields: [
          ...["suffix", "echo", "logprobs", "max_tokens", "stop", "stream", "stream_options"],
          ...["temperature", "top_p", "frequency_penalty", "presence_penalty"],
        ],
        outputTokensMax: 4_096,
      },
    },
    refuses: ({ reasons }) => ({
      always: [],
      whileReasoning: reasons ? ["logprobs", "top_logprobs"] : [],
    }),
    naming: { maker: "deepseek" },
  },
  fireworks: {
    name: "Fireworks AI",
    description: "Open models, serverless and fast.",
    website: "https://fireworks.ai",
    baseUrl: "https://api.fireworks.ai/inference/v1",
    credentialVariables: ["FIREWORKS_API_KEY"],
    dialects: withEmbeddings,
    deviations: {
      maxTokensField: "max_tokens",
      // It names a member that it does not know and refuses the request (package `fireworks-ai` 1.2).
      ownCompletions: {
        form: "openai",
        fields: [
          ...["echo", "echo_last", "max_tokens", "n", "logprobs", "top_logprobs", "logit_bias"],
          ...["temperature", "top_p", "top_k", "min_p", "typical_p", "seed", "stop"],
          ...["frequency_penalty", "presence_penalty", "repetition_penalty", "ignore_eos"],
          ...["mirostat_lr", "mirostat_target", "prediction", "speculation", "response_format"],
          ...["reasoning_effort", "reasoning_history", "thinking", "service_tier"],
          ...["return_token_ids", "images", "metadata", "user", "prompt_cache_key"],
          ...["context_length_exceeded_behavior", "stream", "stream_options"],
        ],
      },
    },
    // Prompts and answers of open models are not stored unless the account opts in.
    dataPolicy: { zdr: true, dataCollection: "deny" },
    naming: {
      strip: ["accounts/fireworks/models/", "accounts/fireworks/routers/"],
      decimalPoint: "p",
    },
    factsId: "fireworks-ai",
  },
  friendli: {
    name: "Friendli",
    description: "Open models on an inference engine of its own.",
    website: "https://friendli.ai",
    baseUrl: "https://api.friendli.ai/serverless/v1",
    credentialVariables: ["FRIENDLI_TOKEN"],
  },
  "github-models": {
    name: "GitHub Models",
    description:
      "Models for trying out with a GitHub account: free of charge, with a low request limit.",
    website: "https://github.com/marketplace/models",
    baseUrl: "https://models.github.ai/inference",
    // Not GITHUB_TOKEN, which opens repositories and is set in many environments for other reasons.
    credentialVariables: ["GITHUB_MODELS_TOKEN"],
    deviations: { maxTokensField: "either" },
  },
  inception: {
    name: "Inception",
    description: "Maker of the Mercury diffusion models, served from its own platform.",
    website: "https://www.inceptionlabs.ai",
    baseUrl: "https://api.inceptionlabs.ai/v1",
    credentialVariables: ["INCEPTION_API_KEY"],
    naming: { maker: "inception" },
  },
  "inference-net": {
    name: "Inference.net",
    description: "Small open models, serverless and for batches.",
    website: "https://inference.net",
    baseUrl: "https://api.inference.net/v1",
    credentialVariables: ["INFERENCE_API_KEY"],
    dialects: withEmbeddings,
    factsId: "inference",
  },
  minimax: {
    name: "MiniMax",
    description: "Maker of the MiniMax models, served from its own platform.",
    website: "https://www.minimax.io",
    baseUrl: "https://api.minimax.io/v1",
    credentialVariables: ["MINIMAX_API_KEY"],
    deviations: { maxTokensField: "either" },
    naming: { maker: "minimax" },
  },
  moonshotai: {
    name: "Moonshot AI",
    description: "Maker of the Kimi models, served from its own platform.",
    website: "https://platform.moonshot.ai",
    baseUrl: "https://api.moonshot.ai/v1",
    credentialVariables: ["MOONSHOT_API_KEY"],
    // Thinking models expect their reasoning back within a turn of tools (platform.moonshot.ai,
    // "Thinking models").
    deviations: {
      maxTokensField: "max_tokens",
      reasoningReplay: "reasoning_content",
      reasoningBesideCalls: true,
      refusesEmptyTurns: true,
      plainSchemas: true,
      // platform.kimi.ai/docs/api/models-overview (2026-11).
      temperatureMax: 1,
      // theopenco/llmgateway#3065 (2026-07).
      thinkingSwitch: { alwaysReasons: /thinking|k2\.[7-9]|k[3-9]/ },
      unforcedWhileReasoning: true,
    },
    // Sampling is fixed from K2.5 on; another value is answered with 400.
    refuses: ({ name }) => ({
      always: /kimi-k(?:2\.[5-9]|[3-9])/.test(name)
        ? ["temperature", "top_p", "presence_penalty", "frequency_penalty"]
        : [],
      whileReasoning: [],
    }),
    naming: { maker: "moonshotai" },
  },
  morph: {
    name: "Morph",
    description: "Models that apply code edits quickly.",
    website: "https://morphllm.com",
    baseUrl: "https://api.morphllm.com/v1",
    credentialVariables: ["MORPH_API_KEY"],
    naming: { maker: "morph" },
  },
  nebius: {
    name: "Nebius Token Factory",
    description: "Open models from data centres in Europe and the United States.",
    website: "https://tokenfactory.nebius.com",
    baseUrl: "https://api.tokenfactory.nebius.com/v1",
    credentialVariables: ["NEBIUS_API_KEY"],
    dialects: withEmbeddings,
  },
  novita: {
    name: "Novita AI",
    description: "Open models, serverless.",
    website: "https://novita.ai",
    baseUrl: "https://api.novita.ai/openai",
    credentialVariables: ["NOVITA_API_KEY"],
    factsId: "novita-ai",
  },
  "ollama-cloud": {
    name: "Ollama Cloud",
    description: "Open models too large for one's own machine, by subscription.",
    website: "https://ollama.com/cloud",
    baseUrl: "https://ollama.com/v1",
    credentialVariables: ["OLLAMA_API_KEY"],
  },
  ovhcloud: {
    name: "OVHcloud AI Endpoints",
    description: "Open models from data centres in Europe.",
    website: "https://www.ovhcloud.com/en/public-cloud/ai-endpoints",
    baseUrl: "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1",
    credentialVariables: ["OVHCLOUD_API_KEY"],
    dialects: withEmbeddings,
  },
  perplexity: {
    name: "Perplexity",
    description: "Maker of the Sonar models, which answer from a web search.",
    website: "https://www.perplexity.ai",
    baseUrl: "https://api.perplexity.ai",
    credentialVariables: ["PERPLEXITY_API_KEY"],
    // Every chunk carries the usage so far, unasked.
    deviations: { maxTokensField: "max_tokens", noStreamOptions: true },
    naming: { maker: "perplexity" },
  },
  scaleway: {
    name: "Scaleway",
    description: "Open models from data centres in France.",
    website: "https://www.scaleway.com/en/generative-apis",
    baseUrl: "https://api.scaleway.ai/v1",
    credentialVariables: ["SCALEWAY_API_KEY"],
    dialects: withEmbeddings,
  },
  siliconflow: {
    name: "SiliconFlow",
    description: "Open models, serverless, from Asia.",
    website: "https://www.siliconflow.com",
    baseUrl: "https://api.siliconflow.com/v1",
    credentialVariables: ["SILICONFLOW_API_KEY"],
    dialects: withEmbeddings,
    // Reasoning beside calls must be sent back (code 20015).
    deviations: {
      maxTokensField: "max_tokens",
      reasoningReplay: "reasoning_content",
      reasoningBesideCalls: true,
    },
  },
  stepfun: {
    name: "StepFun",
    description: "Maker of the Step models, served from its own platform.",
    website: "https://platform.stepfun.com",
    baseUrl: "https://api.stepfun.com/v1",
    credentialVariables: ["STEPFUN_API_KEY"],
    naming: { maker: "stepfun" },
  },
  together: {
    name: "Together AI",
    description: "Open models, serverless, many of them in FP8.",
    website: "https://www.together.ai",
    baseUrl: "https://api.together.xyz/v1",
    credentialVariables: ["TOGETHER_API_KEY"],
    dialects: { ...withEmbeddings, images: "openai-images" },
    deviations: {
      maxTokensField: "max_tokens",
      pictures: "width-height",
      // Members of `CompletionRequest` (togethercomputer/openapi, 2026-04); `suffix` is none.
      ownCompletions: {
        form: "openai",
        oneText: true,
        stopIsList: true,
        fields: [
          ...["echo", "max_tokens", "n", "logprobs", "logit_bias", "seed", "stop"],
          ...["temperature", "top_p", "top_k", "min_p", "safety_model", "stream"],
          ...["frequency_penalty", "presence_penalty", "repetition_penalty", "stream_options"],
        ],
      },
    },
    factsId: "togetherai",
  },
  upstage: {
    name: "Upstage",
    description: "Maker of the Solar models, served from its own platform.",
    website: "https://www.upstage.ai",
    baseUrl: "https://api.upstage.ai/v1",
    credentialVariables: ["UPSTAGE_API_KEY"],
    naming: { maker: "upstage" },
  },
  vercel: {
    name: "Vercel AI Gateway",
    description: "A gateway in front of many other providers.",
    website: "https://vercel.com/ai-gateway",
    baseUrl: "https://ai-gateway.vercel.sh/v1",
    credentialVariables: ["AI_GATEWAY_API_KEY"],
    dialects: withEmbeddings,
    deviations: {},
  },
  wandb: {
    name: "Weights & Biases",
    description: "Open models on CoreWeave hardware.",
    website: "https://wandb.ai/site/inference",
    baseUrl: "https://api.inference.wandb.ai/v1",
    credentialVariables: ["WANDB_API_KEY"],
  },
  zai: {
    name: "Z.AI",
    description: "Maker of the GLM models, served from its own platform.",
    website: "https://z.ai",
    baseUrl: "https://api.z.ai/api/paas/v4",
    credentialVariables: ["ZAI_API_KEY", "ZHIPU_API_KEY"],
    // Interleaved thinking expects the reasoning back unchanged
    // (docs.z.ai/guides/capabilities/thinking-mode).
    deviations: {
      maxTokensField: "max_tokens",
      reasoningReplay: "reasoning_content",
      // No-Compromise-AI/glm-mcp#60, theopenco/llmgateway#3605 (2026-08).
      thinkingSwitch: { alwaysReasons: /glm-(?:5\.[3-9]|[6-9])/, leastEffort: "low" },
    },
    naming: { maker: "z-ai" },
  },
};

/** The vendors whose only dialect is OpenAI's. */
export const openaiCompatible: readonly ProviderDefinition[] = Object.entries(vendors).map(
  ([id, vendor]) => ({
    id,
    dialects: chatOnly,
    deviations: { maxTokensField: "max_tokens" },
    naming: {},
    ...vendor,
  }),
);
