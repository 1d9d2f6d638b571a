import { editScanned, scanMembers, type Member } from "../../platform/lib/json-members.ts";
import type { Loss } from "../canonical/loss.ts";
import type { ProviderQuirks, UpstreamDialect } from "./provider-definition.ts";

/** A request in its upstream's dialect, ready but for what its endpoint wants otherwise. */
export interface EndpointRequest {
  /** JSON text of the body. */
  text: string;
  /** Headers beside the provider's own; lower-case names. */
  headers: Readonly<Record<string, string>>;
}

/** The request as the endpoint takes it, and what had to be left out. */
export interface FittedRequest extends EndpointRequest {
  losses: readonly Loss[];
}

/** The version that every Messages server knows; that of 2026-10-21 refuses sampling. */
const messagesVersion = "2023-06-01";

/**
 * Fits a request to its provider's endpoint: Messages always say their version, in a header or, with
 * Claude on Vertex AI and Bedrock, in the body, where the model then stands in the path. Every other
 * character of the body stays as it is.
 */
export function fitToEndpoint(
  request: EndpointRequest,
  { dialect, quirks }: { dialect: UpstreamDialect; quirks: ProviderQuirks },
): FittedRequest {
  if (dialect !== "anthropic-messages") return { ...request, losses: [] };
  const { betas, lost } = knownBetas(request.headers["anthropic-beta"], quirks);
  const {
    "anthropic-version": version = messagesVersion,
    "anthropic-beta": _beta,
    ...headers
  } = request.headers;
  const betaHeader = betas.length === 0 ? {} : { "anthropic-beta": betas.join(",") };
  const betaLosses = lost.map(
    (beta): Loss => ({
      field: `anthropic-beta.${beta}`,
      reason: "the provider does not know this beta",
    }),
  );
  if (quirks.bodyVersion === undefined) {
    return {
      text: request.text,
      headers: { ...headers, "anthropic-version": version, ...betaHeader },
      losses: betaLosses,
    };
  }
  const isInvoked = quirks.messagesPath === "invoke-model";
  const members = scanMembers(request.text);
  const unknown = (quirks.unknownMessagesFields ?? []).filter((field) =>
    members.some(({ key }) => key === field),
  );
  return {
    text: editBody(request.text, { members, betas: isInvoked ? betas : [], unknown, quirks }),
    headers: isInvoked ? headers : { ...headers, ...betaHeader },
    losses: [
      ...betaLosses,
      ...unknown.map((field): Loss => ({ field, reason: "the provider does not take it" })),
    ],
  };
}

/** Bedrock's path says whether the answer is streamed, and its body names the betas; Vertex AI has both as Anthropic does. */
function editBody(
  text: string,
  {
    members,
    betas,
    unknown,
    quirks: { messagesPath, bodyVersion },
  }: {
    members: readonly Member[];
    betas: readonly string[];
    unknown: readonly string[];
    quirks: ProviderQuirks;
  },
): string {
  const inPath =
    messagesPath === undefined
      ? []
      : messagesPath === "invoke-model"
        ? ["model", "stream"]
        : ["model"];
  const removed = [...inPath, ...unknown];
  return editScanned(
    text,
    members,
    new Map<string, string | undefined>([
      ...removed.map((field) => [field, undefined] as const),
      ["anthropic_version", JSON.stringify(bodyVersion)],
      ...(betas.length === 0 ? [] : [["anthropic_beta", JSON.stringify(betas)] as const]),
    ]),
  );
}

function knownBetas(
  header: string | undefined,
  quirks: ProviderQuirks,
): { betas: string[]; lost: string[] } {
  const asked = (header ?? "")
    .split(",")
    .map((beta) => beta.trim())
    .filter((beta) => beta !== "");
  const isKnown = (beta: string): boolean => quirks.knownBetas?.includes(beta) ?? true;
  return { betas: asked.filter(isKnown), lost: asked.filter((beta) => !isKnown(beta)) };
}
