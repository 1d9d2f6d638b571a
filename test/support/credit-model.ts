/**
 * A simple model that histories of the ledger are compared with: lots of credits, the oldest spent
 * first.
 */
export class CreditModel {
  monthly: { month: string; amount: bigint }[] = [];
  topup = 0n;
  used = 0n;
  today = 0n;
  private readonly holds = new Map<string, bigint>();

  get monthlySum(): bigint {
    return this.monthly.reduce((sum, { amount }) => sum + amount, 0n);
  }

  get held(): bigint {
    return [...this.holds.values()].reduce((sum, amount) => sum + amount, 0n);
  }

  get free(): bigint {
    return this.monthlySum + this.topup - this.held;
  }

  get openHolds(): string[] {
    return [...this.holds.keys()];
  }

  grant(month: string, amount: bigint): void {
    this.monthly.push({ month, amount });
  }

  /** Returns whether the hold is taken. */
  reserve(id: string, amount: bigint): boolean {
    if (amount > 0n && this.free <= 0n) return false;
    this.holds.set(id, amount < this.free ? amount : this.free);
    return true;
  }

  void(id: string): void {
    this.holds.delete(id);
  }

  /** Settles a hold and returns the amount charged. */
  post(id: string, amount: bigint): bigint {
    this.holds.delete(id);
    const charged = amount < this.free ? amount : this.free;
    const left = this.takeMonthly(charged, () => true);
    this.topup -= left;
    this.used += charged;
    this.today += charged;
    return charged;
  }

  /** Takes back bought credits and returns the amount taken. */
  refund(amount: bigint): bigint {
    const taken = [amount, this.topup, this.free].reduce((one, other) =>
      other < one ? other : one,
    );
    this.topup -= taken;
    return taken;
  }

  lapse(month: string): void {
    const due = this.monthly
      .filter((lot) => lot.month !== month)
      .reduce((sum, { amount }) => sum + amount, 0n);
    this.takeMonthly(due < this.free ? due : this.free, (lot) => lot.month !== month);
  }

  crash(): void {
    this.holds.clear();
  }

  /** Takes from the matching lots, oldest first, and returns the amount that they did not cover. */
  private takeMonthly(amount: bigint, fits: (lot: { month: string }) => boolean): bigint {
    let left = amount;
    for (const lot of this.monthly) {
      if (!fits(lot)) continue;
      const taken = lot.amount < left ? lot.amount : left;
      lot.amount -= taken;
      left -= taken;
    }
    return left;
  }
}
