import { scopes, type Scope } from "../../../src/identity/keys/scopes.ts";
import type { Seed } from "./seed-storage.ts";

const workspaceId = "ws_families";
const otherWorkspaceId = "ws_of_others";
const long = (name: string): string => `${name}${"0123456789abcdef".repeat(2)}`;

/** Secrets of every kind of credential that the contract tells apart. */
export const secrets = {
  llm: long("sk-svc-v1-full"),
  llmElsewhere: long("sk-svc-v1-elsewhere"),
  llmDisabled: long("sk-svc-v1-disabled"),
  llmExpired: long("sk-svc-v1-expired"),
  llmUnknown: long("sk-svc-v1-unknown"),
  management: long("ak_live_full"),
  managementElsewhere: long("ak_live_elsewhere"),
  managementExpired: long("ak_live_expired"),
  managementUnknown: long("ak_live_unknown"),
} as const;

/** Secret of the management key that holds every scope but this one and the one that implies it. */
export const secretWithout = (scope: Scope): string =>
  long(`ak_live_without_${scope.replace(":", "_")}`);

/** A `write:X` scope implies `read:X`, so a key that lacks the reading lacks the writing. */
const scopesWithout = (scope: Scope): Scope[] =>
  scopes.filter(
    (other) =>
      other !== scope &&
      !(scope.startsWith("read:") && other === `write:${scope.slice("read:".length)}`),
  );

/** One workspace with a key of every kind, which is the operator's, and another one. */
export const familiesSeed: Seed = {
  workspaces: [{ id: workspaceId }, { id: otherWorkspaceId }],
  llmKeys: [
    { secret: secrets.llm, workspaceId },
    { secret: secrets.llmElsewhere, workspaceId, allowedEndpoints: ["/api/v1/nothing/here"] },
    { secret: long("sk-svc-v1-of-others"), workspaceId: otherWorkspaceId },
    { secret: secrets.llmDisabled, workspaceId, disabled: true },
    { secret: secrets.llmExpired, workspaceId, expiresAtMs: 1 },
  ],
  managementKeys: [
    { secret: secrets.management, workspaceId },
    { secret: secrets.managementElsewhere, workspaceId: otherWorkspaceId },
    { secret: secrets.managementExpired, workspaceId, expiresAtMs: 1 },
    ...scopes.map((scope) => ({
      secret: secretWithout(scope),
      workspaceId,
      scopes: scopesWithout(scope),
    })),
  ],
};
