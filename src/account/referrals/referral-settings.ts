/** What the operator settled about credits for bringing somebody. */
export interface ReferralSettings {
  /** What the workspace that brought somebody is given; 0 gives nothing. */
  referrerNano: bigint;
  /** What whoever came is given. */
  referredNano: bigint;
  /** When: with the first top-up by card, or with the sign-up (with the confirmed address, where mail is sent). */
  after: "first_top_up" | "sign_up";
  /** How many people a workspace is given credits for. */
  maximumPerWorkspace: number;
}
