/**
 * The error of a server of shared state that does not answer. Whether it ran the command is
 * unknown.
 */
export class SharedStateAwayError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SharedStateAwayError";
  }
}

/** The error of shared state that does not belong to the gateway's database. */
export class SharedStateMismatchError extends SharedStateAwayError {
  override name = "SharedStateMismatchError";
}

/** The error of a server of shared state whose settings would lose what gateways store there. */
export class SharedStateUnfitError extends Error {
  override name = "SharedStateUnfitError";
}

/** The error of a server that belongs to a cluster, which `SharedCluster` has to connect to. */
export class SharedStateClusterError extends SharedStateUnfitError {
  override name = "SharedStateClusterError";
}
