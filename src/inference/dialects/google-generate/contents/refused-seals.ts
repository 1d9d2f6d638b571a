import { editMembers } from "../../../../platform/kernel/json/json-members.ts";
import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import { asArray, asObject, asString } from "../../shared/wire-fields.ts";
import { needsSignatures } from "../encode-state.ts";
import { missingSignature } from "./seals.ts";
import type { Unreadable, UnsealedRequest } from "../../shared/refused-thoughts.ts";

/**
 * Google's words: googleapis' "Corrupted thought signature." (google-gemini/gemini-cli#13467,
 * 2025-11), "Thought signature is not valid" (decolua/9router#301, 2026-03) and "Invalid thought
 * signature." (lbjlaq/Antigravity-Manager#3342, 2026-08).
 */
const refusedWords =
  /(?:corrupted|invalid) thought[ _]?signature|thought[ _]?signature is (?:not valid|invalid)/i;

/**
 * Returns a request without the thought signatures that another account or model gave. The refusal
 * names none of them, so that all go; a call gets Google's text for a missing one.
 */
export function withoutSeals(
  text: string,
  unreadable: Unreadable,
  upstreamModel: string,
): UnsealedRequest | undefined {
  if ("refusal" in unreadable && !refusedWords.test(unreadable.refusal.message)) return undefined;
  const { contents } = JSON.parse(text) as JsonObject;
  const seals: string[] = [];
  const standIn = needsSignatures(upstreamModel) ? missingSignature : undefined;
  const unsealed = (value: JsonValue): JsonValue[] => {
    const part = asObject(value);
    const seal = asString(part?.thoughtSignature);
    const isGone =
      seal !== undefined &&
      seal !== missingSignature &&
      ("refusal" in unreadable || unreadable.isRefused(seal));
    if (part === undefined || !isGone) return [value];
    seals.push(seal);
    const { thoughtSignature: _, ...rest } = part;
    if (part.thought === true) return [];
    if (rest.functionCall !== undefined)
      return [standIn === undefined ? rest : { ...rest, thoughtSignature: standIn }];
    return rest.text === "" ? [] : [rest];
  };
  const kept = (asArray(contents) ?? []).flatMap((content): JsonValue[] => {
    const fields = asObject(content);
    const parts = asArray(fields?.parts);
    if (fields === undefined || parts === undefined) return [content];
    const rest = parts.flatMap(unsealed);
    return rest.length === 0 && parts.length > 0 ? [] : [{ ...fields, parts: rest }];
  });
  if (seals.length === 0) return undefined;
  const edits = new Map([["contents", JSON.stringify(kept)]]);
  return { text: editMembers(text, edits), seals, stopsThinking: false };
}
