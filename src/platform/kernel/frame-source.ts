/** Text frames that are pulled one by one; `cancel` hears that the client has gone. */
export interface FrameSource {
  /**
   * The next frames as one text; undefined at the end. Never rejects: failures are frames of the
   * dialect.
   */
  next(): Promise<string | undefined>;
  /**
   * Calls `give` with what `next` would promise, at once where frames are there: an event that
   * comes by itself then goes from socket to socket in one turn.
   */
  tellNext?(give: (frames: string | undefined) => void): void;
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
