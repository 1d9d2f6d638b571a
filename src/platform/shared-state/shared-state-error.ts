/**
 * The server of shared state does not answer at the moment; what it would have said is not known.
 */
export class SharedStateAwayError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SharedStateAwayError";
  }
}

/**
 * The server of shared state answers, and is set up in a way that would lose what is kept there.
 */
export class SharedStateUnfitError extends Error {
  override name = "SharedStateUnfitError";
}

/** The server is part of a cluster (`SharedCluster`). */
export class SharedStateClusterError extends SharedStateUnfitError {
  override name = "SharedStateClusterError";
}
