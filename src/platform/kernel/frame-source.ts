/** Text frames that are pulled one by one; `cancel` hears that the client has gone. */
export interface FrameSource {
  /**
   * The next frames as one text; undefined at the end. Never rejects: failures are frames of the
   * dialect.
   */
  next(): Promise<string | undefined>;
  /**
   * Takes frames that are there already, so that they can leave with the head; undefined where none
   * are, or `next` is awaited.
   */
  ready?(): string | undefined;
  /**
   * Nothing comes after what was taken: `next` would tell the end. Where it is absent or false,
   * only `next` knows.
   */
  readonly isOver?: boolean;
  cancel(): void;
}
