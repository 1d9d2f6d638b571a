import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";

const sha256 = (data: Uint8Array | string): Buffer => createHash("sha256").update(data).digest();

/**
 * Flags of authenticator data: user present, user verified, attested credential data included (Web
 * Authentication Level 3, section 6.1).
 */
const present = 0x01;
const verified = 0x04;
const attested = 0x40;

/** Encodes the head of a CBOR item (RFC 8949): its major type, and a length or value. */
function head(major: number, value: number): Buffer {
  if (value < 24) return Buffer.from([(major << 5) | value]);
  return value < 256
    ? Buffer.from([(major << 5) | 24, value])
    : Buffer.from([(major << 5) | 25, value >> 8, value & 255]);
}
const integer = (value: number): Buffer => (value >= 0 ? head(0, value) : head(1, -1 - value));
const bytes = (value: Buffer): Buffer => Buffer.concat([head(2, value.length), value]);
const text = (value: string): Buffer => Buffer.concat([head(3, value.length), Buffer.from(value)]);
const map = (entries: [Buffer, Buffer][]): Buffer =>
  Buffer.concat([head(5, entries.length), ...entries.flat()]);

/** A passkey in software: it plays both the browser and its authenticator. */
export class Authenticator {
  private readonly id = randomBytes(16);
  private readonly keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  private count = 0;

  /** Returns the credential that answers a registration. */
  register({
    challenge,
    rpId,
    origin,
  }: {
    challenge: string;
    rpId: string;
    origin: string;
  }): object {
    const { x = "", y = "" } = this.keys.publicKey.export({ format: "jwk" });
    const coseKey = map([
      [integer(1), integer(2)],
      [integer(3), integer(-7)],
      [integer(-1), integer(1)],
      [integer(-2), bytes(Buffer.from(x, "base64url"))],
      [integer(-3), bytes(Buffer.from(y, "base64url"))],
    ]);
    const length = Buffer.from([0, this.id.length]);
    const data = Buffer.concat([
      this.data(rpId, present | verified | attested),
      Buffer.alloc(16),
      length,
      this.id,
      coseKey,
    ]);
    const attestation = map([
      [text("fmt"), text("none")],
      [text("attStmt"), map([])],
      [text("authData"), bytes(data)],
    ]);
    return this.credential({
      clientDataJSON: clientData("webauthn.create", challenge, origin).toString("base64url"),
      attestationObject: attestation.toString("base64url"),
      transports: ["internal"],
    });
  }

  /** Returns the credential that proves possession of the passkey. */
  authenticate({
    challenge,
    rpId,
    origin,
  }: {
    challenge: string;
    rpId: string;
    origin: string;
  }): object {
    const client = clientData("webauthn.get", challenge, origin);
    const data = this.data(rpId, present | verified);
    const signature = sign("sha256", Buffer.concat([data, sha256(client)]), this.keys.privateKey);
    return this.credential({
      clientDataJSON: client.toString("base64url"),
      authenticatorData: data.toString("base64url"),
      signature: signature.toString("base64url"),
    });
  }

  private data(rpId: string, flags: number): Buffer {
    const count = Buffer.alloc(4);
    count.writeUInt32BE((this.count += 1));
    return Buffer.concat([sha256(rpId), Buffer.from([flags]), count]);
  }

  private credential(response: object): object {
    const id = this.id.toString("base64url");
    return {
      id,
      rawId: id,
      type: "public-key",
      response,
      clientExtensionResults: {},
      authenticatorAttachment: "platform",
    };
  }
}

const clientData = (type: string, challenge: string, origin: string): Buffer =>
  Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
