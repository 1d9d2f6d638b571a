import { hostFrom, type ProviderDefinition } from "./provider-definition.ts";

/** Databricks. Source: https://www.databricks.com */
export const databricks = {
  id: "databricks",
  name: "Databricks",
  description: "Hosted foundation models in a Databricks workspace.",
  website: "https://www.databricks.com",
  baseUrl: (environment) => {
    const host = hostFrom(environment, ["DATABRICKS_HOST"]);
    return host === undefined ? undefined : `https://${host}/ai-gateway/mlflow/v1`;
  },
  credentialVariables: ["DATABRICKS_TOKEN"],
  dialects: { chat: "openai-chat" },
  quirks: { maxTokensField: "max_tokens" },
  naming: { strip: ["databricks-"], decimalPoint: "-" },
} satisfies ProviderDefinition;
