import { firstSet, type Environment } from "./provider-definition.ts";

/**
 * Address of a Vertex AI resource in the operator's project; undefined without a project.
 * Source: cloud.google.com/vertex-ai/generative-ai/docs/migrate/openai/overview
 */
export function vertexUrl(environment: Environment, resource: string): string | undefined {
  const project = firstSet(environment, ["GOOGLE_VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT"]);
  if (project === undefined) return undefined;
  const location = firstSet(environment, ["GOOGLE_VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION"]) ?? "global";
  const host = location === "global" ? "aiplatform.googleapis.com" : `${location}-aiplatform.googleapis.com`;
  return `https://${host}/v1/projects/${project}/locations/${location}/${resource}`;
}
