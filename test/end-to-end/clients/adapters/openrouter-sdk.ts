/** A call in a message of the assistant. */
interface ChatToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** A part of a thought: its text or its summary. */
type ReasoningDetail = { text?: string | null } & { summary?: string };

/** A turn of the model, as OpenRouter's package has it. */
export interface ChatAssistantMessage {
  role: "assistant";
  content?: unknown;
  reasoning?: string | null;
  reasoningDetails?: ReasoningDetail[];
  toolCalls?: ChatToolCall[];
}

/** A message of a request. */
export type ChatMessages =
  | ChatAssistantMessage
  | { role: "user"; content: unknown }
  | { role: "tool"; toolCallId: string; content: string };

/** A request, with the members that the tests set. */
export interface ChatRequest {
  model: string;
  messages: ChatMessages[];
  maxTokens?: number;
  tools?: unknown[];
  responseFormat?: unknown;
  stream?: boolean;
}

/** Usage as the package shows it. */
export interface ChatUsage {
  promptTokens: number;
  completionTokens: number;
  cost?: number | null;
}

/** One chunk of a stream. */
export interface ChatStreamChunk {
  error?: { message: string };
  usage?: ChatUsage;
  choices: {
    finishReason: string | null;
    delta: {
      content?: string | null;
      reasoning?: string | null;
      reasoningDetails?: ReasoningDetail[];
      toolCalls?: {
        index: number;
        id?: string;
        function?: { name?: string; arguments?: string };
      }[];
    };
  }[];
}

/** A whole answer. */
interface ChatResult {
  choices: { message: ChatAssistantMessage; finishReason: string | null }[];
  usage?: ChatUsage;
}

/** A record as the package read it: its own fields, checked by its own schemas. */
type ReadRecord = Readonly<Record<string, unknown>>;

/** A page of models. */
interface ModelPage {
  result: { data: ReadRecord[]; totalCount: number };
}

/** The package's client, as far as the tests call it. */
export interface OpenRouter {
  chat: {
    send(request: {
      chatRequest: ChatRequest;
    }): Promise<ChatResult | AsyncIterable<ChatStreamChunk>>;
  };
  models: {
    list(request?: { limit?: number }): Promise<AsyncIterable<ModelPage>>;
    listForUser(
      security: { bearer: string },
      request?: { limit?: number },
    ): Promise<AsyncIterable<ModelPage>>;
    get(request: { author: string; slug: string }): Promise<{ data: ReadRecord }>;
    count(): Promise<{ data: { count: number } }>;
  };
  rerank: {
    rerank(request: {
      requestBody: { model: string; query: string; documents: string[] };
    }): Promise<{ results: ReadRecord[] }>;
  };
  embeddings: { listModels(): Promise<AsyncIterable<ModelPage>> };
  analytics: {
    getUserActivity(request?: {
      date?: string;
      apiKeyHash?: string;
      userId?: string;
      groupBy?: "workspace";
      workspaceId?: string;
    }): Promise<{ data: ReadRecord[] }>;
  };
  endpoints: {
    list(request: {
      author: string;
      slug: string;
    }): Promise<{ data: ReadRecord & { endpoints: ReadRecord[] } }>;
    listZdrEndpoints(): Promise<{ data: ReadRecord[] }>;
  };
  credits: { getCredits(): Promise<{ data: ReadRecord }> };
  generations: {
    getGeneration(request: { id: string }): Promise<{ data: ReadRecord }>;
    listGenerationContent(request: { id: string }): Promise<{ data: ReadRecord }>;
  };
  providers: { list(): Promise<{ data: ReadRecord[] }> };
  apiKeys: {
    getCurrentKeyMetadata(): Promise<{ data: ReadRecord }>;
    list(): Promise<{ data: ReadRecord[] }>;
    get(request: { hash: string }): Promise<{ data: ReadRecord }>;
    update(request: {
      hash: string;
      requestBody: { name?: string; limit?: number };
    }): Promise<{ data: ReadRecord }>;
    delete(request: { hash: string }): Promise<{ deleted: true }>;
  };
}

interface Package {
  OpenRouter: new (options: {
    serverURL: string;
    apiKey: string;
    retryConfig: unknown;
  }) => OpenRouter;
}

interface ErrorsOfPackage {
  OpenRouterError: new () => Error & { statusCode: number; body: string };
}

// Loaded by a name that the compiler does not follow: the package's own types redeclare the global
// ReadableStream, which breaks the types of Bun's requests everywhere in the program.
const load = (name: string): Promise<unknown> => import(name);

/** The unmodified package. */
export const { OpenRouter: OpenRouterClient } = (await load("@openrouter/sdk")) as Package;

/** The base of its errors. */
export const { OpenRouterError } = (await load("@openrouter/sdk/models/errors")) as ErrorsOfPackage;
