/** What one of several gateways does alone; where there is only one, it does everything. */
export interface Claims {
  /** Makes something this gateway's until it lets go or dies; false where it is another's. */
  take(name: string): Promise<boolean>;
  /** Whether something is this gateway's. */
  holds(name: string): boolean;
  /** Lets go of something. */
  release(name: string): void;
}
