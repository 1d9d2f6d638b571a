/** Why a provider is treated otherwise than others (contract, "Health and routing states"; docs/health.md says when). */
export type ProviderState = "deprioritized" | "excluded" | "quarantined" | "budget_exhausted";

/** Tells the gravest state of a provider; undefined for one that is well. */
export type StateLookup = (providerId: string) => ProviderState | undefined;

/** A state that a provider is not asked in. */
export type BarringState = Exclude<ProviderState, "deprioritized">;

/** The state if a provider is not asked in it; one that is deprioritized is asked last. */
export const barring = (state: ProviderState | undefined): BarringState | undefined =>
  state === "deprioritized" ? undefined : state;
