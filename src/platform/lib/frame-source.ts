/** Text frames that are pulled one by one; `cancel` hears that the client has gone. */
export interface FrameSource {
  /** The next frames as one text; undefined at the end. Never rejects: failures are frames of the dialect. */
  next(): Promise<string | undefined>;
  cancel(): void;
}
