/** The server of shared state does not answer at the moment; what it would have said is not known. */
export class SharedStateAwayError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SharedStateAwayError";
  }
}
