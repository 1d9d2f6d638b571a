/** What a request must say for an entry of a name to count: each member that is set has to match. */
export interface AliasCondition {
  /** The name or the hash of the key. */
  key?: string | undefined;
  /** A tag of the request. */
  tag?: string | undefined;
  /** Request headers by name, with their values. */
  header?: Readonly<Record<string, string>> | undefined;
  /** Members of the request's `metadata`, with their values. */
  metadata?: Readonly<Record<string, string | number | boolean>> | undefined;
}

/**
 * What a name of the operator's own means: a model; a list of fallbacks; or entries with
 * weights or conditions.
 */
export type AliasTarget =
  | string
  | readonly (
      | string
      | {
          model: string | readonly string[];
          weight?: number | undefined;
          when?: AliasCondition | undefined;
        }
    )[];
