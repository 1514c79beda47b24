/**
 * What processors do to a token's logit z, in the order of these calls. Logits are rounded to float32 after
 * each. Ids beyond the row are ignored.
 */
export interface LogitEdits {
  /** z ← −∞ */
  forbid(id: number): void;
  /** z ← z + amount. At most once for a token that is not forbidden. */
  add(id: number, amount: number): void;
  /** z ← z / penalty if z > 0, else z · penalty. */
  repeat(id: number, penalty: number): void;
  /** z ← z − amount */
  subtract(id: number, amount: number): void;
  /** z ← z − amount, but never below the lowest finite number. */
  lower(id: number, amount: number): void;
}
