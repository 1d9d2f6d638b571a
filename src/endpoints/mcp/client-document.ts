import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import {
  clientDocumentPath,
  clientDocumentUrl,
  clientMetadata,
} from "../../mcp/gateway/oauth/authorization-server.ts";
import type { Dependencies } from "../dependencies.ts";
import { redirectUrlOf } from "./mcp-connections.ts";

const documentSchema = lazily(() =>
  z.object({
    client_id: z.string(),
    client_name: z.string(),
    client_uri: z.string(),
    application_type: z.literal("web"),
    redirect_uris: z.array(z.string()),
    grant_types: z.array(z.string()),
    response_types: z.array(z.string()),
    token_endpoint_auth_method: z.literal("none"),
  }),
);

/** Describes the gateway as a client, to authorization servers of MCP servers. */
export const clientDocument = defineEndpoint({
  method: "GET",
  path: clientDocumentPath,
  base: "root",
  access: { open: true },
  counting: "none",
  tag: "MCP",
  summary: "Describe the gateway as an OAuth client.",
  description:
    "The address of this document is the gateway's client_id at authorization servers that take Client ID Metadata Documents, where " +
    "the gateway is reached over HTTPS.",
  response: documentSchema,
  encodeError: encodeContractError,
  handle(context, deps: Pick<Dependencies, "publicUrl">) {
    const publicUrl = deps.publicUrl();
    return context.json({
      client_id: clientDocumentUrl(publicUrl) ?? publicUrl + clientDocumentPath,
      client_uri: publicUrl,
      ...clientMetadata(redirectUrlOf(deps)),
    });
  },
});
