/** What a dispute is to the balance: an inquiry moves no money, an open or lost one does, a won one gives it back. */
export type DisputeState = "inquiry" | "open" | "won" | "lost";

/** The states that Stripe knows (docs.stripe.com/api/disputes/object#dispute_object-status). */
const states: Readonly<Record<string, DisputeState>> = {
  warning_needs_response: "inquiry", warning_under_review: "inquiry", warning_closed: "inquiry",
  needs_response: "open", under_review: "open", won: "won", lost: "lost", prevented: "won",
};

/** The state that a status means; undefined for one that is not known. */
export const disputeStateOf = (status: string): DisputeState | undefined => (Object.hasOwn(states, status) ? states[status] : undefined);
