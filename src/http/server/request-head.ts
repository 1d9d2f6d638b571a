import { HttpFault } from "./http-fault.ts";
import type { RequestHeaders } from "./http-request.ts";
import { token } from "./token.ts";

/** Bytes that a request's line and headers may have together. */
export const headBytesMax = 64 * 1024;

/** The empty line that ends a head, with the end of the line before it. */
export const headEnd = "\r\n\r\n";

/** Bytes that a head is looked for in at first; few have more. */
const usualHeadBytes = 8 * 1024;

/** What a request says before its body. */
export interface RequestHead {
  method: string;
  /** Path and query as they were sent. */
  target: string;
  /** Whether the client speaks HTTP/1.1 and not 1.0. */
  isCurrent: boolean;
  headers: RequestHeaders;
}

/** What no head may have: control characters, and a lone CR or LF, which could be the end of a line to somebody behind us. */
const unfitForHead = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]|\r[^\n]|[^\r]\n/;

const usualMethods: ReadonlySet<string> = new Set(["GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS"]);

/** Names of headers in lower case, by how they were written; known ones need no further look. Bounded, since clients choose names. */
const knownNames = new Map<string, string>();
const knownNamesMax = 512;

function nameOf(written: string): string {
  const known = knownNames.get(written);
  if (known !== undefined) return known;
  if (!token.test(written)) throw new HttpFault(400, "A header's name has characters that no name may have.");
  const name = written.toLowerCase();
  if (knownNames.size < knownNamesMax) knownNames.set(written, name);
  return name;
}

/** Headers whose values are no lists: a second one makes a request that two readers may understand differently. */
const single: ReadonlySet<string> = new Set(["host", "content-length", "transfer-encoding"]);

class ParsedHeaders implements RequestHeaders {
  private readonly values = new Map<string, string>();

  add(name: string, value: string): void {
    const earlier = this.values.get(name);
    if (earlier === undefined) {
      this.values.set(name, value);
      return;
    }
    if (single.has(name)) throw new HttpFault(400, `The header ${name} came twice.`);
    this.values.set(name, `${earlier}${name === "cookie" ? "; " : ", "}${value}`);
  }

  get(name: string): string | null {
    const value = this.values.get(name);
    if (value !== undefined) return value;
    const lower = name.toLowerCase();
    return lower === name ? null : this.values.get(lower) ?? null;
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }
}

/**
 * Reads what stands before the first empty line (RFC 9112, 3 and 5), without that line. Strict where leniency lets
 * one reader see another request than the next: throws `HttpFault`.
 */
export function parseRequestHead(text: string): RequestHead {
  if (unfitForHead.test(text) || text.endsWith("\r")) throw new HttpFault(400, "The head has characters that no head may have.");
  const lineEnd = text.indexOf("\r\n");
  const end = lineEnd < 0 ? text.length : lineEnd;
  const methodEnd = text.indexOf(" ");
  const targetEnd = text.indexOf(" ", methodEnd + 1);
  const method = text.slice(0, Math.max(0, methodEnd));
  if (targetEnd < 0 || targetEnd + 9 !== end || !text.startsWith("HTTP/", targetEnd + 1)) throw noRequestLine();
  if (!usualMethods.has(method) && !token.test(method)) throw noRequestLine();
  const isCurrent = text.startsWith("1.1", end - 3);
  if (!isCurrent) assertOlder(text.slice(end - 3, end));
  const headers = readHeaders(text, end + 2);
  if (isCurrent && !headers.has("host")) throw new HttpFault(400, "The header host is missing.");
  return { method, target: originForm(method, text.slice(methodEnd + 1, targetEnd)), isCurrent, headers };
}

const noRequestLine = (): HttpFault => new HttpFault(400, "The request line is none of HTTP/1.1.");

/** Another version than 1.1; later ones of 1 are read as it (RFC 9110, 6.2). */
function assertOlder(version: string): void {
  if (!/^\d\.\d$/.test(version)) throw noRequestLine();
  if (version !== "1.0") throw new HttpFault(505, "This server speaks HTTP/1.1.");
}

function readHeaders(text: string, from: number): ParsedHeaders {
  const headers = new ParsedHeaders();
  for (let position = from; position < text.length;) {
    let end = text.indexOf("\r\n", position);
    if (end < 0) end = text.length;
    const colon = text.indexOf(":", position);
    if (colon < 0 || colon > end) throw new HttpFault(400, "A header line has no colon.");
    headers.add(nameOf(text.slice(position, colon)), valueIn(text, colon + 1, end));
    position = end + 2;
  }
  return headers;
}

/** A value without the blanks around it, of which there usually is one. */
function valueIn(text: string, from: number, end: number): string {
  const start = text.charCodeAt(from) === 0x20 ? from + 1 : from;
  const isTight = end > start && text.charCodeAt(start) > 0x20 && text.charCodeAt(end - 1) > 0x20;
  return isTight ? text.slice(start, end) : text.slice(start, end).replace(/^[ \t]+|[ \t]+$/g, "");
}

/** The path and query of a target, which proxies may send with scheme and host before it (RFC 9112, 3.2). */
function originForm(method: string, target: string): string {
  if (target.startsWith("/") || (target === "*" && method === "OPTIONS")) return target;
  const absolute = /^https?:\/\/[^/?]*(.*)$/i.exec(target)?.[1];
  if (absolute === undefined) throw new HttpFault(400, "The request's target is no path.");
  return absolute.startsWith("/") ? absolute : `/${absolute}`;
}

/** The text before the first empty line; undefined while there is none. */
export function headTextIn(bytes: Buffer, from: number): string | undefined {
  const text = bytes.toString("latin1", from, Math.min(bytes.length, from + usualHeadBytes));
  const end = text.indexOf(headEnd);
  if (end >= 0) return text.slice(0, end);
  if (bytes.length - from <= usualHeadBytes) return undefined;
  const farEnd = bytes.indexOf(headEnd, from + usualHeadBytes - headEnd.length);
  return farEnd < 0 ? undefined : bytes.toString("latin1", from, farEnd);
}
