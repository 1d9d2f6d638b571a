import { isIP } from "node:net";
import { z } from "zod";

function parsedUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

const isHttpUrl = (text: string): boolean => /^https?:$/.test(parsedUrl(text)?.protocol ?? "");

const isPostgresUrl = (text: string): boolean =>
  /^postgres(ql)?:$/.test(parsedUrl(text)?.protocol ?? "");

/** An http(s) URL without query and fragment; a trailing slash is dropped. */
export const httpUrlSchema = z
  .string()
  .refine(isHttpUrl, "expected an http(s) URL")
  .refine((text) => !/[?#]/.test(text), "expected a URL without query and fragment")
  .transform((text) => text.replace(/\/+$/, ""));

const inMemorySqlite = /^sqlite:(:memory:|file::memory:|.*[?&]mode=memory)/;

/** `sqlite:PATH` or a Postgres URL. A ledger in memory would forget what clients paid for. */
export const storageUrlSchema = z
  .string()
  .refine(
    (text) => /^sqlite:./.test(text) || isPostgresUrl(text),
    "expected sqlite:PATH or a postgres:// URL",
  )
  .refine(
    (text) => !inMemorySqlite.test(text),
    "a database in memory would lose the ledger; name a file",
  );

/** Where shared state lives: in the memory of this process, or on a Valkey or Redis server. */
export const sharedUrlSchema = z
  .string()
  .refine(
    (text) => text === "memory:" || /^rediss?:$/.test(parsedUrl(text)?.protocol ?? ""),
    "expected memory:, redis:// or rediss://",
  );

/** Where records are archived; this release archives nothing. */
export const archiveUrlSchema = z
  .string()
  .superRefine((text, context) => {
    if (text === "none") return;
    const known = /^(clickhouse(\+https?)?|https?):$/.test(parsedUrl(text)?.protocol ?? "");
    const message = known
      ? "this release has no archive; remove CLICKHOUSE_URL / archive.url"
      : "expected none or a clickhouse+http(s):// URL";
    context.addIssue({ code: "custom", message });
  })
  .transform(() => "none" as const);

/** An address, or a range of addresses in CIDR notation (RFC 4632, RFC 4291 section 2.3). */
export const addressRangeSchema = z.string().refine((text) => {
  const [address = "", bits, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return (
    bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
  );
}, "expected an IP address or a CIDR range");
