import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** A certificate with its private key, both in PEM. */
export interface Certificate {
  cert: string;
  key: string;
}

/** A certificate authority of the tests, which clients trust by its own certificate. */
export interface Authority extends Certificate {
  /**
   * Issues a certificate for a DNS name or an IPv4 address. `ends` is when it expires: after a year
   * if absent.
   */
  issue(host: string, options?: { ends?: Date }): Certificate;
}

const dayMs = 86_400_000;

/** Encodes an element of DER (ITU-T X.690): tag, length, content. */
function element(tag: number, ...content: Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const { length } = body;
  const lengthBytes =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...lengthBytes]), body]);
}

const sequence = (...content: Uint8Array[]): Buffer => element(0x30, ...content);
const objectId = (hex: string): Buffer => element(0x06, Buffer.from(hex, "hex"));
const time = (date: Date): Buffer =>
  element(0x18, Buffer.from(`${date.toISOString().replace(/\D/g, "").slice(0, 14)}Z`));
const nameOf = (common: string): Buffer =>
  sequence(element(0x31, sequence(objectId("550403"), element(0x0c, Buffer.from(common)))));
const extension = (id: string, value: Buffer): Buffer =>
  sequence(objectId(id), element(0x04, value));
const ecdsaWithSha256 = sequence(objectId("2a8648ce3d040302"));

/**
 * Encodes the name that a certificate is valid for: an IPv4 address, or else a DNS name (RFC 5280,
 * 4.2.1.6).
 */
function alternativeName(host: string): Buffer {
  const isAddress = /^[\d.]+$/.test(host);
  const name = isAddress
    ? element(0x87, Buffer.from(host.split(".").map(Number)))
    : element(0x82, Buffer.from(host));
  return extension("551d11", sequence(name));
}

const authorityExtension = extension("551d13", sequence(element(0x01, Buffer.from([255]))));

interface Signing {
  subject: string;
  issuer: string;
  publicKey: KeyObject;
  signingKey: KeyObject;
  ends: Date;
  extension: Buffer;
}

let serial = 1;

function signed({
  subject,
  issuer,
  publicKey,
  signingKey,
  ends,
  extension: extra,
}: Signing): string {
  serial += 1;
  const body = sequence(
    element(0xa0, element(0x02, Buffer.from([2]))),
    element(
      0x02,
      Buffer.from([serial >> 8, serial & 255].filter((byte, index) => index > 0 || byte > 0)),
    ),
    ecdsaWithSha256,
    nameOf(issuer),
    sequence(time(new Date(Date.now() - 400 * dayMs)), time(ends)),
    nameOf(subject),
    publicKey.export({ type: "spki", format: "der" }),
    element(0xa3, sequence(extra)),
  );
  const signature = sign("sha256", body, signingKey);
  const text = sequence(body, ecdsaWithSha256, element(0x03, Buffer.from([0]), signature)).toString(
    "base64",
  );
  return `-----BEGIN CERTIFICATE-----\n${text.match(/.{1,64}/g)?.join("\n")}\n-----END CERTIFICATE-----\n`;
}

const newKeys = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
const inYear = (): Date => new Date(Date.now() + 365 * dayMs);
const pem = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();

/** Creates a certificate authority for one test. */
export function createAuthority(): Authority {
  const { publicKey, privateKey } = newKeys();
  const issuer = "Authority of a test";
  return {
    key: pem(privateKey),
    cert: signed({
      subject: issuer,
      issuer,
      publicKey,
      signingKey: privateKey,
      ends: inYear(),
      extension: authorityExtension,
    }),
    issue(host, { ends = inYear() } = {}) {
      const keys = newKeys();
      const extra = alternativeName(host);
      return {
        key: pem(keys.privateKey),
        cert: signed({
          subject: host,
          issuer,
          publicKey: keys.publicKey,
          signingKey: privateKey,
          ends,
          extension: extra,
        }),
      };
    },
  };
}

/** Creates a certificate that is signed with its own key instead of by an authority. */
export function selfSigned(host: string): Certificate {
  const { publicKey, privateKey } = newKeys();
  const signing = {
    subject: host,
    issuer: host,
    publicKey,
    signingKey: privateKey,
    ends: inYear(),
    extension: alternativeName(host),
  };
  return { key: pem(privateKey), cert: signed(signing) };
}
