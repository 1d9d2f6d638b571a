import { brandHeader } from "../../platform/lib/brand.ts";
import type { ClientRequest } from "./interpretation.ts";

/** Request header by which a client says where the metadata stands: `inline` in the last event, or `event` for one of its own. */
export const metadataFrameHeader = brandHeader("Metadata-Frame").toLowerCase();

/** Request header of OpenAI's own stream helper. */
const helperHeader = "x-stainless-helper-method";

/** Request headers that say where the metadata of a Responses stream stands. */
export const metadataPlaceHeaders = [metadataFrameHeader, helperHeader] as const;

/**
 * Whether a Responses stream tells its metadata within its terminal event instead of in an event of its
 * own: for clients that break on event types which OpenAI does not have, such as `openai.responses.stream()`
 * and validators, which say so by header (decisions 0017 and 0051). Who asks for the event by name gets it.
 */
export const wantsMetadataInLastEvent = ({
  dialectHeaders,
}: Pick<ClientRequest, "dialectHeaders">): boolean =>
  dialectHeaders[metadataFrameHeader] === "inline" ||
  (dialectHeaders[metadataFrameHeader] !== "event" && dialectHeaders[helperHeader] === "stream");
