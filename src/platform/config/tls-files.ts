import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { ConfigurationError } from "./configuration-error.ts";

/** A certificate with its chain, and its key, in PEM. */
export interface TlsPair {
  cert: string;
  key: string;
}

const wrong = (key: string, message: string): ConfigurationError =>
  new ConfigurationError([{ key, message }]);

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/**
 * Reads the certificate and the key of `server.tls`. Throws a `ConfigurationError` where a file
 * cannot be read, is not PEM, or the key is not that of the certificate.
 */
export function readTls({ certPath, keyPath }: { certPath: string; keyPath: string }): TlsPair {
  const pair = { cert: readPem("cert", certPath), key: readPem("key", keyPath) };
  const certificate = parsed("cert", certPath, () => new X509Certificate(pair.cert));
  const key = parsed("key", keyPath, () => createPrivateKey(pair.key));
  if (certificate.checkPrivateKey(key)) return pair;
  throw wrong("server.tls", "the key is not that of the certificate");
}

function readPem(name: keyof TlsPair, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw wrong(`server.tls.${name}`, `${path} cannot be read: ${reasonOf(error)}`);
  }
}

function parsed<Value>(name: keyof TlsPair, path: string, parse: () => Value): Value {
  try {
    return parse();
  } catch (error) {
    throw wrong(`server.tls.${name}`, `${path} has to be a file in PEM (${reasonOf(error)})`);
  }
}

/** Returns the seconds until a certificate in PEM expires; below 0 once it has. */
export const secondsToExpiry = ({ cert }: Pick<TlsPair, "cert">, nowMs: number): number =>
  (Date.parse(new X509Certificate(cert).validTo) - nowMs) / 1_000;
