/**
 * Paths that a key made in the dashboard may call at first: inference, and reading what it can be asked of and
 * what became of it. Routes of the account are off until its owner lists them.
 */
export const inferenceEndpoints: readonly string[] = [
  "/chat/completions", "/messages", "/messages/count_tokens", "/responses", "/responses/compact", "/responses/:id", "/responses/:id/cancel",
  "/responses/:id/input_items", "/embeddings", "/v2/embed", "/rerank", "/v2/rerank", "/moderations", "/decisions", "/systemone",
  "/ocr/extract", "/documents/parse",
  "/routing/explain", "/models", "/models/count", "/models/recommend", "/models/:owner/:model", "/models/:id",
  "/models/:owner/:model/routing-preview", "/models/:owner/:model/metrics", "/models/:owner/:model/privacy",
  "/models/:owner/:model/uptime",
  "/models/:id/routing-preview", "/models/:id/metrics", "/models/:id/privacy", "/models/:id/uptime",
  "/generation", "/generation/:id", "/generation/:id/explain",
];
