/**
 * A simple model that histories of payments are compared with: the credits of each order, and the
 * part of them that was reversed.
 */
export class PaymentModel {
  /** Credits that were spent, in nano-USD. */
  spentNano = 0n;
  private readonly orders = new Map<
    string,
    { creditCents: number; chargeCents: number; paid: boolean }
  >();
  private readonly reversals = new Map<
    string,
    { orderId: string; cents: number; stands: boolean; refund: boolean }
  >();

  order(id: string, order: { creditCents: number; chargeCents: number }): void {
    this.orders.set(id, { ...order, paid: false });
  }

  pay(id: string): void {
    const order = this.orders.get(id);
    if (order !== undefined) order.paid = true;
  }

  reversal(id: string, reversal: { orderId: string; cents: number; refund: boolean }): void {
    this.reversals.set(id, { ...reversal, stands: true });
  }

  drop(id: string): void {
    const reversal = this.reversals.get(id);
    if (reversal !== undefined) reversal.stands = false;
  }

  get paidOrders(): string[] {
    return [...this.orders].filter(([, { paid }]) => paid).map(([id]) => id);
  }

  /**
   * The balance once every event is delivered, in nano-USD; reversals that it does not cover leave
   * it at zero.
   */
  get balanceNano(): bigint {
    let cents = 0n;
    for (const [id, { creditCents, chargeCents, paid }] of this.orders) {
      if (!paid) continue;
      const claimed = Math.min(
        this.reversedCents(id, () => true),
        chargeCents,
      );
      // Half a cent rounds up.
      cents +=
        BigInt(creditCents) - BigInt(Math.floor((claimed * creditCents) / chargeCents + 0.5));
    }
    const left = cents * 10_000_000n - this.spentNano;
    return left > 0n ? left : 0n;
  }

  /** Returns the sum of an order's credit notes in cents. */
  refundedCents(orderId: string): number {
    return this.reversedCents(orderId, ({ refund }) => refund);
  }

  private reversedCents(orderId: string, fits: (reversal: { refund: boolean }) => boolean): number {
    const own = [...this.reversals.values()].filter(
      (reversal) => reversal.orderId === orderId && reversal.stands && fits(reversal),
    );
    return own.reduce((sum, { cents }) => sum + cents, 0);
  }
}
