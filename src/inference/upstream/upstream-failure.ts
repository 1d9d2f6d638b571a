/** Where an exchange with an upstream broke, before any HTTP status could be judged. */
export type TransportFault =
  | "connect_failed"
  | "connect_timeout"
  | "proxy_refused"
  | "tls_failed"
  | "first_token_timeout"
  | "idle_timeout"
  | "total_timeout"
  | "connection_closed"
  | "malformed_response"
  | "response_too_large"
  | "aborted";

/** A transport failure; `sent` tells whether the upstream may have seen the request. */
export class UpstreamFailure extends Error {
  readonly fault: TransportFault;
  readonly sent: boolean;

  constructor(fault: TransportFault, message: string, options: { sent: boolean; cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "UpstreamFailure";
    this.fault = fault;
    this.sent = options.sent;
  }
}
