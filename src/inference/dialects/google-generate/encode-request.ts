import type { JsonObject } from "../../canonical/json.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import type { EncodedRequest, EncodeRequestOptions } from "../dialect.ts";
import { joined } from "../without-undefined.ts";
import { encodeContents } from "./encode-contents.ts";
import { encodeGenerationConfig } from "./encode-generation-config.ts";
import { GeminiState } from "./encode-state.ts";
import { encodeToolFields } from "./encode-tools.ts";

/**
 * A generateContent request; see `UpstreamDialect.encodeRequest`. The model and whether the answer is
 * streamed stand in the path, not here.
 */
export function encodeRequest(
  request: CanonicalRequest,
  options: EncodeRequestOptions,
): EncodedRequest {
  const state = new GeminiState(request, options);
  const body = joined<JsonObject>(encodeContents(state), encodeToolFields(state), {
    generationConfig: encodeGenerationConfig(state),
  });
  return { body, losses: state.losses, toolAliases: state.namer.aliases };
}
