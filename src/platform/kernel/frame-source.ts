/** A text, or bytes of UTF-8, that the client is sent at once. */
export type FramePiece = string | Uint8Array;

/**
 * Frames as the client is sent them: one text, or pieces that follow one another. Large frames are
 * in pieces, since joining them to one text copies them.
 */
export type Frames = string | readonly FramePiece[];

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
  /** Does the same for a client that takes frames in pieces, in place of `tellNext`. */
  tellFrames?(give: (frames: Frames | undefined) => void): void;
  /**
   * Takes frames that are ready, so that they can be sent with the head; undefined where none are,
   * or `next` is awaited.
   */
  ready?(): string | undefined;
  /** Does the same for a client that takes frames in pieces, in place of `ready`. */
  readyFrames?(): Frames | undefined;
  /**
   * Whether nothing follows what was taken, so that `next` would return the end. Where it is absent
   * or false, only `next` knows.
   */
  readonly isOver?: boolean;
  cancel(): void;
}

/** Returns frames as one text. */
export function wholeText(frames: Frames): string {
  if (typeof frames === "string") return frames;
  let text = "";
  for (const piece of frames)
    text +=
      typeof piece === "string"
        ? piece
        : Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString("utf8");
  return text;
}
