import type { SourceNode } from "../source-node.ts";

const chat = ["/chat/completions"];
const messages = ["/messages", "/messages/count_tokens"];
const responses = ["/responses", "/responses/{id}", "/responses/{id}/cancel"];
const embeddings = ["/embeddings"];
const rerank = ["/rerank", "/v2/rerank"];
const moderations = ["/moderations"];
const models = ["/models", "/models/{id}"];
const openai = [...chat, ...responses, ...embeddings, ...moderations, ...models];

/** The endpoints behind LiteLLM's routes and groups of routes. */
const endpointsByRoute: Readonly<Record<string, readonly string[]>> = {
  llm_api_routes: [...openai, ...messages, ...rerank],
  openai_routes: [...openai, ...rerank],
  anthropic_routes: messages,
  "/chat/completions": chat,
  "/messages": messages.slice(0, 1),
  "/messages/count_tokens": messages.slice(1),
  "/responses": responses,
  "/responses/*": responses,
  "/embeddings": embeddings,
  "/rerank": rerank.slice(0, 1),
  "/v2/rerank": rerank.slice(1),
  "/moderations": moderations,
  "/models": models,
};

/**
 * Returns the endpoints that a key's `allowed_routes` mean; undefined where it may call every one,
 * and `none` where the gateway has none of them. What is missing is reported.
 */
export function endpointsOf(list: SourceNode | undefined): readonly string[] | "none" | undefined {
  const routes = list?.texts() ?? [];
  if (routes.length === 0) return undefined;
  const found = routes.map((route) => endpointsByRoute[route.replace(/^\/v1(?=\/)/, "")]);
  const missing = routes.filter((_, index) => found[index] === undefined);
  const endpoints = [...new Set(found.flatMap((each) => each ?? []))];
  const isNone = endpoints.length === 0;
  const outcome = isNone
    ? ", so the key is made disabled: set allowed_endpoints, then enable it"
    : "";
  if (missing.length > 0)
    list?.report(
      isNone ? "left_out" : "changed",
      `${missing.join(", ")}: no endpoint here${outcome}`,
    );
  return isNone ? "none" : endpoints;
}
