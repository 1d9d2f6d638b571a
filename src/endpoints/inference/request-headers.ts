import { z } from "zod";
import { brandHeader } from "../../platform/lib/brand.ts";

const text = (description: string) => z.string().optional().describe(description);

/** Request headers that every chat-shaped route reads, described for programs. */
export const inferenceHeaders = z.object({
  [brandHeader("Provider")]: text(
    "Slug of the provider that is to serve; several with commas are tried in that order.",
  ),
  [brandHeader("Balance-After-Debit")]: z
    .enum(["true"])
    .optional()
    .describe(
      "Asks for the charge and the balance after it; the answer waits up to 500 ms for them.",
    ),
  "x-session-id": z
    .string()
    .max(256)
    .optional()
    .describe("Requests of one session stay with one provider; the body's session_id wins."),
  "HTTP-Referer": text("Address of the app, kept with the request."),
  "X-Title": text("Name of the app, kept with the request."),
  traceparent: text("Trace that the request belongs to (W3C Trace Context)."),
});

/** Those of Messages beside them. */
export const messagesHeaders = inferenceHeaders.extend({
  "anthropic-version": text("Version of the dialect, such as 2023-06-01; may be left out."),
  "anthropic-beta": text("Betas of the dialect, passed to upstreams that know them."),
});

/** Those of Responses beside them. */
export const responsesHeaders = inferenceHeaders.extend({
  [brandHeader("Metadata-Frame")]: z
    .enum(["event", "inline"])
    .optional()
    .describe(
      "Where the stream tells its metadata: event sends an event of its own after the last one, inline puts it into the last one, " +
        "for clients that break on events that they do not know.",
    ),
});
