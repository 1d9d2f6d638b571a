import type { ErrorCode } from "../platform/kernel/errors.ts";

/** The meaning of each error code, and the remedy. */
export const errorTexts: Record<ErrorCode, readonly [meaning: string, wayOut: string]> = {
  bad_request: [
    "A field of the request has an invalid value.",
    "Change the field that `param` names; the message says what the gateway expects.",
  ],
  invalid_request: [
    "The gateway cannot serve the request in its present form.",
    "Read the message and `param`, change the request, and send it again.",
  ],
  invalid_request_error: [
    "The body does not have the shape of this endpoint.",
    "Compare the body with the endpoint's fields; `param` names the first invalid one.",
  ],
  missing_required_fields: ["A required field is missing.", "Add the field that `param` names."],
  model_not_rerank_compatible: [
    "The model does not support rerank.",
    "Choose a model of `GET /models` whose category or capabilities include rerank.",
  ],
  model_not_moderation_compatible: [
    "The model does not support moderations.",
    "Omit `model`, or name a guard or moderation model.",
  ],
  storage_quota_exceeded: [
    "The files of the workspace take all of its storage.",
    "Delete files that are not needed any more, or ask the operator to raise `files.quota_gb`.",
  ],
  unsupported_content: [
    "No provider of the model supports this type of content.",
    "Remove the content part, or choose a model whose capabilities include it.",
  ],
  context_length_exceeded: [
    "The prompt is longer than the model's context window.",
    "Shorten the prompt, compact the conversation, or add a model with a larger context window to `models`.",
  ],
  max_tokens_too_small: ["The output cap is below the model's minimum.", "Raise `max_tokens`."],
  content_filter: [
    "The provider's content filter refused the prompt.",
    "Change the prompt, or choose another provider or model.",
  ],
  byok_required: [
    "The model requires your own provider key.",
    "Add a provider key with `POST /auth/byok`.",
  ],
  invalid_request_body: [
    "The body is not a valid upload for this endpoint.",
    "Send `multipart/form-data` or JSON as the endpoint describes.",
  ],
  invalid_image_encoding: [
    "The image is not valid base64.",
    "Encode the bytes of the file as base64, with or without a `data:` prefix.",
  ],
  invalid_image_field: [
    "The image field has the wrong type.",
    "Send a file or a string in the field that the endpoint describes.",
  ],
  invalid_slug: [
    "The slug contains characters that are not allowed.",
    "Use lowercase letters, digits and dashes, and do not start with a dash.",
  ],
  name_required: ["The name is missing or empty.", "Send a `name`."],
  config_required: ["The preset has no `config`.", "Send a `config` object; it may be empty."],
  authorization_pending: [
    "The user has not decided yet (device flow).",
    "Poll again after `interval` seconds.",
  ],
  slow_down: [
    "The device polls more often than `interval` allows.",
    "Increase the time between polls by five seconds.",
  ],
  access_denied: ["The user refused the app.", "Stop polling. Start again if the user wants to."],
  expired_token: [
    "The device code has expired or has been used.",
    "Start again with a new device code.",
  ],
  invalid_client: [
    "The OAuth client is not registered, or its credential is wrong.",
    "Register the client, or omit `client_id` if it is optional.",
  ],
  invalid_client_metadata: [
    "The registration contains invalid metadata.",
    "Change the field that the message names (RFC 7591).",
  ],
  invalid_redirect_uri: [
    "The redirect URI is not registered.",
    "Use a registered URI; it must match exactly.",
  ],
  invalid_grant: [
    "The code, verifier or refresh token is invalid, used or expired.",
    "Start the authorization again.",
  ],
  invalid_scope: [
    "A scope does not exist or may not be requested.",
    "Request scopes from the [list](/docs/reference/scopes).",
  ],
  invalid_target: [
    "The `resource` does not belong to this gateway.",
    "Use the resource that the metadata document names (RFC 8707).",
  ],
  unsupported_grant_type: [
    "The token endpoint does not support this grant.",
    "Use one of the `grant_types_supported` in the metadata document.",
  ],
  unauthorized: [
    "The endpoint does not accept this credential.",
    "Send the type of credential that the endpoint requires.",
  ],
  missing_api_key: ["The request has no credential.", "Send `Authorization: Bearer` with a key."],
  invalid_api_key: [
    "The key is unknown, revoked, disabled or expired.",
    "Create a key in the dashboard under Keys, or with `switchyard keys create`.",
  ],
  authentication_required: ["The endpoint requires a signed-in user.", "Sign in at `/sign-in`."],
  insufficient_balance: [
    "The balance, or a limit of the key, is too low for the request.",
    "Add credits, raise the limit, or lower `max_tokens`. `metadata` has `reason`, `worst_case_usd`, `available_usd` and " +
      "`held_usd`. If the answer has `Retry-After`, the holds of other requests are the cause.",
  ],
  run_exhausted: [
    "The run has used its limit or its requests, or is paused, expired or ended.",
    "Open `metadata.resume_url`, where a person adds to the run or lets it go on, and send the same request again. " +
      "`metadata` has `reason`, `run_id` and `limit_usd`.",
  ],
  spend_limit_reached: [
    "The key, or its parent key, has reached its spending limit for the window.",
    "Raise the limit, or wait until the window has moved on. Earlier retries fail.",
  ],
  plan_required: [
    "The workspace's plan does not include this.",
    "Ask an operator for another plan.",
  ],
  forbidden: [
    "The credential does not permit this action.",
    "Use a credential with the role or the rights that the message names.",
  ],
  insufficient_scope: [
    "The key lacks a scope, or its `allowed_endpoints` do not include the endpoint.",
    "Use a key with the scope that the message names.",
  ],
  ip_not_allowed: [
    "The workspace does not accept requests from this address.",
    "Add the address with `POST /security/ip-allowlist`, from an allowed address.",
  ],
  not_found: [
    "Nothing exists at this path or with this id.",
    "Check the path and the id. Ids of other workspaces are not found either.",
  ],
  model_unavailable: [
    "The model is unknown, or no provider currently serves it to this key.",
    "Check `GET /models`. `POST /routing/explain` shows which rule excluded which provider.",
  ],
  unknown_provider: [
    "The request names a provider that does not exist.",
    "Use a slug from `GET /providers`.",
  ],
  no_upstream: [
    "The rules of the request, preset, key or workspace exclude every provider.",
    "Relax `provider`, or check with `POST /routing/explain` which rule excluded which provider.",
  ],
  previous_response_not_found: [
    "The response to continue does not exist, was not stored, or has expired.",
    "Send the whole input, or a stored response's id.",
  ],
  websocket_connection_limit_reached: [
    "The socket has been open for 60 minutes.",
    "Open another one, and send the whole input where responses are not stored.",
  ],
  method_not_allowed: [
    "The path does not support this method.",
    "Use one of the methods in the header `Allow`.",
  ],
  request_timeout: [
    "The body arrived too slowly, or a provider took too long.",
    "Retry with a smaller body or a streamed answer.",
  ],
  conflict: [
    "Another change was made first, or the name is taken.",
    "Read the state again, then decide.",
  ],
  duplicate_slug: [
    "Another preset of the workspace has this slug.",
    "Choose another slug, or change the existing preset.",
  ],
  content_too_large: [
    "A document or text exceeds the endpoint's size limit.",
    "Send a smaller document or text.",
  ],
  request_too_large: [
    "The body exceeds the endpoint's size limit, or has too many members.",
    "Send less in one request; the message names the limit.",
  ],
  image_too_large: ["The image exceeds the limit on bytes or pixels.", "Scale the image down."],
  unprocessable_entity: [
    "The request is well formed, but its values contradict each other.",
    "Change the values that the message names.",
  ],
  upgrade_required: [
    "The endpoint does not support WebSocket, or the operator has disabled it; or it supports nothing else, or another version.",
    "Use HTTP with server-sent events, or the scheme `wss`, as the message says.",
  ],
  rate_limit_exceeded: [
    "The key has sent too many requests or tokens in its window.",
    "Wait `Retry-After` seconds. The `X-RateLimit-*` headers show the window.",
  ],
  ip_rate_limit_exceeded: [
    "The address has sent too many requests.",
    "Wait `Retry-After` seconds, or send a key, which has its own limit.",
  ],
  client_closed_request: [
    "The client disconnected before the answer.",
    "No action is needed. The delivered part of the answer is charged.",
  ],
  internal_server_error: [
    "The gateway failed.",
    "Retry. If the error persists, report it with `metadata.trace_id`.",
  ],
  missing_workers_ai_binding: [
    "A component that reads documents is missing.",
    "Contact the operator.",
  ],
  ocr_extraction_error: [
    "The file cannot be read: it is corrupt or protected, or contains no text.",
    "Send another file.",
  ],
  ocr_upstream_failed: [
    "The model that reads the pages failed.",
    "Retry, or ask the operator to remove `ocr.model`.",
  ],
  upstream_response_too_large: [
    "The provider's answer exceeds the gateway's size limit.",
    "Request a smaller answer.",
  ],
  bad_gateway: ["The provider's answer was unusable.", "Retry the request."],
  upstream_error: [
    "The provider failed or refused the request; `metadata.upstream_message` has its message.",
    "Retry, or add fallback models to `models`.",
  ],
  upstream_exhausted: [
    "Every eligible provider failed.",
    "`metadata.upstream_attempts` lists each provider and its failure. The gateway has already retried.",
  ],
  upstream_5xx: ["The provider answered with a server error.", "Retry the request."],
  upstream_402: [
    "Your own provider key has no credit at the provider.",
    "Add credit at the provider.",
  ],
  upstream_401: [
    "The provider refused the gateway's credential.",
    "Ask the operator to replace the key; `switchyard doctor` checks it.",
  ],
  upstream_403: [
    "The provider's credential may not use the model.",
    "Ask the operator to enable the model at the provider.",
  ],
  upstream_invalid_response: [
    "The provider's answer is not in its own format.",
    "Retry the request.",
  ],
  empty_stream: ["The provider's stream ended without content.", "Retry the request."],
  not_configured: ["The operator has not enabled this feature.", "The message names the setting."],
  service_unavailable: [
    "The gateway cannot serve the request now: its database is unavailable, its memory for bodies is full, or it is shutting down.",
    "Wait `Retry-After` seconds.",
  ],
  upstream_timeout: [
    "The provider did not answer in time.",
    "Retry, or raise the provider's `timeouts_ms`.",
  ],
};
