import { defineEndpoint } from "../../access/define-endpoint.ts";
import { pathOf } from "../../http/request-context.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { encodeOllamaError, ollamaDoor } from "./door.ts";

/** Returns a path at both roots at which clients look for Ollama. */
const atBoth = (path: string): string[] => [path, `/ollama${path}`];

/** Refuses what changes the models of a machine, in the form that Ollama's clients read. */
const other = (
  method: "POST" | "DELETE",
  { path, alsoAt }: { path: string; alsoAt: readonly string[] },
) =>
  defineEndpoint<unknown>({
    ...ollamaDoor,
    method,
    path,
    alsoAt,
    access: { open: true },
    counting: "none",
    refuses: true,
    summary: "Refuse to change models as Ollama does.",
    description: "Models are pulled, made and deleted by their providers: 404 in Ollama's form.",
    encodeError: encodeOllamaError,
    handle({ request }) {
      throw new GatewayError(
        "not_found",
        `The gateway has no ${request.method} ${pathOf(request)}. Its models are those of /api/tags, and are ready to use.`,
      );
    },
  });

/** What Ollama has beside chats and lists. */
export const ollamaOthers = [
  other("POST", {
    path: "/api/pull",
    alsoAt: [
      "/ollama/api/pull",
      ...["/api/push", "/api/create", "/api/copy", "/api/blobs/:digest"].flatMap(atBoth),
    ],
  }),
  other("DELETE", { path: "/api/delete", alsoAt: ["/ollama/api/delete"] }),
];
