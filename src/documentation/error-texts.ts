import type { ErrorCode } from "../platform/kernel/errors.ts";

/** What each error code means, and what to do about it. */
export const errorTexts: Record<ErrorCode, readonly [meaning: string, wayOut: string]> = {
  bad_request: [
    "A field of the request has a value that cannot be used.",
    "Change the field that `param` names; the message says what is expected.",
  ],
  invalid_request: [
    "The request cannot be served as it is written.",
    "Read the message and `param`, change the request, and send it again.",
  ],
  invalid_request_error: [
    "The body does not have the shape of this endpoint.",
    "Compare it with the endpoint's fields; `param` names the first that is wrong.",
  ],
  missing_required_fields: [
    "A field that the endpoint needs is absent.",
    "Add the field that `param` names.",
  ],
  model_not_rerank_compatible: [
    "The model does not rerank.",
    "Choose one of `GET /models` whose category or capabilities name rerank.",
  ],
  model_not_moderation_compatible: [
    "The model does not moderate.",
    "Leave `model` out, or name a guard or moderation model.",
  ],
  unsupported_content: [
    "The content has a kind that no provider of the model takes.",
    "Remove the content part, or choose a model whose capabilities name it.",
  ],
  context_length_exceeded: [
    "The prompt does not fit into the model's window.",
    "Shorten the prompt, compact the conversation, or name a model with a larger window in `models`.",
  ],
  max_tokens_too_small: [
    "The output cap is below the smallest that the model takes.",
    "Raise `max_tokens`.",
  ],
  content_filter: [
    "The provider's filter refused the prompt.",
    "Change the prompt, or choose another provider or model.",
  ],
  byok_required: [
    "The model is served with a key of your own only.",
    "Add a provider key with `POST /auth/byok`.",
  ],
  invalid_request_body: [
    "The body could not be read as the upload that is expected.",
    "Send `multipart/form-data` or JSON as the endpoint describes.",
  ],
  invalid_image_encoding: [
    "The image is not valid base64.",
    "Encode the bytes of the file as base64, with or without a `data:` prefix.",
  ],
  invalid_image_field: [
    "The field with the image has another type than expected.",
    "Send a file or a string under the name that the endpoint describes.",
  ],
  invalid_slug: [
    "The slug has characters that are not allowed.",
    "Use lower-case letters, digits and dashes, no dash first.",
  ],
  name_required: ["The name is absent or empty.", "Send a `name`."],
  config_required: ["The preset has no `config`.", "Send a `config` object; it may be empty."],
  authorization_pending: [
    "The person has not decided yet (device flow).",
    "Poll again after `interval` seconds.",
  ],
  slow_down: [
    "The device polls faster than `interval`.",
    "Wait five seconds longer between polls.",
  ],
  access_denied: [
    "The person refused the app.",
    "Stop polling; begin again if the person wants to.",
  ],
  expired_token: [
    "The device code has expired or was used.",
    "Begin again with a new device code.",
  ],
  invalid_client: [
    "The OAuth client is not registered, or its credential is wrong.",
    "Register the client, or leave `client_id` out where it is optional.",
  ],
  invalid_client_metadata: [
    "The registration has metadata that cannot be used.",
    "Change the field that the message names (RFC 7591).",
  ],
  invalid_redirect_uri: [
    "The redirect URI is not one that was registered.",
    "Use a registered URI, character by character.",
  ],
  invalid_grant: [
    "The code, verifier or refresh token is wrong, used or expired.",
    "Begin the authorization again.",
  ],
  invalid_scope: [
    "A scope does not exist or may not be asked for.",
    "Ask for scopes of the [list](/docs/reference/scopes).",
  ],
  invalid_target: [
    "The `resource` is not one of this gateway.",
    "Use the resource that the metadata document names (RFC 8707).",
  ],
  unsupported_grant_type: [
    "The token endpoint does not take this grant.",
    "Use one of `grant_types_supported` of the metadata document.",
  ],
  unauthorized: [
    "The credential does not open this endpoint.",
    "Send the kind of credential that the endpoint names.",
  ],
  missing_api_key: ["No credential was sent.", "Send `Authorization: Bearer` with a key."],
  invalid_api_key: [
    "The key is unknown, revoked, disabled or expired.",
    "Create a key under Keys of the dashboard or with `switchyard keys create`.",
  ],
  authentication_required: [
    "The endpoint wants a person who is signed in.",
    "Sign in at `/sign-in`.",
  ],
  insufficient_balance: [
    "The balance, or a limit of the key, does not afford the request.",
    "Add credits, raise the limit, or lower `max_tokens`; `metadata` has the figures: `reason`, `worst_case_usd`, `available_usd`, " +
      "`held_usd`. With `Retry-After` other requests hold what is missing.",
  ],
  spend_limit_reached: [
    "The key, or a key above it, has spent its limit for the window.",
    "Raise the limit, or wait until the window has moved on; a retry does not help before.",
  ],
  plan_required: [
    "The workspace's plan does not include this.",
    "Ask an operator for another plan.",
  ],
  forbidden: [
    "The credential may not do this.",
    "Use one with the role or the rights that the message names.",
  ],
  insufficient_scope: [
    "The key lacks a scope, or its `allowed_endpoints` leave the endpoint out.",
    "Use a key with the scope that the message names.",
  ],
  ip_not_allowed: [
    "The workspace accepts requests from other addresses only.",
    "Add the address with `POST /security/ip-allowlist`, from an allowed one.",
  ],
  not_found: [
    "There is nothing at this address or with this id.",
    "Check the path and the id; ids of other workspaces are not found either.",
  ],
  model_unavailable: [
    "The model is unknown, or no provider serves it to this key now.",
    "Look at `GET /models`; `POST /routing/explain` says which rule left which provider out.",
  ],
  unknown_provider: [
    "A provider of the request does not exist.",
    "Use a slug of `GET /providers`.",
  ],
  no_upstream: [
    "The rules of the request, preset, key or workspace leave no provider.",
    "Loosen `provider`, or ask `POST /routing/explain` which rule excluded whom.",
  ],
  previous_response_not_found: [
    "The response to continue does not exist, was not stored, or has expired.",
    "Send the whole input, or a stored response's id.",
  ],
  method_not_allowed: [
    "The path exists for other methods.",
    "Use one of the methods of the header `Allow`.",
  ],
  request_timeout: [
    "A body or a provider took too long.",
    "Send it again; a smaller body or a streamed answer helps.",
  ],
  conflict: [
    "Another change came first, or the name is taken.",
    "Read the state again, then decide.",
  ],
  duplicate_slug: [
    "A preset of the workspace has this slug.",
    "Choose another slug, or change the existing preset.",
  ],
  content_too_large: [
    "A document or text is larger than the endpoint takes.",
    "Send a smaller one.",
  ],
  request_too_large: [
    "The body is larger than the endpoint takes, or has too many members.",
    "Send less at once; the message names the bound.",
  ],
  image_too_large: ["The image has more bytes or pixels than are read.", "Scale it down."],
  unprocessable_entity: [
    "The request is well formed, and its values do not fit each other.",
    "Change what the message names.",
  ],
  upgrade_required: ["The endpoint does not speak WebSocket.", "Use HTTP with server-sent events."],
  rate_limit_exceeded: [
    "The key has sent too many requests or tokens in its window.",
    "Wait `Retry-After` seconds; `X-RateLimit-*` headers show the window.",
  ],
  ip_rate_limit_exceeded: [
    "The address has sent too many requests.",
    "Wait `Retry-After` seconds; send a key, which is counted by itself.",
  ],
  client_closed_request: [
    "The client left before the answer.",
    "Nothing; what was delivered is charged.",
  ],
  internal_server_error: [
    "The gateway failed.",
    "Send it again; report it with `metadata.trace_id`.",
  ],
  missing_workers_ai_binding: ["A part that reads documents is not there.", "Tell the operator."],
  ocr_extraction_error: [
    "The file could not be read: broken, protected, or without text.",
    "Send another file.",
  ],
  ocr_upstream_failed: [
    "The model that reads pages failed.",
    "Send it again, or have the operator unset `ocr.model`.",
  ],
  upstream_response_too_large: [
    "The provider's answer is larger than the gateway takes.",
    "Ask for less.",
  ],
  bad_gateway: ["The provider's answer could not be used.", "Send it again."],
  upstream_error: [
    "The provider failed or refused; `metadata.upstream_message` has its words.",
    "Send it again, or name other models in `models`.",
  ],
  upstream_exhausted: [
    "Every provider that may serve was asked and failed.",
    "`metadata.upstream_attempts` says who and why. The gateway has retried already.",
  ],
  upstream_5xx: ["The provider answered with a server error.", "Send it again."],
  upstream_402: ["Your own provider key has no credit at the provider.", "Pay there."],
  upstream_401: [
    "The provider refused the gateway's credential.",
    "The operator has to replace the key; `switchyard doctor` helps.",
  ],
  upstream_403: [
    "The provider's credential may not use the model.",
    "The operator has to enable the model at the provider.",
  ],
  upstream_invalid_response: [
    "The provider answered with something that is not its format.",
    "Send it again.",
  ],
  empty_stream: ["The provider's stream ended without content.", "Send it again."],
  not_configured: ["The operator has not turned this on.", "The message names the setting."],
  service_unavailable: [
    "The gateway cannot take the request now: its database is away, or its memory is full.",
    "Wait `Retry-After` seconds.",
  ],
  upstream_timeout: [
    "The provider did not answer in time.",
    "Send it again, or raise `timeouts_ms` of the provider.",
  ],
};
