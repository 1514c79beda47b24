/**
 * Returns whether a tenant that holds `held` of a bounded space may hold `amount` more: `alpha` times what is
 * free at most (dynamic threshold; Choudhury and Hahne 1998). n tenants that want more than they get hold
 * alpha ÷ (alpha · n + 1) of the space each. The rest stays free for tenants that hold nothing.
 */
export const fitsThreshold = (held: number, amount: number, free: number, alpha: number): boolean =>
  amount <= free && held + amount <= alpha * free;
