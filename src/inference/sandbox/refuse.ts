import { z } from "zod";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { InvalidRequest, type Refusal, type SandboxDialect } from "./dialect.ts";
import type { Directives } from "./directives.ts";
import { waitMs } from "./play.ts";

type Refuser = Pick<SandboxDialect, "refusal">;

type Understood<Request> =
  | { ok: true; request: Request }
  | { ok: false; status: number; message: string };

/** Parses a body and hands it to a reader; what the reader refuses becomes a 400. */
export function understand<Request>(
  bodyText: string,
  read: (body: unknown) => Request,
): Understood<Request> {
  try {
    return { ok: true, request: read(JSON.parse(bodyText)) };
  } catch (error) {
    return { ok: false, status: 400, message: reasonOf(error) };
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) {
    const [issue] = error.issues;
    return `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "invalid"}`;
  }
  const refused = [InvalidRequest, GatewayError, SyntaxError];
  if (error instanceof Error && refused.some((kind) => error instanceof kind)) return error.message;
  throw error;
}

/** Waits and refuses as the directives say; undefined when the request is to be answered. */
export async function obeyBeforeAnswer(
  directives: Directives,
  { dialect, requestId, signal }: { dialect: Refuser; requestId: string; signal: AbortSignal },
): Promise<Response | undefined> {
  const { delay_ms: delayMs, status, retry_after: retryAfterSeconds } = directives;
  if (delayMs) await waitMs(delayMs, signal);
  if (status === undefined || status < 400) return undefined;
  const headers =
    retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
  const message = `Refused with ${status}, as a sandbox directive asked.`;
  return refuse(dialect, { status, message, requestId }, headers);
}

/** A refusal in the dialect's words. */
export function refuse(
  dialect: Refuser,
  refusal: Refusal,
  headers: Record<string, string> = {},
): Response {
  return Response.json(dialect.refusal(refusal), { status: refusal.status, headers });
}

/** 16 hexadecimal digits that stand for the bytes of a request. */
export const seedOf = (bodyText: string): string =>
  Bun.hash(bodyText).toString(16).padStart(16, "0");
