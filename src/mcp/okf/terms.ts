import { brand } from "../../platform/kernel/brand.ts";
import type { Concept } from "./concept.ts";

/** Words of the service that its answers and documents use, each with what it means. */
const meanings: Readonly<Record<string, string>> = {
  attempt: "One try of one provider for a request. A request that falls back has several.",
  "BYOK key":
    "Your own key at a model provider, stored here. Requests that it serves are billed by the provider and cost 0 here.",
  "connected app":
    "An app that a person granted scopes to, over OAuth or a device code. It can be disconnected at any time.",
  credit: "One US dollar. Monthly credits are spent before purchased ones, which never expire.",
  generation:
    "One inference request that was served, failed or cancelled, and its record: tokens, cost, attempts and price.",
  hold: "Money set aside while a request runs, at most what it may cost. What it did not need flows back.",
  "LLM key": `A credential for inference, ${brand.llmKeyPrefix}... It may have limits, and lists of models and endpoints.`,
  "management key": `A credential for administration, ${brand.managementKeyFamilyPrefix}..., with scopes. It cannot be used for inference.`,
  preset:
    "A named bundle of request settings. A request names it as @preset/<slug>; what the request sets itself wins.",
  provider:
    "A vendor or server that serves models. Several may serve the same model, and routing chooses among them.",
  "routing preset": `A model id such as ${brand.routerOwner}/auto that is a pool of models.`,
  scope:
    "A permission of a management key or a connected app, such as read:credits. write:X includes read:X.",
  workspace: "The owner of keys, credits, presets and records.",
};

const slugOf = (term: string): string => term.toLowerCase().replaceAll(" ", "-");

/** Concepts of the service's own words. */
export const termConcepts: readonly Concept[] = Object.entries(meanings).map(([term, meaning]) => ({
  id: `term/${slugOf(term)}`,
  type: "term",
  title: term,
  description: meaning.split(". ")[0] ?? meaning,
  facts: {},
  body: meaning,
}));
