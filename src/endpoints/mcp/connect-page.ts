import { defineEndpoint } from "../../access/define-endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import { pageRoute, personOf, placeOf, redirect, signInPath } from "../pages/page-response.ts";

export const connectPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/connect/:id",
  summary: "Send a person to the consent of an MCP server.",
  description:
    "The address that tools of a server name until their person has connected it. Leads through the sign-in where that is needed.",
  redirects: true,
  async handle(context, deps: Dependencies) {
    const person = await personOf(context, deps);
    const id = encodeURIComponent(context.param("id"));
    return redirect(
      context,
      person === undefined ? signInPath(placeOf(context)) : `/api/v1/mcp-servers/${id}/connect`,
    );
  },
});
