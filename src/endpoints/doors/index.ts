import type { Endpoint } from "../../access/define-endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  geminiMethod,
  geminiMethodOfId,
  geminiMethodOfSlug,
  geminiOthers,
} from "../gemini/generate.ts";
import { geminiModel, geminiModels } from "../gemini/models.ts";
import { ollamaChat, ollamaGenerate } from "../ollama/chat.ts";
import { ollamaEmbed, ollamaEmbeddings } from "../ollama/embed.ts";
import { ollamaPs, ollamaShow, ollamaTags, ollamaVersion } from "../ollama/models.ts";
import { ollamaOpenAiChat, ollamaRunning } from "../ollama/openai-chat.ts";
import { ollamaOthers } from "../ollama/others.ts";
import { azureChat } from "./azure-deployments.ts";
import { bedrockConverse, bedrockConverseStream } from "./bedrock/converse.ts";
import { bedrockCountTokens } from "./bedrock/count-tokens.ts";
import { bedrockInvoke, bedrockInvokeStream } from "./bedrock/invoke.ts";
import { completions, fimCompletions } from "./completions.ts";
import { passthroughs } from "./passthrough.ts";
import { vertexMessages } from "./vertex-messages.ts";

/** The endpoints for clients of forms that the gateway has no dialect of its own for, and Google's. */
export const doors: readonly Endpoint<Dependencies>[] = [
  completions,
  fimCompletions,
  azureChat,
  bedrockConverse,
  bedrockConverseStream,
  bedrockInvoke,
  bedrockInvokeStream,
  bedrockCountTokens,
  vertexMessages,
  ollamaChat,
  ollamaGenerate,
  ollamaTags,
  ollamaShow,
  ollamaPs,
  ollamaVersion,
  ollamaEmbed,
  ollamaEmbeddings,
  ollamaOpenAiChat,
  ollamaRunning,
  ...ollamaOthers,
  geminiMethod,
  geminiMethodOfId,
  geminiMethodOfSlug,
  geminiModels,
  geminiModel,
  ...geminiOthers,
  ...passthroughs,
];
