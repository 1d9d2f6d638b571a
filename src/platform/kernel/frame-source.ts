/** Text frames that are pulled one by one. `cancel` is called when the client has left. */
export interface FrameSource {
  /**
   * Returns the next frames as one text; undefined at the end. Never rejects: failures are frames
   * of the dialect.
   */
  next(): Promise<string | undefined>;
  /**
   * Calls `give` with what `next` would resolve with, synchronously where frames are ready, so that
   * an event that arrives alone passes from socket to socket in one turn of the event loop.
   */
  tellNext?(give: (frames: string | undefined) => void): void;
  /**
   * Takes frames that are ready, so that they can be sent with the head; undefined where none are,
   * or `next` is awaited.
   */
  ready?(): string | undefined;
  /**
   * Whether nothing follows what was taken, so that `next` would return the end. Where it is absent
   * or false, only `next` knows.
   */
  readonly isOver?: boolean;
  cancel(): void;
}
