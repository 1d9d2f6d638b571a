/** A `models:` entry of switchyard.yaml. */
export interface SandboxModel {
  id: string;
  upstream_model: string;
  surface:
    | "chat"
    | "embeddings"
    | "rerank"
    | "moderations"
    | "decisions"
    | "images"
    | "transcriptions"
    | "speech"
    | "realtime";
  display_name: string;
  context_length: number;
  max_completion_tokens?: number;
  pricing: { prompt: string; completion: string };
  capabilities: string[];
  supported_parameters?: string[];
  reasoning?: { levels: string[]; default: string };
}

/** A `providers:` entry of switchyard.yaml. */
export interface SandboxProvider {
  id: string;
  name: string;
  base_url: string;
  dialect: {
    chat: "openai-chat";
    embeddings: "openai-embeddings";
    rerank: "jina-rerank";
    moderations: "openai-moderations";
    documents: "documents-parse";
    decisions: "decisions";
    images: "openai-images";
    transcriptions: "openai-audio";
    speech: "openai-audio";
    realtime: "openai-realtime";
  };
  api_key: string;
  data_policy: { zdr: boolean; data_collection: "allow" | "deny"; distillable_text: boolean };
  models: SandboxModel[];
}

const free = { prompt: "0", completion: "0" };

/** The sandbox's models, all free and named as simulated, as entries of switchyard.yaml. */
export const sandboxModels: readonly SandboxModel[] = [
  {
    id: "sandbox/chat:free",
    upstream_model: "sandbox-chat",
    surface: "chat",
    display_name: "Sandbox Chat (simulated)",
    context_length: 131_072,
    max_completion_tokens: 65_536,
    pricing: free,
    capabilities: ["chat", "function-calling", "vision", "reasoning", "structured-output"],
    supported_parameters: [
      "max_tokens",
      "max_completion_tokens",
      "stop",
      "n",
      "tools",
      "tool_choice",
      "parallel_tool_calls",
      "response_format",
      "structured_outputs",
      "reasoning_effort",
      "reasoning",
      "logprobs",
      "top_logprobs",
      "temperature",
      "top_p",
      "seed",
      "stream",
      "stream_options",
    ],
    reasoning: { levels: ["low", "medium", "high"], default: "medium" },
  },
  {
    id: "sandbox/embed:free",
    upstream_model: "sandbox-embed",
    surface: "embeddings",
    display_name: "Sandbox Embeddings (simulated)",
    context_length: 8_192,
    pricing: free,
    capabilities: ["embeddings"],
    supported_parameters: ["dimensions", "encoding_format"],
  },
  {
    id: "sandbox/rerank:free",
    upstream_model: "sandbox-rerank",
    surface: "rerank",
    display_name: "Sandbox Rerank (simulated)",
    context_length: 8_192,
    pricing: free,
    capabilities: ["rerank"],
    supported_parameters: ["top_n", "return_documents"],
  },
  {
    id: "sandbox/moderate:free",
    upstream_model: "sandbox-moderate",
    surface: "moderations",
    display_name: "Sandbox Moderation (simulated)",
    context_length: 32_768,
    pricing: free,
    capabilities: ["moderation"],
  },
  {
    id: "sandbox/decide:free",
    upstream_model: "sandbox-decide",
    surface: "decisions",
    display_name: "Sandbox Decisions (simulated)",
    context_length: 32_768,
    pricing: free,
    capabilities: ["decisions"],
  },
  {
    id: "sandbox/image:free",
    upstream_model: "sandbox-image",
    surface: "images",
    display_name: "Sandbox Image (simulated)",
    context_length: 32_768,
    pricing: free,
    capabilities: ["image-generation", "image-editing"],
    supported_parameters: ["n", "size", "quality", "stream", "partial_images"],
  },
  {
    id: "sandbox/transcribe:free",
    upstream_model: "sandbox-transcribe",
    surface: "transcriptions",
    display_name: "Sandbox Transcription (simulated)",
    context_length: 32_768,
    pricing: free,
    capabilities: ["transcription", "translation"],
    supported_parameters: ["language", "response_format", "timestamp_granularities", "stream"],
  },
  {
    id: "sandbox/speech:free",
    upstream_model: "sandbox-speech",
    surface: "speech",
    display_name: "Sandbox Speech (simulated)",
    context_length: 32_768,
    pricing: free,
    capabilities: ["speech"],
    supported_parameters: ["voice", "response_format", "speed", "stream_format"],
  },
  {
    id: "sandbox/voice:free",
    upstream_model: "sandbox-voice",
    surface: "realtime",
    display_name: "Sandbox Voice (simulated)",
    context_length: 32_768,
    max_completion_tokens: 4_096,
    pricing: free,
    capabilities: ["realtime"],
  },
];

/**
 * Returns the sandbox as a configured provider; `baseUrl` is that of a started sandbox, without
 * `/v1`. What it is sent never leaves the process, hence the data policy.
 */
export const sandboxProvider = (baseUrl: string): SandboxProvider => ({
  id: "sandbox",
  name: "Sandbox (simulated)",
  base_url: `${baseUrl}/v1`,
  dialect: {
    chat: "openai-chat",
    embeddings: "openai-embeddings",
    rerank: "jina-rerank",
    moderations: "openai-moderations",
    documents: "documents-parse",
    decisions: "decisions",
    images: "openai-images",
    transcriptions: "openai-audio",
    speech: "openai-audio",
    realtime: "openai-realtime",
  },
  api_key: "sandbox",
  data_policy: { zdr: true, data_collection: "deny", distillable_text: true },
  models: sandboxModels.map((model) => ({ ...model })),
});
