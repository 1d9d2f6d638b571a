/** Who sells the credits, as it is printed on invoices. */
export interface Seller {
  name: string;
  /** Lines of the address below the name. */
  address: readonly string[];
  /** Number under which the seller is known to its tax office; undefined prints none. */
  taxId: string | undefined;
  /** Sentence about taxes, such as why none are charged; undefined prints none. */
  taxNote: string | undefined;
}

/** What is added to a top-up for its processing. */
export interface FeeRule {
  /** Part of the credits in hundredths of a percent: 500 are 5 %. */
  basisPoints: number;
  fixedCents: number;
}

/** What the operator settled about card payments. */
export interface PaymentSettings {
  stripe: {
    /** `sk_` or restricted `rk_` key; undefined switches payments off. */
    secretKey: string | undefined;
    /** `whsec_` secret of the webhook endpoint; undefined switches the webhook route off. */
    webhookSecret: string | undefined;
    /** Where the API is asked in place of Stripe itself; on loopback, for tests. */
    apiBase: string | undefined;
  };
  currency: "usd";
  fee: FeeRule;
  /** Least and most credits of one top-up. */
  creditCentsMin: number;
  creditCentsMax: number;
  seller: Seller | undefined;
}

/** 5 % plus 50 cents, and top-ups of 5 to 5,000 USD. */
export const defaultPaymentSettings: PaymentSettings = {
  stripe: { secretKey: undefined, webhookSecret: undefined, apiBase: undefined },
  currency: "usd",
  fee: { basisPoints: 500, fixedCents: 50 },
  creditCentsMin: 500,
  creditCentsMax: 500_000,
  seller: undefined,
};

/** Whether a key moves real money; Stripe writes it into the key's name. */
export const isLiveKey = (secretKey: string): boolean => /^(sk|rk)_live_/.test(secretKey);
