import { STATUS_CODES } from "node:http";
import type { ReplyManner } from "./reply-manner.ts";
import { token } from "./token.ts";

/** How names are usually written; programs that look for them byte by byte look for these. */
const writtenNames: Readonly<Record<string, string>> = {
  "content-type": "Content-Type", "cache-control": "Cache-Control", "retry-after": "Retry-After", "set-cookie": "Set-Cookie",
  location: "Location", connection: "Connection", allow: "Allow", upgrade: "Upgrade",
};

/** What no header may carry: a line break would begin a header that nobody meant (RFC 9110, 5.5). */
const unfit = /[^\t\x20-\x7e]/;

const linePrefixes = new Map<string, string>();
const linePrefixesMax = 512;

function prefixOf(name: string): string {
  const known = linePrefixes.get(name);
  if (known !== undefined) return known;
  if (!token.test(name)) throw new TypeError(`${JSON.stringify(name)} can be no header's name`);
  const prefix = `${writtenNames[name] ?? name}: `;
  if (linePrefixes.size < linePrefixesMax) linePrefixes.set(name, prefix);
  return prefix;
}

/** One line of a head. Throws where the value cannot be carried by a header. */
export function headerLine(name: string, value: string): string {
  if (unfit.test(value)) throw new TypeError(`the header ${name} holds a character that no header can carry`);
  return `${prefixOf(name)}${value}\r\n`;
}

const statusLines = new Map<number, string>();

function statusLine(status: number): string {
  let line = statusLines.get(status);
  if (line === undefined) {
    line = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Unknown"}\r\n`;
    statusLines.set(status, line);
  }
  return line;
}

let dateSecond = 0;
let dateLine = "";

/** The line of the time (RFC 9110, 6.6.1), made once a second. */
function dateLineAt(nowMs: number): string {
  const second = Math.floor(nowMs / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateLine = `Date: ${new Date(second * 1000).toUTCString()}\r\n`;
  }
  return dateLine;
}

/** How the body of an answer is delimited: its bytes, chunks, or the end of the connection. */
export type Framing = number | "chunked" | "until-close" | "none";

function framingLine(framing: Framing): string {
  if (typeof framing === "number") return `Content-Length: ${framing}\r\n`;
  return framing === "chunked" ? "Transfer-Encoding: chunked\r\n" : "";
}

/** The head of an answer up to its empty line. */
export function replyHead(
  { status, lines, framing, manner: { closes, nowMs } }:
  { status: number; lines: string; framing: Framing; manner: Pick<ReplyManner, "closes" | "nowMs"> },
): string {
  // A client that speaks HTTP/1.0 and wants to go on is told that it may.
  const connection = closes === true ? "Connection: close\r\n" : closes === "kept" ? "Connection: keep-alive\r\n" : "";
  return `${statusLine(status)}${lines}${dateLineAt(nowMs)}${connection}${framingLine(framing)}\r\n`;
}

/** The lines of headers that were gathered by name. */
export function headerLines(headers: Readonly<Record<string, string>>, cookies: readonly string[] | undefined): string {
  let lines = "";
  for (const name in headers) lines += headerLine(name, headers[name] ?? "");
  return cookies === undefined ? lines : lines + cookieLines(cookies);
}

const cookieLines = (cookies: readonly string[]): string => cookies.map((cookie) => headerLine("set-cookie", cookie)).join("");

/** The lines of a platform's `Response`. */
export function headerLinesOf(headers: Headers): string {
  let lines = "";
  headers.forEach((value, name) => {
    if (name !== "set-cookie" && name !== "content-length" && name !== "transfer-encoding") lines += headerLine(name, value);
  });
  return lines + cookieLines(headers.getSetCookie());
}
