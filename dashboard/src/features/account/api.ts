import { queryOptions } from "@tanstack/react-query";
import type { Answers, Row } from "../../lib/api-types.ts";
import { type List, refusalOf, request, sending } from "../../lib/api.ts";

/** A session of the person. */
export type SessionRow = Row<"GET /sessions">;

/** A way in which the person signs in. */
export type Way = Row<"GET /session/sign-in-methods">;

/** Asks a route for signing in, which is not below the API's base. Throws `ApiError`. */
export async function authRequest<Answer>(
  method: "GET" | "POST",
  path: string,
  body?: unknown,
): Promise<Answer> {
  const response = await fetch(`/api/auth${path}`, {
    method,
    credentials: "same-origin",
    ...(body === undefined
      ? {}
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  if (!response.ok) throw await refusalOf(response);
  return (await response.json()) as Answer;
}

export const sessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: () => request<List<SessionRow>>("/sessions"),
});
export const methodsQuery = queryOptions({
  queryKey: ["sign-in-methods"],
  queryFn: () => request<Answers["GET /session/sign-in-methods"]>("/session/sign-in-methods"),
});
export const endSession = (id: string) => request(`/sessions/${id}`, { method: "DELETE" });
export const endOtherSessions = () => request("/sessions", { method: "DELETE" });
export const unlink = (id: string) =>
  request(`/session/sign-in-methods/${id}`, { method: "DELETE" });
export const rename = (name: string) => request("/session", sending("PATCH /session", { name }));
export const deleteAccount = (body: { password?: string; confirm: boolean }) =>
  request("/session/user", sending("DELETE /session/user", body));

/** Registers a passkey of this device (Web Authentication Level 3, section 5.1.3). */
export async function addPasskey(): Promise<void> {
  const options = await authRequest<PublicKeyCredentialCreationOptionsJSON>(
    "GET",
    "/passkey/generate-register-options",
  );
  const credential = await navigator.credentials.create({
    publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
  });
  if (!(credential instanceof PublicKeyCredential)) throw new Error("The browser made no passkey.");
  await authRequest("POST", "/passkey/verify-registration", { response: credential.toJSON() });
}
