import { firstSet, type Environment, type SigningCredential } from "./provider-definition.ts";

/**
 * Address of a Vertex AI resource in the operator's project; undefined without a project.
 * Source: cloud.google.com/vertex-ai/generative-ai/docs/migrate/openai/overview
 */
export function vertexUrl(environment: Environment, resource: string): string | undefined {
  const project = firstSet(environment, ["GOOGLE_VERTEX_PROJECT", "GOOGLE_CLOUD_PROJECT"]);
  if (project === undefined) return undefined;
  const location =
    firstSet(environment, ["GOOGLE_VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION"]) ?? "global";
  const host =
    location === "global" ? "aiplatform.googleapis.com" : `${location}-aiplatform.googleapis.com`;
  return `https://${host}/v1/projects/${project}/locations/${location}/${resource}`;
}

/** The service account that calls Vertex AI: its key itself, or the file that Google's own clients read too. */
export function vertexSigning(environment: Environment): SigningCredential | undefined {
  const json = firstSet(environment, ["GOOGLE_SERVICE_ACCOUNT_KEY"]);
  const file = firstSet(environment, ["GOOGLE_APPLICATION_CREDENTIALS"]);
  if (json !== undefined) return { type: "google-service-account", key: { json } };
  return file === undefined ? undefined : { type: "google-service-account", key: { file } };
}
