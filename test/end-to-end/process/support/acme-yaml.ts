/**
 * A switchyard.yaml with one provider that serves `acme/large` for 0.50 and 1.50 USD per million
 * tokens.
 */
export const acmeYaml = (baseUrl: string, more = ""): string => `
providers:
  - id: acme
    name: Acme Inference
    base_url: ${baseUrl}
    dialect: openai-chat
    api_key: upstream-secret
    models:
      - id: acme/large
        upstream_model: large-v2
        context_length: 131072
        pricing: { prompt: "0.50", completion: "1.50" }
${more}`;
