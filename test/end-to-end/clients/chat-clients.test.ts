import { aiSdkChat, aiSdkCompatible, openrouterProvider } from "./adapters/ai-sdk-chat-adapters.ts";
import { langchainChat } from "./adapters/langchain-openai-adapters.ts";
import { openaiChat } from "./adapters/openai-chat-adapter.ts";
import { openrouterSdk } from "./adapters/openrouter-sdk-adapter.ts";
import { describeClient } from "./support/client-suite.ts";
import { clientStage } from "./support/client-stage.ts";

const stage = clientStage();
const clients = [
  openaiChat,
  aiSdkChat,
  aiSdkCompatible,
  openrouterProvider,
  openrouterSdk,
  langchainChat,
];
for (const client of clients) describeClient(client, stage);
