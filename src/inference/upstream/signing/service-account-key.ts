/** A Google service account's key, as far as it is needed. */
export interface ServiceAccountKey {
  clientEmail: string;
  /** PKCS #8 in PEM. */
  privateKey: string;
  privateKeyId?: string;
  /** Where signed claims are exchanged for access tokens. */
  tokenUrl: string;
}

const googleTokenUrl = "https://oauth2.googleapis.com/token";

/**
 * Reads the JSON key file that Google Cloud hands out. Throws Error that says what is wrong,
 * without repeating any of the text. Source: cloud.google.com/iam/docs/keys-create-delete
 * (2026-11).
 */
export function readServiceAccountKey(text: string): ServiceAccountKey {
  let fields: Readonly<Record<string, unknown>> | null;
  try {
    fields = JSON.parse(text) as Readonly<Record<string, unknown>> | null;
  } catch {
    throw new Error("the service account key is not valid JSON");
  }
  const {
    type,
    client_email: clientEmail,
    private_key: privateKey,
    private_key_id: privateKeyId,
    token_uri: tokenUrl,
  } = fields ?? {};
  if (type !== "service_account") {
    throw new Error(
      `the key has the type ${JSON.stringify(type)}; a key of type "service_account" is needed`,
    );
  }
  if (typeof clientEmail !== "string" || typeof privateKey !== "string") {
    throw new Error("the service account key lacks client_email or private_key");
  }
  return {
    clientEmail,
    privateKey,
    ...(typeof privateKeyId === "string" && { privateKeyId }),
    tokenUrl: typeof tokenUrl === "string" ? tokenUrl : googleTokenUrl,
  };
}
