import type { RequestContext } from "../../access/define-endpoint.ts";
import { editMembers } from "../../platform/kernel/json/json-members.ts";

/**
 * Returns the model that a request's path names, as Azure's deployments do; undefined where the
 * body names it. Clients that do not encode the slash of an id send it as two segments.
 */
export function modelInPath({ request }: Pick<RequestContext, "request">): string | undefined {
  const { name, slug } = request.params;
  return slug === undefined ? name : `${name}/${slug}`;
}

/** Returns a body with the model that its path names, which takes precedence over its own. */
export function withModelInPath<Sent extends { text: string; body: Record<string, unknown> }>(
  context: Pick<RequestContext, "request">,
  sent: Sent,
): Sent {
  const model = modelInPath(context);
  if (model === undefined) return sent;
  return {
    ...sent,
    text: editMembers(sent.text, new Map([["model", JSON.stringify(model)]])),
    body: { ...sent.body, model },
  };
}
