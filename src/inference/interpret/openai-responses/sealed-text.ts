import { sealWithProvenance } from "../../canonical/reasoning.ts";

/**
 * A quote cannot stand unescaped within a string of JSON text, so this finds names of members alone.
 * Empty values are no seals.
 */
const sealedMember = /("encrypted_content"\s*:\s*")(?!")/g;

/** JSON text of an answer whose sealed thoughts name their maker, so that only the maker gets them back. */
export function withSealedProvenance(text: string, providerId: string): string {
  if (!text.includes('"encrypted_content"')) return text;
  const mark = sealWithProvenance("", { providerId });
  return text.replace(sealedMember, (member) => member + mark);
}
