/** Whether a text is Claude Code's accounting line, which changes with every request and would spoil other providers' prompt caches. */
export const isBillingLine = (text: string): boolean =>
  text.startsWith("x-anthropic-billing-header:");
