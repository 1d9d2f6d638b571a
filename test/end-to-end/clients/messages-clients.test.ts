import { aiSdkAnthropic } from "./adapters/ai-sdk-anthropic-adapter.ts";
import { anthropicBeta, anthropicSdk } from "./adapters/anthropic-adapter.ts";
import { langchainAnthropic } from "./adapters/langchain-anthropic-adapter.ts";
import { describeClient } from "./support/client-suite.ts";
import { clientStage } from "./support/client-stage.ts";

const stage = clientStage();
const clients = [anthropicSdk, anthropicBeta, aiSdkAnthropic, langchainAnthropic];
for (const client of clients) describeClient(client, stage);
