import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import type { SignatureV4 } from "@smithy/signature-v4";
import type { Clock } from "../../../platform/kernel/clock.ts";
import type { RequestSigner, SignableRequest } from "./request-signer.ts";

/** An AWS access key, and the region and service that it signs for. */
export interface AwsCredential {
  accessKeyId: string;
  secretAccessKey: string;
  /** Present with temporary keys. */
  sessionToken?: string;
  /** The region, such as `eu-west-1`. */
  region: string;
  /** The service, such as `bedrock`. */
  service: string;
}

/**
 * Signs requests with AWS Signature Version 4 over the host, the given headers, the body and the
 * time. Source: docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 * (2026-11).
 */
export class AwsSigner implements RequestSigner {
  private signer: Promise<SignatureV4> | undefined;

  constructor(
    private readonly credential: AwsCredential,
    private readonly clock: Clock,
  ) {}

  async headersFor({
    method,
    url,
    headers,
    body,
  }: SignableRequest): Promise<Record<string, string>> {
    const { protocol, hostname, host, pathname, searchParams } = new URL(url);
    const signer = await (this.signer ??= openSigner(this.credential));
    const signed = await signer.sign(
      {
        method,
        protocol,
        hostname,
        path: pathname,
        query: Object.fromEntries(searchParams),
        headers: { ...headers, host },
        body,
      },
      { signingDate: new Date(this.clock.nowMs()) },
    );
    return Object.fromEntries(
      Object.entries(signed.headers).filter(([name]) => name !== "host" && !(name in headers)),
    );
  }
}

async function openSigner({
  region,
  service,
  accessKeyId,
  secretAccessKey,
  sessionToken,
}: AwsCredential): Promise<SignatureV4> {
  const { SignatureV4 } = await import("@smithy/signature-v4");
  return new SignatureV4({
    credentials: {
      accessKeyId,
      secretAccessKey,
      ...(sessionToken !== undefined && { sessionToken }),
    },
    region,
    service,
    sha256: Sha256,
    applyChecksum: false,
  });
}

/** SHA-256 and HMAC-SHA-256, with the interface that the signer library expects. */
class Sha256 {
  private state: Hash | Hmac;
  private readonly secret: string | ArrayBuffer | ArrayBufferView | undefined;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.secret = secret;
    this.state = this.begin();
  }

  update(data: Uint8Array): void {
    this.state.update(data);
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(new Uint8Array(this.state.digest()));
  }

  reset(): void {
    this.state = this.begin();
  }

  private begin(): Hash | Hmac {
    const { secret } = this;
    if (secret === undefined) return createHash("sha256");
    if (typeof secret === "string") return createHmac("sha256", secret);
    const { buffer, byteOffset, byteLength } = ArrayBuffer.isView(secret)
      ? secret
      : new Uint8Array(secret);
    return createHmac("sha256", new Uint8Array(buffer, byteOffset, byteLength));
  }
}
