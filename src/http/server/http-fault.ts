/** Why a request cannot be understood; the connection ends with it, since nobody knows where the next one would begin. */
export class HttpFault extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
