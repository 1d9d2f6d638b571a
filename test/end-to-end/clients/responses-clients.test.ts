import { aiSdkResponses } from "./adapters/ai-sdk-responses-adapter.ts";
import { langchainResponses } from "./adapters/langchain-openai-adapters.ts";
import { openaiResponses } from "./adapters/openai-responses-adapter.ts";
import { describeClient } from "./support/client-suite.ts";
import { clientStage } from "./support/client-stage.ts";

const stage = clientStage();
for (const client of [openaiResponses, aiSdkResponses, langchainResponses])
  describeClient(client, stage);
