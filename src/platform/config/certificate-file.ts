import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";

const certificatePattern = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** The path of a file with certificates in PEM, which is read: the setting is its certificates. */
export const certificateFileSchema = (directory: string) =>
  z.string().transform((path, context): string[] => {
    try {
      const certificates: string[] =
        readFileSync(resolve(directory, path), "utf8").match(certificatePattern) ?? [];
      if (certificates.length === 0) throw new Error("it holds no -----BEGIN CERTIFICATE-----");
      for (const certificate of certificates) new X509Certificate(certificate);
      return certificates;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      context.addIssue({
        code: "custom",
        message: `expected a file with certificates in PEM: ${reason}`,
      });
      return z.NEVER;
    }
  });
