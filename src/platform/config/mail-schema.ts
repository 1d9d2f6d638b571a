import { z } from "zod";
import { brand } from "../lib/brand.ts";
import { addressRangeSchema } from "./url-settings.ts";

const isSmtpUrl = (text: string): boolean =>
  URL.canParse(text) && /^smtps?:$/.test(new URL(text).protocol) && new URL(text).hostname !== "";

/** Where mail is handed in; it may hold credentials, so it is never shown. */
export const smtpUrlSchema = z.string().refine(isSmtpUrl, "expected smtp://HOST or smtps://HOST");

/** Who mail comes from: an address, or a name with the address in angle brackets. */
export const mailFromSchema = z
  .string()
  .regex(
    /^[^\r\n<>]*<?[^\s<>@]+@[^\s<>@]+>?$/,
    "expected an address such as Name <noreply@example.com>",
  );

/** What a file says of mail. */
export const mailSchema = z.strictObject({ url: smtpUrlSchema, from: mailFromSchema }).partial();

/** What a file says of webhooks. */
export const webhooksSchema = z
  .strictObject({ allowed_networks: z.array(addressRangeSchema) })
  .partial();

/** Mail as the operator settled it. */
export interface ConfiguredMail {
  readonly url: string;
  readonly from: string;
}

/** Puts the two sources together; undefined where no server is named. */
export function assembleMail(
  variables: { url: string | undefined; from: string | undefined },
  file: z.output<typeof mailSchema> = {},
  publicUrl: string | undefined,
): ConfiguredMail | undefined {
  const url = variables.url ?? file.url;
  if (url === undefined) return undefined;
  const host = publicUrl === undefined ? "localhost" : new URL(publicUrl).hostname;
  return { url, from: variables.from ?? file.from ?? `${brand.productName} <noreply@${host}>` };
}
