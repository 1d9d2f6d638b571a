import { z } from "zod";
import { brandHeader } from "../../platform/kernel/brand.ts";

const text = (description: string) => z.string().optional().describe(description);

/** Request headers that every chat-like route reads, described for documents. */
export const inferenceHeaders = z.object({
  [brandHeader("Provider")]: text(
    "Slug of the provider to use; several, separated by commas, are tried in that order.",
  ),
  [brandHeader("Balance-After-Debit")]: z
    .enum(["true"])
    .optional()
    .describe(
      "Requests the charge and the balance after it in the answer, which waits up to 500 ms for them.",
    ),
  "x-session-id": z
    .string()
    .max(256)
    .optional()
    .describe(
      "Id of a session. Its requests are sent to the same provider; session_id in the body takes precedence.",
    ),
  [brandHeader("Run")]: text(
    "Run that the request belongs to: its name, and the bounds with which it is opened where there is none, as in `nightly; limit=0.05`.",
  ),
  [brandHeader("Customer")]: text(
    "End user that the request is for, which budgets with scope customer count; `safety_identifier` and `user` name it as well.",
  ),
  [brandHeader("Run-Hint")]: text("`true` tells the model what is left of its run."),
  "HTTP-Referer": text("URL of the app, recorded with the request."),
  "X-Title": text("Name of the app, recorded with the request."),
  traceparent: text("Trace that the request belongs to (W3C Trace Context)."),
});

/** These and the headers of Messages. */
export const messagesHeaders = inferenceHeaders.extend({
  "anthropic-version": text("Version of the dialect, such as 2023-06-01. Optional."),
  "anthropic-beta": text("Beta features of the dialect, passed to providers that support them."),
  "anthropic-user-profile-id": text("Profile at the provider, passed to providers of the dialect."),
  "anthropic-workspace-id": text("Workspace at the provider, passed to providers of the dialect."),
});

/** These and the headers of Responses. */
export const responsesHeaders = inferenceHeaders.extend({
  [brandHeader("Metadata-Frame")]: z
    .enum(["event", "inline"])
    .optional()
    .describe(
      "How a stream carries its metadata: event sends an additional event after the last one; inline adds it to the last event, for " +
        "clients that fail on unknown events.",
    ),
});
